#include "common/transport/builtin_services.h"

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/buffer/message_buffer.h"
#include "common/clock/system_clock.h"
#include "common/error/error.h"
#include "common/executor/thread_executor.h"
#include "common/transport/reflection.h"
#include "conclave/v1/errors.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"

namespace conclave {
namespace {

constexpr const char* kHealth = "grpc.health.v1.Health";
// The messages of both packages have the same wire form.
constexpr const char* kReflection[] = {"grpc.reflection.v1.ServerReflection",
                                       "grpc.reflection.v1alpha.ServerReflection"};

using HealthRequest = grpc::health::v1::HealthCheckRequest;
using HealthResponse = grpc::health::v1::HealthCheckResponse;

std::set<std::string> WithBuiltin(std::set<std::string> services) {
  services.insert(kHealth);
  services.insert(std::begin(kReflection), std::end(kReflection));
  return services;
}

}  // namespace

class BuiltinServices::Impl {
 public:
  explicit Impl(std::set<std::string> services)
      : services_(WithBuiltin(std::move(services))), reflection_(services_) {}
  // Nothing runs any more when the streams go.
  ~Impl() { executor_.Stop(); }

  std::vector<ServerMethod> Methods() {
    std::vector<ServerMethod> methods;
    methods.push_back(Method<HealthRequest>(
        absl::StrCat("/", kHealth, "/Check"),
        [this](Open& open, const HealthRequest& request) { Check(*open.stream, request); }));
    methods.push_back(Method<HealthRequest>(
        absl::StrCat("/", kHealth, "/Watch"),
        [this](Open& open, const HealthRequest& request) { Watch(open, request); }));
    for (const char* service : kReflection) {
      methods.push_back(Method<grpc::reflection::v1::ServerReflectionRequest>(
          absl::StrCat("/", service, "/ServerReflectionInfo"),
          [this](Open& open, const grpc::reflection::v1::ServerReflectionRequest& request) {
            open.stream->Send(SerializeToBuffer(reflection_.Answer(request)));
            // No more is read from who does not take the answers.
            if (open.stream->pending_bytes() > 0) open.stream->SetReading(false);
          }));
    }
    return methods;
  }

  void SetServing(bool serving) {
    executor_.Post([this, serving] {
      if (std::exchange(serving_, serving) == serving) return;
      for (auto& [open, owned] : open_) {
        if (open->watches && Knows(*open->watches)) TellHealth(*open->stream);
      }
    });
  }

 private:
  struct Open : StreamHandler {
    Open(Impl& services, std::unique_ptr<ServerStream> opened)
        : impl(services), stream(std::move(opened)) {}
    void OnMessage(Buffer message) override { on_message(*this, std::move(message)); }
    void OnDrained() override { stream->SetReading(true); }
    // Who watches sends one request, and goes on to listen.
    void OnHalfClose() override {
      if (!watches) stream->Finish(absl::OkStatus());
    }
    // Destroys this.
    void OnClosed(absl::Status) override { impl.open_.erase(this); }

    Impl& impl;
    const std::unique_ptr<ServerStream> stream;
    std::function<void(Open&, Buffer)> on_message;
    // The service whose health it is told.
    std::optional<std::string> watches;
  };

  template <class Request>
  ServerMethod Method(std::string name, std::function<void(Open&, const Request&)> take) {
    auto on_message = [name, take = std::move(take)](Open& open, const Buffer& message) {
      Request request;
      if (!ParseFromBuffer(message, &request)) {
        return open.stream->Finish(MakeError(
            v1::INVALID_REQUEST, absl::StrCat("these bytes are no request of ", name.substr(1))));
      }
      take(open, request);
    };
    return {std::move(name), &executor_,
            [this, on_message = std::move(on_message)](std::unique_ptr<ServerStream> stream) {
              auto open = std::make_unique<Open>(*this, std::move(stream));
              open->on_message = on_message;
              Open& kept = *open;
              open_.emplace(&kept, std::move(open));
              kept.stream->Start(&kept);
            }};
  }

  bool Knows(const std::string& service) const {
    return service.empty() || services_.contains(service);
  }

  void TellHealth(ServerStream& stream) {
    HealthResponse response;
    response.set_status(serving_ ? HealthResponse::SERVING : HealthResponse::NOT_SERVING);
    stream.Send(SerializeToBuffer(response));
  }

  void Check(ServerStream& stream, const HealthRequest& request) {
    if (!Knows(request.service())) {
      return stream.Finish(absl::NotFoundError(
          absl::StrCat("this server has no service \"", request.service(), "\"")));
    }
    TellHealth(stream);
    stream.Finish(absl::OkStatus());
  }

  void Watch(Open& open, const HealthRequest& request) {
    open.watches = request.service();
    if (Knows(request.service())) return TellHealth(*open.stream);
    HealthResponse response;
    response.set_status(HealthResponse::SERVICE_UNKNOWN);
    open.stream->Send(SerializeToBuffer(response));
  }

  const std::set<std::string> services_;
  const Reflection reflection_;
  bool serving_ = true;
  std::map<Open*, std::unique_ptr<Open>> open_;
  const SystemClock clock_;
  ThreadExecutor executor_{clock_, {.name = "builtin", .takes_lent_threads = true}};
};

BuiltinServices::BuiltinServices(std::set<std::string> services)
    : impl_(std::make_unique<Impl>(std::move(services))) {}
BuiltinServices::~BuiltinServices() = default;

std::vector<ServerMethod> BuiltinServices::Methods() { return impl_->Methods(); }
void BuiltinServices::SetServing(bool serving) { impl_->SetServing(serving); }

}  // namespace conclave
