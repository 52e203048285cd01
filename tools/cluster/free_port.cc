#include "tools/cluster/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::tools {
namespace {

// The port bound (any, for port 0); 0 if `port` cannot be; -1 with errno where none can.
int TryPort(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t length = sizeof address;
  int bound = port == 0 ? -1 : 0;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(fd, 1) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    bound = ntohs(address.sin_port);
  }
  close(fd);
  return bound;
}

}  // namespace

bool PortIsFree(int port) { return TryPort(port) == port; }

absl::StatusOr<int> PortChooser::Choose(int preferred) {
  // Not any port that the system would give: those are given to connections too, and a node that
  // restarts on one may find it taken.
  constexpr int kStep = 20;
  constexpr int kFirstEphemeral = 32768;
  int port = 0;
  for (int candidate = preferred; port == 0 && candidate < kFirstEphemeral; candidate += kStep) {
    if (chosen_.count(candidate) == 0) port = TryPort(candidate);
  }
  if (port == 0) port = TryPort(0);
  if (port < 0) {
    return MakeError(v1::UNKNOWN_SERVER_ERROR,
                     absl::StrCat("cannot look for a free port: ", std::strerror(errno)));
  }
  chosen_.insert(port);
  return port;
}

}  // namespace conclave::tools
