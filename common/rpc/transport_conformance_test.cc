// What every Transport promises, held against gRPC and against the memory network alike, through
// the typed layer that all code uses.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock/system_clock.h"
#include "common/executor/thread_executor.h"
#include "common/rpc/admin_methods.h"
#include "common/rpc/client.h"
#include "common/rpc/produce_methods.h"
#include "common/rpc/server.h"
#include "common/transport/grpc_transport.h"
#include "common/transport/memory_transport.h"

namespace conclave {
namespace {

using StreamToServer = TypedServerStream<v1::ProduceRequest, v1::ProduceResponse>;
using StreamToClient = TypedClientStream<v1::ProduceRequest, v1::ProduceResponse>;

// Records what a client's end receives. Waits are for conditions; a hang is the test runner's.
class Receiver : public MessageHandler<v1::ProduceResponse> {
 public:
  void OnMessage(v1::ProduceResponse message) override {
    received.push_back(message.correlation_id());
  }
  void OnClosed(absl::Status status) override { closed.set_value(std::move(status)); }

  std::vector<int64_t> received;
  std::promise<absl::Status> closed;
};

// A server's end that answers each message with `copies` of it, and notes how it ended.
class Echo : public MessageHandler<v1::ProduceRequest> {
 public:
  explicit Echo(std::unique_ptr<StreamToServer> stream) : stream_(std::move(stream)) {
    stream_->Start(this);
  }
  void OnMessage(v1::ProduceRequest message) override {
    ++messages;
    v1::ProduceResponse response;
    response.set_correlation_id(message.correlation_id());
    stream_->Send(response);
  }
  void OnHalfClose() override { stream_->Finish(MakeError(v1::NOT_READY, "that was all")); }
  void OnClosed(absl::Status status) override { closed.set_value(std::move(status)); }
  void SetReading(bool reading) { stream_->SetReading(reading); }

  std::atomic<int> messages = 0;
  std::promise<absl::Status> closed;

 private:
  const std::unique_ptr<StreamToServer> stream_;
};

class TransportFixture : public ::testing::Test {
 protected:
  explicit TransportFixture(bool grpc) {
    if (grpc) {
      client_transport_ = std::make_unique<GrpcTransport>();
      server_transport_ = std::make_unique<GrpcTransport>();
    } else {
      client_transport_ = network_.Join("client");
      server_transport_ = network_.Join("server");
    }
  }

  ~TransportFixture() override {
    client_executor_.Stop();
    server_executor_.Stop();
    client_transport_.reset();
    server_.reset();
    server_transport_.reset();
  }

