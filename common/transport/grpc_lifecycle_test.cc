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
