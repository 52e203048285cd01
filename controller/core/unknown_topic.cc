#include "controller/core/unknown_topic.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/metadata/topic_name.h"

namespace conclave::controller {

absl::Status UnknownTopic(const std::string& name) {
  return MakeError(v1::UNKNOWN_TOPIC_OR_PARTITION,
                   absl::StrCat("topic '", absl::CHexEscape(name.substr(0, kMaxTopicNameLength)),
                                "' does not exist; list the topics to see which do"));
}

}  // namespace conclave::controller
