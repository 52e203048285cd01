#include "common/transport/builtin_services.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "common/buffer/message_buffer.h"
#include "common/clock/system_clock.h"
#include "common/error/error.h"
#include "common/executor/thread_executor.h"
#include "common/transport/memory_transport.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"

namespace conclave {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

// Keeps what comes on a stream until it is asked for.
template <class Response>
class Inbox : public StreamHandler {
 public:
  void OnMessage(Buffer message) override {
    Response response;
    EXPECT_TRUE(ParseFromBuffer(message, &response));
    std::lock_guard lock(mutex_);
    responses_.push_back(std::move(response));
    came_.notify_all();
  }
  void OnClosed(absl::Status status) override { closed.set_value(std::move(status)); }

  Response Next() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return !responses_.empty(); });
    Response response = std::move(responses_.front());
    responses_.pop_front();
    return response;
  }

  std::promise<absl::Status> closed;

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Response> responses_;
};

class BuiltinServicesTest : public ::testing::Test {
 protected:
  BuiltinServicesTest() {
    auto server = transport_->Listen("127.0.0.1:0", services_->Methods());
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~BuiltinServicesTest() override {
    executor_.Stop();
    server_.reset();
    services_.reset();
  }

  absl::StatusOr<HealthCheckResponse::ServingStatus> Check(const Buffer& request) {
    std::promise<absl::StatusOr<Buffer>> answered;
    transport_->Call(server_->endpoint(), "/grpc.health.v1.Health/Check", request, {}, executor_,
                     [&](absl::StatusOr<Buffer> answer) { answered.set_value(std::move(answer)); });
    const auto answer = answered.get_future().get();
    if (!answer.ok()) return answer.status();
    HealthCheckResponse response;
    EXPECT_TRUE(ParseFromBuffer(*answer, &response));
    return response.status();
  }
  absl::StatusOr<HealthCheckResponse::ServingStatus> CheckService(const std::string& name) {
    HealthCheckRequest request;
    request.set_service(name);
    return Check(SerializeToBuffer(request));
  }

  std::unique_ptr<ClientStream> Open(const std::string& method, StreamHandler* handler) {
    std::promise<std::unique_ptr<ClientStream>> opened;
    executor_.Post([&] {
      opened.set_value(transport_->OpenStream(server_->endpoint(), method, {}, executor_, handler));
    });
    return opened.get_future().get();
  }
  void Close(std::unique_ptr<ClientStream> stream) {
    std::promise<void> closed;
    executor_.Post([&] {
      stream.reset();
      closed.set_value();
    });
    closed.get_future().wait();
  }

  const SystemClock clock_;
  MemoryNetwork network_;
  ThreadExecutor executor_{clock_, {.name = "client"}};
  std::unique_ptr<Transport> transport_ = network_.Join("node");
  std::unique_ptr<BuiltinServices> services_ =
      std::make_unique<BuiltinServices>(std::set<std::string>{"conclave.v1.AdminService"});
  std::unique_ptr<Server> server_;
};

TEST_F(BuiltinServicesTest, HealthIsTheServersByAnyOfItsNames) {
  for (const bool serving : {true, false, true}) {
    services_->SetServing(serving);
    for (const char* name : {"", "conclave.v1.AdminService", "grpc.health.v1.Health"}) {
      const auto status = CheckService(name);
      ASSERT_TRUE(status.ok()) << status.status();
      EXPECT_EQ(*status, serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
    }
  }
}

TEST_F(BuiltinServicesTest, AServiceThatIsNotThereIsNotFoundByName) {
  const auto status = CheckService("conclave.v1.Nothing");
  EXPECT_EQ(status.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.status().message().find("conclave.v1.Nothing"), std::string::npos);
}

TEST_F(BuiltinServicesTest, BytesThatAreNoRequestAreRefusedByName) {
  const auto status = Check(Buffer(std::string("\xff\xff\xff")));
  EXPECT_EQ(ErrorCodeOf(status.status()), v1::INVALID_REQUEST);
  EXPECT_NE(status.status().message().find("grpc.health.v1.Health/Check"), std::string::npos);
}

TEST_F(BuiltinServicesTest, WhoWatchesIsToldOfEachChangeOnce) {
  Inbox<HealthCheckResponse> inbox;
  auto stream = Open("/grpc.health.v1.Health/Watch", &inbox);
  stream->Send(SerializeToBuffer(HealthCheckRequest()));
  // As generated code does, for a method that takes one request.
  stream->HalfClose();
  EXPECT_EQ(inbox.Next().status(), HealthCheckResponse::SERVING);
  services_->SetServing(false);
  services_->SetServing(false);
  services_->SetServing(true);
  EXPECT_EQ(inbox.Next().status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(inbox.Next().status(), HealthCheckResponse::SERVING);
  Close(std::move(stream));
  // Nobody is told any more.
  services_->SetServing(false);
  EXPECT_EQ(*CheckService(""), HealthCheckResponse::NOT_SERVING);
}

TEST_F(BuiltinServicesTest, WhoWatchesNoServiceIsToldSoAndGoesOnToWatch) {
  Inbox<HealthCheckResponse> inbox;
  auto stream = Open("/grpc.health.v1.Health/Watch", &inbox);
  HealthCheckRequest request;
  request.set_service("conclave.v1.Nothing");
  stream->Send(SerializeToBuffer(request));
  EXPECT_EQ(inbox.Next().status(), HealthCheckResponse::SERVICE_UNKNOWN);
  services_->SetServing(false);
  EXPECT_EQ(*CheckService(""), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(inbox.closed.get_future().wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
  Close(std::move(stream));
}

TEST_F(BuiltinServicesTest, ReflectionAnswersEachRequestOfAStreamUnderEitherName) {
  for (const char* package : {"grpc.reflection.v1", "grpc.reflection.v1alpha"}) {
    Inbox<ServerReflectionResponse> inbox;
    auto stream =
        Open(std::string("/") + package + ".ServerReflection/ServerReflectionInfo", &inbox);
    ServerReflectionRequest request;
    request.set_list_services("");
    for (int i = 0; i < 2; ++i) {
      stream->Send(SerializeToBuffer(request));
      std::set<std::string> services;
      const ServerReflectionResponse response = inbox.Next();
      for (const auto& service : response.list_services_response().service()) {
        services.insert(service.name());
      }
      EXPECT_EQ(services,
                (std::set<std::string>{"conclave.v1.AdminService", "grpc.health.v1.Health",
                                       "grpc.reflection.v1.ServerReflection",
                                       "grpc.reflection.v1alpha.ServerReflection"}));
    }
    stream->HalfClose();
    EXPECT_TRUE(inbox.closed.get_future().get().ok());
    Close(std::move(stream));
  }
}

}  // namespace
}  // namespace conclave
