#ifndef CONCLAVE_CONTROLLER_CORE_UNKNOWN_TOPIC_H_
#define CONCLAVE_CONTROLLER_CORE_UNKNOWN_TOPIC_H_

#include <string>

#include "absl/status/status.h"

namespace conclave::controller {

// UNKNOWN_TOPIC_OR_PARTITION for a name that a request gave, whatever bytes it has.
absl::Status UnknownTopic(const std::string& name);

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_UNKNOWN_TOPIC_H_
