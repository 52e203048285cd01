#include "common/config/endpoint.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

constexpr size_t kMaxHostLength = 253;

absl::Status Refused(std::string_view text, const char* why) {
  const std::string shown = absl::CHexEscape(std::string(text.substr(0, 80)));
  return MakeError(v1::INVALID_CONFIG, absl::StrCat("'", shown, "' is no endpoint: ", why,
                                                    "; write host:port, as in localhost:7400"));
}

bool IsHostCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
}

bool IsAddressCharacter(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '.';
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string ToString(const Endpoint& endpoint) {
  const bool is_v6 = endpoint.host.find(':') != std::string::npos;
  return is_v6 ? absl::StrCat("[", endpoint.host, "]:", endpoint.port)
               : absl::StrCat(endpoint.host, ":", endpoint.port);
}

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  if (text.find("://") != std::string_view::npos) {
    return Refused(text, "it starts with a scheme");
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Refused(text, "it has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!std::all_of(host.begin(), host.end(), IsAddressCharacter)) {
      return Refused(text, "the brackets hold no IPv6 address");
    }
  } else if (!std::all_of(host.begin(), host.end(), IsHostCharacter)) {
    return Refused(text, "the host has a character that no host name has");
  }
  if (host.empty()) return Refused(text, "it has no host");
  if (host.size() > kMaxHostLength) return Refused(text, "the host is longer than 253 characters");
  Endpoint endpoint{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (error != std::errc() || end != port.data() + port.size()) {
    return Refused(text, "the port is no number from 0 to 65535");
  }
  return endpoint;
}

absl::StatusOr<std::vector<Endpoint>> ParseEndpointList(std::string_view text) {
  std::vector<Endpoint> endpoints;
  while (true) {
    const size_t comma = text.find(',');
    auto endpoint = ParseEndpoint(Trimmed(text.substr(0, comma)));
    if (!endpoint.ok()) return endpoint.status();
    endpoints.push_back(*std::move(endpoint));
    if (comma == std::string_view::npos) return endpoints;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace conclave
