// Transports and servers of gRPC that come and go: taking one down is safe at every moment of its
// life, and so is taking down the last of a process, with which the library's own threads go.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock/system_clock.h"
#include "common/executor/thread_executor.h"
#include "common/transport/grpc_transport.h"

namespace conclave {
namespace {

// Each round is a race. With a channel let go of by a thread of gRPC, one run in five of the client
// that goes first aborted in these many.
constexpr int kRounds = 150;
constexpr const char* kStream = "/conclave.v1.ProduceService/ProduceStream";

class Closed : public StreamHandler {
 public:
  void OnMessage(Buffer) override {}
  void OnClosed(absl::Status status) override { closed.set_value(std::move(status)); }
  std::promise<absl::Status> closed;
};

// Answers the first message by ending the stream, and takes nothing more.
class Refusing : public StreamHandler {
 public:
  explicit Refusing(std::unique_ptr<ServerStream> stream) : stream_(std::move(stream)) {
    stream_->Start(this);
  }
  void OnMessage(Buffer) override { stream_->Finish(absl::InvalidArgumentError("no")); }
  void OnClosed(absl::Status) override { delete this; }

 private:
  const std::unique_ptr<ServerStream> stream_;
};

class GrpcLifecycleTest : public ::testing::Test {
 protected:
  ~GrpcLifecycleTest() override {
    executor_.Stop();
    server_executor_.Stop();
  }

  // With one method, whose streams end as they begin.
  std::unique_ptr<Server> Listen(Transport& transport) {
    std::vector<ServerMethod> methods;
    methods.push_back({kStream, &server_executor_, [](std::unique_ptr<ServerStream> stream) {
                         stream->Finish(absl::OkStatus());
                       }});
    auto server = transport.Listen("127.0.0.1:0", std::move(methods));
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }

  // Streams are refused on their first message.
  std::unique_ptr<Server> ListenAndRefuse(Transport& transport) {
    std::vector<ServerMethod> methods;
    methods.push_back({kStream, &server_executor_, [](std::unique_ptr<ServerStream> stream) {
                         new Refusing(std::move(stream));
                       }});
    auto server = transport.Listen("127.0.0.1:0", std::move(methods));
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }

  absl::StatusCode CallUnknown(Transport& transport, const std::string& endpoint) {
    std::promise<absl::StatusCode> answered;
    transport.Call(
        endpoint, "/conclave.v1.ProduceService/NoSuchMethod", Buffer(), {}, executor_,
        [&](absl::StatusOr<Buffer> answer) { answered.set_value(answer.status().code()); });
    return answered.get_future().get();
  }

  void RefuseAndGo() {
    auto client = std::make_unique<GrpcTransport>();
    auto transport = std::make_unique<GrpcTransport>();
    auto server = Listen(*transport);
    ASSERT_NE(server, nullptr);
    ASSERT_EQ(CallUnknown(*client, server->endpoint()), absl::StatusCode::kUnimplemented);
    client.reset();
    server.reset();
    transport.reset();
  }

  SystemClock clock_;
  ThreadExecutor executor_{clock_, {.name = "client"}};
  ThreadExecutor server_executor_{clock_, {.name = "server"}};
};

TEST_F(GrpcLifecycleTest, AServerStopsRightAfterItBegan) {
  for (int round = 0; round < kRounds; ++round) {
    GrpcTransport transport;
    ASSERT_NE(Listen(transport), nullptr);
  }
}

TEST_F(GrpcLifecycleTest, AServerStopsRightAfterItRefusedAnUnknownMethod) {
  GrpcTransport client;
  GrpcTransport transport;
  for (int round = 0; round < kRounds; ++round) {
    auto server = Listen(transport);
    ASSERT_NE(server, nullptr);
    ASSERT_EQ(CallUnknown(client, server->endpoint()), absl::StatusCode::kUnimplemented);
  }
}

TEST_F(GrpcLifecycleTest, AClientAndThenItsServerGoRightAfterARefusal) {
  for (int round = 0; round < kRounds; ++round) RefuseAndGo();
}

TEST_F(GrpcLifecycleTest, ManyComeAndGoAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < kRounds / 4; ++round) RefuseAndGo();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GrpcLifecycleTest, AClientGoesRightAfterItsStreamEnded) {
  for (int round = 0; round < kRounds; ++round) {
    GrpcTransport transport;
    auto server = Listen(transport);
    ASSERT_NE(server, nullptr);
    GrpcTransport client;
    Closed closed;
    auto stream = client.OpenStream(server->endpoint(), kStream, {}, executor_, &closed);
    ASSERT_TRUE(closed.closed.get_future().get().ok());
    std::promise<void> destroyed;
    executor_.Post([&] {
      stream.reset();
      destroyed.set_value();
    });
    destroyed.get_future().wait();
  }
}

// A stream whose client is gone by the time that the server's executor takes it on: gRPC is done
// with it, and must not be asked to read.
TEST_F(GrpcLifecycleTest, AServerTakesOnCallsThatAreOverAlready) {
  GrpcTransport transport;
  auto server = ListenAndRefuse(transport);
  ASSERT_NE(server, nullptr);
  GrpcTransport client;
  constexpr int kCalls = 40;
  for (int round = 0; round < kRounds / 10; ++round) {
    std::promise<void> go_on;
    // Of its own: it may run only once this round is over.
    server_executor_.Post([held = go_on.get_future().share()] { held.wait(); });
    std::vector<std::promise<absl::StatusCode>> answers(kCalls);
    for (auto& answer : answers) {
      client.Call(
          server->endpoint(), kStream, Buffer("late"),
          {.deadline = clock_.Now() + Duration::Milliseconds(1)}, executor_,
          [&answer](absl::StatusOr<Buffer> result) { answer.set_value(result.status().code()); });
    }
    for (auto& answer : answers) {
      EXPECT_EQ(answer.get_future().get(), absl::StatusCode::kDeadlineExceeded);
    }
    go_on.set_value();
  }
  std::promise<absl::StatusCode> answered;
  client.Call(server->endpoint(), kStream, Buffer("in time"), {}, executor_,
              [&](absl::StatusOr<Buffer> result) { answered.set_value(result.status().code()); });
  EXPECT_EQ(answered.get_future().get(), absl::StatusCode::kInvalidArgument);
}

// Reading rests while much waits for the handler, and must not go on once that ended the stream.
TEST_F(GrpcLifecycleTest, AServerRefusesLargeMessagesAtOnce) {
  GrpcTransport transport;
  auto server = ListenAndRefuse(transport);
  ASSERT_NE(server, nullptr);
  GrpcTransport client;
  const Buffer large(std::string(size_t{2} << 20, 'x'));
  for (int round = 0; round < kRounds; ++round) {
    std::promise<absl::StatusCode> answered;
    client.Call(server->endpoint(), kStream, large, {}, executor_,
                [&](absl::StatusOr<Buffer> result) { answered.set_value(result.status().code()); });
    EXPECT_EQ(answered.get_future().get(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(GrpcLifecycleTest, AClientGoesWithAStreamThatIsAbandonedAsItConnects) {
  for (int round = 0; round < kRounds; ++round) {
    GrpcTransport transport;
    auto server = Listen(transport);
    ASSERT_NE(server, nullptr);
    GrpcTransport client;
    Closed closed;
    auto stream = client.OpenStream(server->endpoint(), kStream, {}, executor_, &closed);
    std::promise<void> destroyed;
    executor_.Post([&] {
      stream.reset();
      destroyed.set_value();
    });
    destroyed.get_future().wait();
  }
}

}  // namespace
}  // namespace conclave
