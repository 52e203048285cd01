#include "tests/bench/peers/socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>

namespace conclave::bench {
namespace {

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    near = std::make_unique<Socket>(fds[0]);
    far = std::make_unique<Socket>(fds[1]);
  }
  std::unique_ptr<Socket> near;
  std::unique_ptr<Socket> far;
};

TEST(SocketTest, LinesAndCountedBytesInTurn) {
  Pair pair;
  pair.far->Write("first\r\n\r\nab\r\ncd\r\nlast\r\n");
  EXPECT_EQ(pair.near->ReadLine(), "first");
  EXPECT_EQ(pair.near->ReadLine(), "");
  // Counted bytes may hold what ends lines.
  EXPECT_EQ(pair.near->ReadCounted(6), "ab\r\ncd");
  EXPECT_EQ(pair.near->ReadLine(), "last");
}

TEST(SocketTest, ToldWhetherThereIsAnything) {
  Pair pair;
  EXPECT_FALSE(pair.near->Readable(std::chrono::milliseconds(0)));
  pair.far->Write("a\r\nb\r\n");
  EXPECT_TRUE(pair.near->Readable(std::chrono::milliseconds(0)));
  EXPECT_EQ(pair.near->ReadLine(), "a");
  // Read from the connection already, and not taken.
  EXPECT_TRUE(pair.near->Readable(std::chrono::milliseconds(0)));
  EXPECT_EQ(pair.near->ReadLine(), "b");
  EXPECT_FALSE(pair.near->Readable(std::chrono::milliseconds(0)));
}

TEST(SocketTest, ALinesEndMayComeInTwo) {
  Pair pair;
  pair.far->Write("one\r");
  std::thread later([&] { pair.far->Write("\ntwo\r\n"); });
  EXPECT_EQ(pair.near->ReadLine(), "one");
  EXPECT_EQ(pair.near->ReadLine(), "two");
  later.join();
}

TEST(SocketTest, MoreThanFitsAtOnce) {
  Pair pair;
  const std::string much(3'000'000, 'x');
  std::thread writer([&] {
    for (int i = 0; i < 3; ++i) pair.far->Write(much + "\r\n");
    pair.far->Write("end\r\n");
  });
  EXPECT_EQ(pair.near->ReadCounted(much.size()), much);
  EXPECT_EQ(pair.near->ReadLine(), much);
  EXPECT_EQ(pair.near->ReadCounted(much.size()), much);
  EXPECT_EQ(pair.near->ReadLine(), "end");
  writer.join();
}

}  // namespace
}  // namespace conclave::bench
