#include "common/transport/host_port.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

absl::Status BadEndpoint(const std::string& endpoint, const std::string& why) {
  return MakeError(v1::INVALID_REQUEST,
                   absl::StrCat("\"", endpoint, "\" is no host:port to listen on: ", why,
                                "; write it like 127.0.0.1:7400 or [::1]:7400"));
}

}  // namespace

absl::StatusOr<HostPort> ParseListenEndpoint(const std::string& endpoint) {
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos) return BadEndpoint(endpoint, "it has no port");
  HostPort result;
  result.host = endpoint.substr(0, colon);
  if (result.host.size() >= 2 && result.host.front() == '[' && result.host.back() == ']') {
    result.host = result.host.substr(1, result.host.size() - 2);
  } else if (result.host.find(':') != std::string::npos) {
    return BadEndpoint(endpoint, "an IPv6 address stands in brackets");
  }
  if (result.host.empty()) return BadEndpoint(endpoint, "it has no host");
  const char* first = endpoint.data() + colon + 1;
  const char* last = endpoint.data() + endpoint.size();
  const auto [end, error] = std::from_chars(first, last, result.port);
  if (error != std::errc() || end != last || result.port < 0 || result.port > 65535) {
    return BadEndpoint(endpoint, "the port is no number from 0 to 65535");
  }
  return result;
}

std::string JoinHostPort(const std::string& host, int port) {
  if (host.find(':') != std::string::npos) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

}  // namespace conclave