  void Listen(MethodTable table) {
    auto server = server_transport_->Listen("127.0.0.1:0", table.Take());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  void ListenWithEcho() {
    MethodTable table;
    table.Stream<v1::ProduceRequest, v1::ProduceResponse>(
        produce_methods::kProduceStream, server_executor_,
        [this](std::unique_ptr<StreamToServer> stream) {
          echo_ = std::make_unique<Echo>(std::move(stream));
          accepted_.set_value();
        });
    Listen(std::move(table));
  }

  // Everything about a stream's end happens on its executor.
  template <class Fn>
  void OnClient(Fn fn) {
    std::promise<void> done;
    client_executor_.Post([&] {
      fn();
      done.set_value();
    });
    done.get_future().wait();
  }

  std::unique_ptr<StreamToClient> Open(Receiver* receiver) {
    std::unique_ptr<StreamToClient> stream;
    OnClient([&] {
      stream = std::make_unique<StreamToClient>(*client_transport_, server_->endpoint(),
                                                produce_methods::kProduceStream, CallOptions{},
                                                client_executor_, receiver);
    });
    return stream;
  }

  absl::StatusOr<v1::DeleteTopicsResponse> CallDelete(const std::string& endpoint,
                                                      const v1::DeleteTopicsRequest& request,
                                                      CallOptions options = {}) {
    std::promise<absl::StatusOr<v1::DeleteTopicsResponse>> result;
    CallMethod<v1::DeleteTopicsRequest, v1::DeleteTopicsResponse>(
        *client_transport_, endpoint, admin_methods::kDeleteTopics, request, options,
        client_executor_, [&](auto answer) { result.set_value(std::move(answer)); });
    return result.get_future().get();
  }

  void Close(std::unique_ptr<StreamToClient> stream) {
    OnClient([&] { stream.reset(); });
  }

  SystemClock clock_;
  MemoryNetwork network_;
  ThreadExecutor client_executor_{clock_, {.name = "client"}};
  ThreadExecutor server_executor_{clock_, {.name = "server"}};
  std::unique_ptr<Echo> echo_;
  std::promise<void> accepted_;
  std::unique_ptr<Transport> client_transport_;
  std::unique_ptr<Transport> server_transport_;
  std::unique_ptr<Server> server_;
};

class TransportTest : public TransportFixture, public ::testing::WithParamInterface<bool> {
 protected:
  TransportTest() : TransportFixture(GetParam()) {}
};

// What only a network with threads of its own can show.
class GrpcOnlyTest : public TransportFixture {
 protected:
  GrpcOnlyTest() : TransportFixture(true) {}
};

TEST_P(TransportTest, AUnaryCallIsAnswered) {
  MethodTable table;
  table.Unary<v1::DeleteTopicsRequest, v1::DeleteTopicsResponse>(
      admin_methods::kDeleteTopics, server_executor_,
      [](v1::DeleteTopicsRequest request, CallContext context,
         Responder<v1::DeleteTopicsResponse> respond) {
        EXPECT_FALSE(context.peer.empty());
        v1::DeleteTopicsResponse response;
        for (const auto& name : request.names()) response.add_topics()->set_name(name + "!");
        respond(std::move(response));
      });
  Listen(std::move(table));
  v1::DeleteTopicsRequest request;
  request.add_names("a");
  request.add_names(std::string(8 << 20, 'x'));  // Beyond gRPC's own default limit.
  const auto response = CallDelete(server_->endpoint(), request);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->topics_size(), 2);
  EXPECT_EQ(response->topics(0).name(), "a!");
  EXPECT_EQ(response->topics(1).name().size(), (8u << 20) + 1);
}

TEST_P(TransportTest, AnErrorArrivesWithCodeMessageAndHint) {
  MethodTable table;
  table.Unary<v1::DeleteTopicsRequest, v1::DeleteTopicsResponse>(
      admin_methods::kDeleteTopics, server_executor_,
      [](v1::DeleteTopicsRequest, CallContext, Responder<v1::DeleteTopicsResponse> respond) {
        v1::NodeHint hint;
        hint.set_node_id(2);
        respond(MakeError(v1::NOT_CONTROLLER, "controller 2 leads", hint));
      });
  Listen(std::move(table));
  const auto response = CallDelete(server_->endpoint(), {});
  EXPECT_EQ(ErrorCodeOf(response.status()), v1::NOT_CONTROLLER);
  EXPECT_EQ(ErrorFromStatus(response.status()).hint().node_id(), 2);
  EXPECT_EQ(ErrorFromStatus(response.status()).message(), "controller 2 leads");
}

TEST_P(TransportTest, ARequestDroppedUnansweredIsNotReady) {
  MethodTable table;
  table.Unary<v1::DeleteTopicsRequest, v1::DeleteTopicsResponse>(
      admin_methods::kDeleteTopics, server_executor_,
      [](v1::DeleteTopicsRequest, CallContext, Responder<v1::DeleteTopicsResponse>) {});
  Listen(std::move(table));
  EXPECT_EQ(ErrorCodeOf(CallDelete(server_->endpoint(), {}).status()), v1::NOT_READY);
}

TEST_P(TransportTest, AMethodThatIsNotServedIsUnimplemented) {
  ListenWithEcho();
  const auto response = CallDelete(server_->endpoint(), {});
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnimplemented);
}

TEST_P(TransportTest, NobodyListeningIsUnavailable) {
  const std::string endpoint = "127.0.0.1:1";  // A port that only root could have given away.
  const auto response = CallDelete(endpoint, {});
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(response.status().message().find(endpoint), std::string::npos) << response.status();
}

TEST_P(TransportTest, TheDeadlineIsKeptAndSeenByTheServer) {
  std::vector<Responder<v1::DeleteTopicsResponse>> parked;
  MonotonicTime seen;
  MethodTable table;
  table.Unary<v1::DeleteTopicsRequest, v1::DeleteTopicsResponse>(
      admin_methods::kDeleteTopics, server_executor_,
      [&](v1::DeleteTopicsRequest, CallContext context,
          Responder<v1::DeleteTopicsResponse> respond) {
        seen = context.deadline;
        parked.push_back(std::move(respond));
      });
  Listen(std::move(table));
  const MonotonicTime deadline = clock_.Now() + Duration::Milliseconds(200);
  const auto response = CallDelete(server_->endpoint(), {}, {.deadline = deadline});
  EXPECT_EQ(ErrorCodeOf(response.status()), v1::REQUEST_TIMED_OUT);
  EXPECT_GE(clock_.Now(), deadline - Duration::Milliseconds(5));
  server_executor_.Stop();
  EXPECT_GT(seen, deadline - Duration::Milliseconds(100));
  EXPECT_LT(seen, deadline + Duration::Milliseconds(100));
  parked.clear();
}

TEST_P(TransportTest, AStreamKeepsOrderAndEndsWithTheServersStatusAfterAllMessages) {
  ListenWithEcho();
  Receiver receiver;
  auto stream = Open(&receiver);
  for (int64_t i = 0; i < 5000; ++i) {
    v1::ProduceRequest request;
    request.set_correlation_id(i);
    stream->Send(request);
  }
  stream->HalfClose();
  const absl::Status status = receiver.closed.get_future().get();
  EXPECT_EQ(ErrorCodeOf(status), v1::NOT_READY);
  ASSERT_EQ(receiver.received.size(), 5000u);
  for (int64_t i = 0; i < 5000; ++i) ASSERT_EQ(receiver.received[i], i);
  EXPECT_EQ(ErrorCodeOf(echo_->closed.get_future().get()), v1::NOT_READY);
  Close(std::move(stream));
}

TEST_P(TransportTest, AClientThatAbandonsItsStreamIsGoneForTheServer) {
  ListenWithEcho();
  Receiver receiver;
  auto stream = Open(&receiver);
  accepted_.get_future().wait();
  Close(std::move(stream));
  EXPECT_FALSE(echo_->closed.get_future().get().ok());
  std::future<absl::Status> silent = receiver.closed.get_future();
  client_executor_.Stop();
  EXPECT_EQ(silent.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

TEST_P(TransportTest, AServerThatStopsIsUnavailableForItsClients) {
  ListenWithEcho();
  Receiver receiver;
  auto stream = Open(&receiver);
  accepted_.get_future().wait();
  server_executor_.Stop();
  server_.reset();
  const absl::Status status = receiver.closed.get_future().get();
  EXPECT_FALSE(status.ok());
  Close(std::move(stream));
}

TEST_P(TransportTest, APausedReaderIsFeltAsBackpressure) {
  ListenWithEcho();
  Receiver receiver;
  auto stream = Open(&receiver);
  accepted_.get_future().wait();
  echo_->SetReading(false);
  v1::ProduceRequest request;
  request.add_partitions()->set_batch(std::string(1 << 20, 'b'));
  for (int i = 0; i < 64; ++i) stream->Send(request);
  // What the kernel and gRPC hold is bounded, so most of the 64 MiB stays here.
  EXPECT_GT(stream->pending_bytes(), 16u << 20);
  EXPECT_LT(echo_->messages, 16);
  echo_->SetReading(true);
  stream->HalfClose();
  receiver.closed.get_future().wait();
  EXPECT_EQ(receiver.received.size(), 64u);
  EXPECT_EQ(stream->pending_bytes(), 0u);
  Close(std::move(stream));
}

// Writes fail once the server has finished; what it had sent before is still to be read.
TEST_P(TransportTest, WhatTheServerSentBeforeItFinishedIsReadByWhoStillSends) {
  class Finishing : public MessageHandler<v1::ProduceRequest> {
   public:
    explicit Finishing(std::unique_ptr<StreamToServer> stream) : stream_(std::move(stream)) {
      stream_->Start(this);
    }
    void OnMessage(v1::ProduceRequest) override {
      if (std::exchange(finished_, true)) return;
      v1::ProduceResponse response;
      for (int i = 0; i < 3; ++i) {
        response.set_correlation_id(i);
        stream_->Send(response);
      }
      stream_->Finish(MakeError(v1::NOT_READY, "that was all"));
    }
    void OnClosed(absl::Status) override { closed.set_value(); }
    std::promise<void> closed;

   private:
    const std::unique_ptr<StreamToServer> stream_;
    bool finished_ = false;
  };
  std::unique_ptr<Finishing> finishing;
  std::promise<void> accepted;
  MethodTable table;
  table.Stream<v1::ProduceRequest, v1::ProduceResponse>(
      produce_methods::kProduceStream, server_executor_,
      [&](std::unique_ptr<StreamToServer> stream) {
        finishing = std::make_unique<Finishing>(std::move(stream));
        accepted.set_value();
      });
  Listen(std::move(table));
  Receiver receiver;
  auto stream = Open(&receiver);
  stream->SetReading(false);
  stream->Send(v1::ProduceRequest());
  accepted.get_future().wait();
  finishing->closed.get_future().wait();
  // Some of them find out that nobody takes them any more.
  for (int i = 0; i < 2000; ++i) stream->Send(v1::ProduceRequest());
  stream->SetReading(true);
  EXPECT_EQ(ErrorCodeOf(receiver.closed.get_future().get()), v1::NOT_READY);
  EXPECT_EQ(receiver.received, (std::vector<int64_t>{0, 1, 2}));
  Close(std::move(stream));
  server_executor_.Stop();
}

TEST_P(TransportTest, BytesThatAreNoMessageAreRefusedByName) {
  ListenWithEcho();
  class Raw : public StreamHandler {
   public:
    void OnMessage(Buffer) override {}
    void OnClosed(absl::Status status) override { closed.set_value(std::move(status)); }
    std::promise<absl::Status> closed;
  } raw;
  std::unique_ptr<ClientStream> stream;
  OnClient([&] {
    stream = client_transport_->OpenStream(
        server_->endpoint(), produce_methods::kProduceStream.name, {}, client_executor_, &raw);
  });
  stream->Send(Buffer(std::string("\xff\xff\xff\xff\xff")));
  const absl::Status status = raw.closed.get_future().get();
  EXPECT_EQ(ErrorCodeOf(status), v1::INVALID_REQUEST);
  EXPECT_NE(status.message().find("ProduceStream"), std::string::npos);
  OnClient([&] { stream.reset(); });
}

TEST_P(TransportTest, R41_APortInUseIsRefusedByName) {
  auto first = server_transport_->Listen("127.0.0.1:0", {});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = client_transport_->Listen((*first)->endpoint(), {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find((*first)->endpoint()), std::string::npos);
  EXPECT_NE(second.status().message().find("in use"), std::string::npos) << second.status();
}

TEST_F(GrpcOnlyTest, AFullQueueIsRefusedByName) {
  ThreadExecutor small(clock_, {.name = "small", .capacity = 1});
  MethodTable table;
  table.Unary<v1::DeleteTopicsRequest, v1::DeleteTopicsResponse>(
      admin_methods::kDeleteTopics, small,
      [](v1::DeleteTopicsRequest, CallContext, Responder<v1::DeleteTopicsResponse> respond) {
        respond(v1::DeleteTopicsResponse());
      });
  Listen(std::move(table));
  std::promise<void> running, release;
  small.Post([&] {
    running.set_value();
    release.get_future().wait();
  });
  running.get_future().wait();
  std::promise<void> waited;
  small.Post([&] { waited.set_value(); });
  const auto response = CallDelete(server_->endpoint(), {});
  EXPECT_EQ(ErrorCodeOf(response.status()), v1::OVERLOADED) << response.status();
  release.set_value();
  waited.get_future().wait();
  EXPECT_TRUE(CallDelete(server_->endpoint(), {}).ok());
  small.Stop();
  server_.reset();
}

INSTANTIATE_TEST_SUITE_P(Kinds, TransportTest, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Grpc" : "Memory"; });

}  // namespace
}  // namespace conclave
