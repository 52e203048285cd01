#ifndef CONCLAVE_COMMON_METADATA_TOPIC_NAME_H_
#define CONCLAVE_COMMON_METADATA_TOPIC_NAME_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace conclave {

inline constexpr size_t kMaxTopicNameLength = 249;

// Names that start so are the cluster's own, as "__consumer_offsets" is.
inline constexpr std::string_view kInternalTopicPrefix = "__";

// INVALID_TOPIC unless `name` is 1 to 249 of [a-zA-Z0-9._-], and neither "." nor "..": a name is a
// folder's name too. Does not look at the reserved prefix.
absl::Status CheckTopicName(std::string_view name);

bool IsInternalTopicName(std::string_view name);

// '.' and '_' are one character in the names of metrics, so topics that differ in them alone
// collide: two names do if their canonical forms are equal.
std::string CanonicalTopicName(std::string_view name);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_METADATA_TOPIC_NAME_H_
