#ifndef CONCLAVE_COMMON_TRANSPORT_HOST_PORT_H_
#define CONCLAVE_COMMON_TRANSPORT_HOST_PORT_H_

#include <string>

#include "absl/status/statusor.h"

namespace conclave {

struct HostPort {
  std::string host;
  int port = 0;
};

// "host:port", "127.0.0.1:7400" or "[::1]:7400"; port 0 to 65535. The error says what is wrong
// with the text.
absl::StatusOr<HostPort> ParseListenEndpoint(const std::string& endpoint);

// The inverse, with brackets around an IPv6 address.
std::string JoinHostPort(const std::string& host, int port);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TRANSPORT_HOST_PORT_H_
