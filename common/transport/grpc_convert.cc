#include "common/transport/grpc_convert.h"

#include <grpcpp/support/slice.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "conclave/v1/errors.pb.h"

namespace conclave::grpc_transport {
namespace {

// Below this, a copy costs less than the bookkeeping of sharing.
constexpr size_t kCopyBelowBytes = 256;

using Owner = std::shared_ptr<const void>;

}  // namespace

grpc::ByteBuffer ToByteBuffer(const Buffer& buffer) {
  std::vector<grpc::Slice> slices;
  slices.reserve(buffer.slices().size());
  for (const Slice& slice : buffer.slices()) {
    if (slice.size() < kCopyBelowBytes) {
      slices.emplace_back(slice.data(), slice.size());
    } else {
      slices.emplace_back(
          const_cast<char*>(slice.data()), slice.size(),
          [](void* owner) { delete static_cast<Owner*>(owner); }, new Owner(slice.owner()));
    }
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

Buffer FromByteBuffer(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  Buffer buffer;
  // Dump fails only for an invalid buffer, which a completed read never leaves.
  if (!bytes.Valid() || !bytes.Dump(&slices).ok()) return buffer;
  for (grpc::Slice& slice : slices) {
    // The bytes of a small slice lie in the grpc::Slice itself: take the address of the owner's.
    auto owner = std::make_shared<grpc::Slice>(std::move(slice));
    const char* data = reinterpret_cast<const char*>(owner->begin());
    const size_t size = owner->size();
    buffer.Append(Slice(std::move(owner), data, size));
  }
  return buffer;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const v1::Error error = ErrorFromStatus(status);
  v1::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(error.message());
  details.add_details()->PackFrom(error);
  // gRPC's codes and absl's are the same numbers.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), error.message(),
                      details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status, const std::string& where) {
  if (status.ok()) return absl::OkStatus();
  v1::StatusDetails details;
  if (details.ParseFromString(status.error_details())) {
    for (const auto& any : details.details()) {
      v1::Error error;
      if (any.UnpackTo(&error) && error.code() != v1::NONE) return StatusFromError(error);
    }
  }
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const std::string reason = absl::StrCat(where, ": ", status.error_message());
  // What a server answers where nothing serves the method; ours elsewhere say it with details.
  if (code == absl::StatusCode::kUnimplemented) {
    return MakeError(v1::UNSUPPORTED_VERSION,
                     absl::StrCat(reason, status.error_message().empty() ? "it" : "; it",
                                  " is a server of another kind, or of another version"));
  }
  return absl::Status(code, reason);
}

}  // namespace conclave::grpc_transport
