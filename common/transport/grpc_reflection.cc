#include "common/transport/grpc_reflection.h"

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>
// Not reached by the header above, and what generated code uses.
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/buffer/message_buffer.h"
#include "common/transport/grpc_convert.h"
#include "common/transport/reflection.h"

namespace conclave::grpc_transport {
namespace {

constexpr const char* kPackages[] = {"grpc.reflection.v1", "grpc.reflection.v1alpha"};

// One stream: a request, its answer, and so on. Deletes itself once gRPC is done with it.
class ReflectionStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit ReflectionStream(std::shared_ptr<const Reflection> reflection)
      : reflection_(std::move(reflection)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    grpc::reflection::v1::ServerReflectionRequest request;
    if (!ParseFromBuffer(FromByteBuffer(request_), &request)) {
      return Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                                 "these bytes are no ServerReflectionRequest"));
    }
    response_ = ToByteBuffer(SerializeToBuffer(reflection_->Answer(request)));
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the client is gone"));
    request_.Clear();
    StartRead(&request_);
  }

  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<const Reflection> reflection_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

// The messages of both packages have the same wire form, so one class serves either.
class ReflectionService : public grpc::Service {
 public:
  ReflectionService(const std::string& package, std::shared_ptr<const Reflection> reflection)
      : method_(absl::StrCat("/", package, ".ServerReflection/ServerReflectionInfo")) {
    AddMethod(new grpc::internal::RpcServiceMethod(
        method_.c_str(), grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
    MarkMethodRawCallback(
        0, new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
               [reflection = std::move(reflection)](grpc::CallbackServerContext*) {
                 return new ReflectionStream(reflection);
               }));
  }

 private:
  const std::string method_;
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> ReflectionServices(std::set<std::string> services) {
  for (const char* package : kPackages) services.insert(absl::StrCat(package, ".ServerReflection"));
  const auto reflection = std::make_shared<const Reflection>(std::move(services));
  std::vector<std::unique_ptr<grpc::Service>> made;
  for (const char* package : kPackages) {
    made.push_back(std::make_unique<ReflectionService>(package, reflection));
  }
  return made;
}

}  // namespace conclave::grpc_transport
