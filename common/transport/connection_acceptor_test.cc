#include "common/transport/connection_acceptor.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/error/error.h"
#include "common/transport/listening_sockets.h"

namespace conclave {
namespace {

FileDescriptor NewSocket() {
  return FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

bool Connect(const FileDescriptor& client, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// Waits until the other side has closed it.
bool IsClosedByPeer(const FileDescriptor& client) {
  char byte;
  return recv(client.get(), &byte, 1, 0) <= 0;
}

// The limit of open files while it lives.
class Limit {
 public:
  explicit Limit(rlim_t files) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit limit = before_;
    limit.rlim_cur = files;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~Limit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

class ConnectionAcceptorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listening = Listen({"127.0.0.1", 0});
    ASSERT_TRUE(listening.ok()) << listening.status();
    port_ = listening->port;
    acceptor_.emplace(std::move(listening->sockets), [this](int, int connection) {
      const std::lock_guard lock(mutex_);
      taken_.emplace_back(connection);
      changed_.notify_all();
    });
  }

  void WaitUntilTaken(size_t connections) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return taken_.size() >= connections; });
    EXPECT_EQ(taken_.size(), connections);
  }

  // Opens files until so many numbers are free.
  void FillUp(size_t free) {
    for (;;) {
      FileDescriptor fd(dup(0));
      if (fd.get() < 0) break;
      files_.push_back(std::move(fd));
    }
    for (; free > 0; --free) files_.pop_back();
  }

  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FileDescriptor> taken_;
  std::vector<FileDescriptor> files_;
  std::optional<ConnectionAcceptor> acceptor_;
};

TEST_F(ConnectionAcceptorTest, HandsConnectionsOnAndStopsListening) {
  std::vector<FileDescriptor> clients;
  for (size_t i = 1; i <= 100; ++i) {
    clients.push_back(NewSocket());
    ASSERT_TRUE(Connect(clients.back(), port_));
  }
  WaitUntilTaken(100);
  acceptor_.reset();
  EXPECT_FALSE(Connect(NewSocket(), port_));
}

TEST_F(ConnectionAcceptorTest, R29TheLastDescriptorsAreKept) {
  const Limit limit(128);
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(NewSocket());
  FillUp(/*free=*/18);
  ASSERT_TRUE(Connect(clients[0], port_));
  ASSERT_TRUE(Connect(clients[1], port_));
  WaitUntilTaken(2);
  ASSERT_TRUE(Connect(clients[2], port_));
  EXPECT_TRUE(IsClosedByPeer(clients[2]));
  files_.clear();
  const FileDescriptor late = NewSocket();
  ASSERT_TRUE(Connect(late, port_));
  WaitUntilTaken(3);
}

TEST_F(ConnectionAcceptorTest, R29WithoutAnyDescriptorConnectionsWait) {
  const Limit limit(128);
  const FileDescriptor client = NewSocket();
  FillUp(/*free=*/0);
  ASSERT_TRUE(Connect(client, port_));
  files_.clear();
  WaitUntilTaken(1);
}

TEST(ListeningSocketsTest, APortInUseIsRefusedByName) {
  const auto first = Listen({"127.0.0.1", 0});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Listen({"127.0.0.1", first->port});
  EXPECT_EQ(ErrorCodeOf(second.status()), v1::INVALID_CONFIG);
  EXPECT_NE(second.status().message().find("in use by another process"), std::string::npos)
      << second.status();
}

TEST(ListeningSocketsTest, AllAddressesOfAHostHaveOnePort) {
  const auto both = Listen({"::", 0});
  if (both.ok()) {  // The kernel has IPv6: IPv4 is taken there, too.
    EXPECT_TRUE(Connect(NewSocket(), both->port));
  }
  const auto listening = Listen({"localhost", 0});
  ASSERT_TRUE(listening.ok()) << listening.status();
  EXPECT_GT(listening->port, 0);
  EXPECT_TRUE(Connect(NewSocket(), listening->port));
}

TEST(ListeningSocketsTest, AForeignAddressIsRefused) {
  EXPECT_EQ(ErrorCodeOf(Listen({"192.0.2.1", 7400}).status()), v1::INVALID_CONFIG);
  EXPECT_EQ(ErrorCodeOf(Listen({"no-such-host.invalid", 7400}).status()), v1::INVALID_CONFIG);
}

}  // namespace
}  // namespace conclave
