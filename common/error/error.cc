#include "common/error/error.h"

#include <glog/logging.h>

#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace conclave {
namespace {

constexpr char kPayloadUrl[] = "type.googleapis.com/conclave.v1.Error";

std::optional<v1::Error> Payload(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload) return std::nullopt;
  v1::Error error;
  if (!error.ParseFromString(std::string(*payload))) return std::nullopt;
  return error;
}

v1::ErrorCode NearestCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return v1::NONE;
    case absl::StatusCode::kDeadlineExceeded:
      return v1::REQUEST_TIMED_OUT;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      return v1::NETWORK_EXCEPTION;
    case absl::StatusCode::kInvalidArgument:
      return v1::INVALID_REQUEST;
    case absl::StatusCode::kUnimplemented:
      return v1::UNSUPPORTED_VERSION;
    case absl::StatusCode::kDataLoss:
      return v1::STORAGE_ERROR;
    default:
      return v1::UNKNOWN_SERVER_ERROR;
  }
}

absl::Status StatusWith(v1::Error error) {
  absl::Status status(CanonicalCode(error.code()), error.message());
  status.SetPayload(kPayloadUrl, absl::Cord(error.SerializeAsString()));
  return status;
}

const google::protobuf::EnumValueOptions* OptionsOf(v1::ErrorCode code) {
  const auto* value = v1::ErrorCode_descriptor()->FindValueByNumber(code);
  return value == nullptr ? nullptr : &value->options();
}

}  // namespace

absl::Status MakeError(v1::ErrorCode code, std::string message) {
  CHECK_NE(code, v1::NONE) << "an error needs a code: " << message;
  v1::Error error;
  error.set_code(code);
  error.set_message(std::move(message));
  return StatusWith(std::move(error));
}

absl::Status MakeError(v1::ErrorCode code, std::string message, v1::NodeHint hint) {
  CHECK_NE(code, v1::NONE) << "an error needs a code: " << message;
  v1::Error error;
  error.set_code(code);
  error.set_message(std::move(message));
  *error.mutable_hint() = std::move(hint);
  return StatusWith(std::move(error));
}

v1::ErrorCode ErrorCodeOf(const absl::Status& status) {
  if (status.ok()) return v1::NONE;
  if (const auto error = Payload(status)) return error->code();
  return NearestCode(status.code());
}

v1::Error ErrorFromStatus(const absl::Status& status) {
  v1::Error error;
  if (status.ok()) return error;
  if (auto carried = Payload(status)) return *std::move(carried);
  error.set_code(NearestCode(status.code()));
  error.set_message(std::string(status.message()));
  return error;
}

absl::Status StatusFromError(const v1::Error& error) {
  if (error.code() == v1::NONE) return absl::OkStatus();
  if (v1::ErrorCode_IsValid(error.code())) return StatusWith(error);
  v1::Error known = error;
  known.set_code(v1::UNKNOWN_SERVER_ERROR);
  known.set_message(absl::StrCat("(error code ", static_cast<int>(error.code()),
                                 ", which this version does not know) ", error.message()));
  return StatusWith(std::move(known));
}

absl::StatusCode CanonicalCode(v1::ErrorCode code) {
  switch (code) {
    case v1::NONE:
      return absl::StatusCode::kOk;
    case v1::REQUEST_TIMED_OUT:
      return absl::StatusCode::kDeadlineExceeded;
    case v1::OVERLOADED:
    case v1::OUT_OF_RESOURCES:
      return absl::StatusCode::kResourceExhausted;
    case v1::UNSUPPORTED_VERSION:
      return absl::StatusCode::kUnimplemented;
    case v1::INVALID_REQUEST:
    case v1::INVALID_TOPIC:
    case v1::INVALID_PARTITIONS:
    case v1::INVALID_REPLICATION_FACTOR:
    case v1::INVALID_REPLICA_ASSIGNMENT:
    case v1::INVALID_CONFIG:
    case v1::TOPIC_DELETED:
    case v1::CORRUPT_MESSAGE:
    case v1::MESSAGE_TOO_LARGE:
    case v1::INVALID_TIMESTAMP:
    case v1::INVALID_RECORD:
    case v1::UNSUPPORTED_COMPRESSION_TYPE:
    case v1::INVALID_REQUIRED_ACKS:
    case v1::INVALID_GROUP_ID:
    case v1::UNSUPPORTED_ASSIGNOR:
    case v1::OFFSET_METADATA_TOO_LARGE:
      return absl::StatusCode::kInvalidArgument;
    case v1::TOPIC_ALREADY_EXISTS:
    case v1::DUPLICATE_BROKER_REGISTRATION:
      return absl::StatusCode::kAlreadyExists;
    case v1::UNKNOWN_TOPIC_OR_PARTITION:
    case v1::UNKNOWN_TOPIC_ID:
    case v1::GROUP_ID_NOT_FOUND:
    case v1::BROKER_ID_NOT_REGISTERED:
    case v1::UNKNOWN_MEMBER_ID:
      return absl::StatusCode::kNotFound;
    case v1::OFFSET_OUT_OF_RANGE:
    case v1::LOG_TRUNCATED:
      return absl::StatusCode::kOutOfRange;
    case v1::UNKNOWN_SERVER_ERROR:
      return absl::StatusCode::kInternal;
    case v1::STORAGE_ERROR:
      return absl::StatusCode::kDataLoss;
    default:
      return IsRetriable(code) ? absl::StatusCode::kUnavailable
                               : absl::StatusCode::kFailedPrecondition;
  }
}

bool IsRetriable(v1::ErrorCode code) {
  const auto* options = OptionsOf(code);
  return options != nullptr && options->GetExtension(v1::retriable);
}

bool HasNoEffect(v1::ErrorCode code) {
  const auto* options = OptionsOf(code);
  return options != nullptr && options->GetExtension(v1::no_effect);
}

std::string Describe(const absl::Status& status) {
  if (status.ok()) return "OK";
  const v1::Error error = ErrorFromStatus(status);
  const std::string& name = v1::ErrorCode_Name(error.code());
  return absl::StrCat(name.empty() ? absl::StrCat("error ", static_cast<int>(error.code())) : name,
                      ": ", error.message());
}

}  // namespace conclave
