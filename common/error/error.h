#ifndef CONCLAVE_COMMON_ERROR_ERROR_H_
#define CONCLAVE_COMMON_ERROR_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "conclave/v1/errors.pb.h"

// The bridge between absl::Status, which code passes around, and the one error enumeration of the
// wire. A status made here carries its v1::Error as a payload, so that code, message and hint go
// through any number of hands, and over the wire, unchanged.
namespace conclave {

// `message` names the thing, the cause and the next step. `code` is not NONE.
absl::Status MakeError(v1::ErrorCode code, std::string message);

// The same, telling where the caller should have gone.
absl::Status MakeError(v1::ErrorCode code, std::string message, v1::NodeHint hint);

// NONE for OK. A status that was not made here maps to the nearest code: DEADLINE_EXCEEDED to
// REQUEST_TIMED_OUT, UNAVAILABLE to NETWORK_EXCEPTION, INVALID_ARGUMENT to INVALID_REQUEST, else
// UNKNOWN_SERVER_ERROR.
v1::ErrorCode ErrorCodeOf(const absl::Status& status);

// The wire's form of any status; code NONE and nothing else for OK.
v1::Error ErrorFromStatus(const absl::Status& status);

// OK for code NONE. A code that this build does not know becomes UNKNOWN_SERVER_ERROR and is named
// in the message.
absl::Status StatusFromError(const v1::Error& error);

// The gRPC (and absl) code that stands for `code` where only a canonical one can be carried.
absl::StatusCode CanonicalCode(v1::ErrorCode code);

// Both read the enumeration's own options (errors.proto).
bool IsRetriable(v1::ErrorCode code);
bool HasNoEffect(v1::ErrorCode code);

inline bool IsRetriable(const absl::Status& status) { return IsRetriable(ErrorCodeOf(status)); }

// "NOT_CONTROLLER: this is controller 2; …": what a person or a log sees. "OK" for OK.
std::string Describe(const absl::Status& status);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_ERROR_ERROR_H_
