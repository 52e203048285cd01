#ifndef CONCLAVE_COMMON_CONFIG_ENDPOINT_H_
#define CONCLAVE_COMMON_CONFIG_ENDPOINT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace conclave {

// Where something listens, or is reached.
struct Endpoint {
  // A name, an IPv4 or an IPv6 address; the latter without brackets.
  std::string host;
  // 0: chosen when the socket is bound.
  uint16_t port = 0;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// "host:port", or "[address]:port" for IPv6.
std::string ToString(const Endpoint& endpoint);

// INVALID_CONFIG for anything else: a scheme, a missing port, characters no host name has.
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

// Separated by commas; at least one.
absl::StatusOr<std::vector<Endpoint>> ParseEndpointList(std::string_view text);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CONFIG_ENDPOINT_H_
