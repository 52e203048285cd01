#include "common/transport/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

// A port that is free at the first address may not be at the second.
constexpr int kAttemptsToPickAPort = 20;

absl::Status CannotListen(const HostPort& endpoint, const std::string& why) {
  return MakeError(
      v1::INVALID_CONFIG,
      absl::StrCat("cannot listen on ", JoinHostPort(endpoint.host, endpoint.port), ": ", why));
}

void SetPort(sockaddr_storage& address, int port) {
  const auto network = htons(static_cast<uint16_t>(port));
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = network;
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = network;
  }
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// The socket, or the error of the system; neither where the machine has no such addresses.
struct Opened {
  FileDescriptor fd{-1};
  int error = 0;
};

Opened Open(const addrinfo& found, int port) {
  Opened opened{
      FileDescriptor(socket(found.ai_family, found.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                            found.ai_protocol)),
      0};
  const int fd = opened.fd.get();
  if (fd < 0) {
    // The name has an IPv6 address, say, and the kernel no IPv6: the others decide.
    return {FileDescriptor(-1), errno == EAFNOSUPPORT ? 0 : errno};
  }
  const int on = 1;
  const int off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (found.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_storage address{};
  std::memcpy(&address, found.ai_addr, found.ai_addrlen);
  SetPort(address, port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), found.ai_addrlen) == 0 &&
      listen(fd, SOMAXCONN) == 0) {
    return opened;
  }
  // An address of another family that this machine lacks (::1 in a container) is passed over.
  const bool lacking = errno == EADDRNOTAVAIL && found.ai_family == AF_INET6;
  return {FileDescriptor(-1), lacking ? 0 : errno};
}

// nullopt: the port is in use at one of the addresses.
absl::StatusOr<std::optional<ListeningSockets>> ListenOnAll(const HostPort& endpoint,
                                                            const addrinfo* addresses) {
  ListeningSockets listening;
  listening.port = endpoint.port;
  for (const addrinfo* a = addresses; a != nullptr; a = a->ai_next) {
    Opened opened = Open(*a, listening.port);
    if (opened.error == EADDRINUSE) return std::nullopt;
    if (opened.error != 0) return CannotListen(endpoint, std::strerror(opened.error));
    if (opened.fd.get() < 0) continue;
    if (listening.port == 0) listening.port = PortOf(opened.fd.get());
    listening.sockets.push_back(std::move(opened.fd));
  }
  if (listening.sockets.empty()) {
    return CannotListen(endpoint, "the address is not one of this machine's");
  }
  return listening;
}

}  // namespace

absl::StatusOr<ListeningSockets> Listen(const HostPort& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), nullptr, &hints, &found);
  if (error != 0) return CannotListen(endpoint, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  for (int attempt = 0; attempt < (endpoint.port == 0 ? kAttemptsToPickAPort : 1); ++attempt) {
    auto listening = ListenOnAll(endpoint, addresses.get());
    if (!listening.ok()) return listening.status();
    if (*listening) return **std::move(listening);
  }
  return CannotListen(endpoint,
                      "the port is in use by another process; stop that process (ss -ltnp shows "
                      "it) or choose another port");
}

}  // namespace conclave
