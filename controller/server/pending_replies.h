#ifndef CONCLAVE_CONTROLLER_SERVER_PENDING_REPLIES_H_
#define CONCLAVE_CONTROLLER_SERVER_PENDING_REPLIES_H_

#include <cstddef>
#include <deque>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "common/metadata/position.h"
#include "common/types/ids.h"

namespace conclave::controller {

// Replies that wait for the commit of what they were made from (architecture, rule 3). Not
// thread-safe.
class PendingReplies {
 public:
  // Called with OK once committed, else with why the outcome is not known.
  using Release = absl::AnyInvocable<void(absl::Status)>;

  // `release` is called when the entry at `position`, and so everything before it, is committed.
  // Positions do not fall from call to call.
  void Wait(MetadataPosition position, Release release);

  // The entries up to `index` are committed and are those of this leader's term.
  void CommittedTo(LogIndex index);

  // Leadership is lost: whether they will be committed is not known here.
  void FailAll(const absl::Status& status);

  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    MetadataPosition position;
    Release release;
  };

  std::deque<Waiting> waiting_;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_SERVER_PENDING_REPLIES_H_
