#include "common/transport/listen_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

absl::Status BadEndpoint(const std::string& endpoint, const std::string& why) {
  return MakeError(v1::INVALID_REQUEST,
                   absl::StrCat("\"", endpoint, "\" is no host:port to listen on: ", why,
                                "; write it like 127.0.0.1:7400 or [::1]:7400"));
}

absl::Status TryBind(const addrinfo& address, const std::string& what) {
  const int fd = socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (fd < 0) {
    // The name has an IPv6 address, say, and the kernel no IPv6: the others decide.
    if (errno == EAFNOSUPPORT) return absl::OkStatus();
    return MakeError(v1::UNKNOWN_SERVER_ERROR, absl::StrCat("socket: ", std::strerror(errno)));
  }
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  int error = 0;
  if (bind(fd, address.ai_addr, address.ai_addrlen) != 0 || listen(fd, 1) != 0) error = errno;
  close(fd);
  // An address of another family that this machine lacks (::1 in a container) is passed over.
  if (error == 0 || (error == EADDRNOTAVAIL && address.ai_family == AF_INET6)) {
    return absl::OkStatus();
  }
  if (error == EADDRINUSE) {
    return MakeError(v1::INVALID_CONFIG,
                     absl::StrCat("cannot listen on ", what,
                                  ": the port is in use by another process; stop that process "
                                  "(ss -ltnp shows it) or choose another port"));
  }
  return MakeError(v1::INVALID_CONFIG,
                   absl::StrCat("cannot listen on ", what, ": ", std::strerror(error)));
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

absl::Status CheckCanListen(const HostPort& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const std::string what = JoinHostPort(endpoint.host, endpoint.port);
  if (const int error = getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return MakeError(v1::INVALID_CONFIG,
                     absl::StrCat("cannot listen on ", what, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    if (absl::Status status = TryBind(*a, what); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace conclave
