#include "tools/cli/data_options.h"

#include <algorithm>
#include <cstdio>

namespace conclave::tools {

std::optional<v1::Acks> AcksFromText(const std::string& text) {
  if (text == "all") return v1::ACKS_ALL;
  if (text == "1") return v1::ACKS_LEADER;
  if (text == "0") return v1::ACKS_NONE;
  return std::nullopt;
}

std::optional<Compression> CompressionFromText(const std::string& text) {
  for (const Compression codec : {Compression::kNone, Compression::kLz4, Compression::kZstd}) {
    if (text == CompressionName(codec)) return codec;
  }
  return std::nullopt;
}

void BoundDelivery(Duration timeout, ProducerOptions& options) {
  options.delivery_timeout = timeout;
  options.delivery_timeout_name = "--timeout";
  options.request_timeout = std::min(options.request_timeout, timeout);
}

std::string Decimals(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

}  // namespace conclave::tools
