#include "tests/bench/peers/socket.h"

#include <arpa/inet.h>
#include <glog/logging.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace conclave::bench {
namespace {

constexpr size_t kReadAtOnce = size_t{256} << 10;

int Connect(const std::string& address) {
  const size_t colon = address.rfind(':');
  CHECK(colon != std::string::npos) << "'" << address << "' is not host:port";
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  CHECK_EQ(inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr), 1)
      << "'" << address << "' has no numeric IPv4 address";
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  PCHECK(fd >= 0) << "socket";
  PCHECK(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0)
      << "nobody answers at " << address;
  const int one = 1;
  PCHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
  return fd;
}

}  // namespace

Socket::Socket(const std::string& address) : Socket(Connect(address)) {}

Socket::Socket(int fd) : fd_(fd), buffer_(2 * kReadAtOnce, '\0') {}

Socket::~Socket() { close(fd_); }

void Socket::Write(std::string_view bytes) {
  std::lock_guard lock(write_mutex_);
  while (!bytes.empty()) {
    const ssize_t wrote = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    PCHECK(wrote > 0) << "the server closed the connection";
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
}

void Socket::Fill(size_t bytes) {
  while (end_ - at_ < bytes) {
    if (at_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
      end_ -= at_;
      at_ = 0;
    }
    if (buffer_.size() - end_ < kReadAtOnce) buffer_.resize(end_ + 2 * kReadAtOnce);
    const ssize_t got = read(fd_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    PCHECK(got > 0) << "the server closed the connection";
    end_ += static_cast<size_t>(got);
  }
}

bool Socket::Readable(std::chrono::milliseconds within) {
  if (end_ > at_) return true;
  pollfd one{fd_, POLLIN, 0};
  return poll(&one, 1, static_cast<int>(within.count())) > 0;
}

std::string_view Socket::ReadLine() {
  size_t searched = 0;
  for (;;) {
    const std::string_view there(buffer_.data() + at_, end_ - at_);
    const size_t end = there.find("\r\n", searched);
    if (end != std::string_view::npos) {
      at_ += end + 2;
      return there.substr(0, end);
    }
    // The line's end may be cut in two.
    searched = there.empty() ? 0 : there.size() - 1;
    Fill(there.size() + 1);
  }
}

std::string_view Socket::ReadCounted(size_t bytes) {
  Fill(bytes + 2);
  const std::string_view counted(buffer_.data() + at_, bytes);
  CHECK_EQ(std::string_view(buffer_.data() + at_ + bytes, 2), "\r\n")
      << "what the server sent is not what its protocol says";
  at_ += bytes + 2;
  return counted;
}

}  // namespace conclave::bench
