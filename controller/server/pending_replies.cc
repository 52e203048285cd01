#include "controller/server/pending_replies.h"

#include <glog/logging.h>

#include <utility>

namespace conclave::controller {

void PendingReplies::Wait(MetadataPosition position, Release release) {
  CHECK(waiting_.empty() || waiting_.back().position.index <= position.index);
  waiting_.push_back({position, std::move(release)});
}

void PendingReplies::CommittedTo(LogIndex index) {
  while (!waiting_.empty() && waiting_.front().position.index <= index) {
    Release release = std::move(waiting_.front().release);
    waiting_.pop_front();
    release(absl::OkStatus());
  }
}

void PendingReplies::FailAll(const absl::Status& status) {
  // Callbacks may add to the queue anew.
  std::deque<Waiting> failed = std::exchange(waiting_, {});
  for (Waiting& waiting : failed) waiting.release(status);
}

}  // namespace conclave::controller
