#ifndef CONCLAVE_RAFT_STORAGE_TESTING_HISTORY_H_
#define CONCLAVE_RAFT_STORAGE_TESTING_HISTORY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/random/random.h"
#include "raft/core/bootstrap.h"
#include "raft/core/ready.h"
#include "raft/core/types.h"

namespace conclave::raft::testing {

Entry MakeEntry(uint64_t index, uint64_t term, std::string data, EntryKind kind = EntryKind::kData);
ReplicaKey MakeKey(int32_t node);

// All of a state in one text: equal texts are equal states.
std::string ToText(const RecoveredState& state);

// A naive storage, and a source of what a replica could write next: batches of terms, votes, cuts
// and entries, in which no two states are alike.
class History {
 public:
  explicit History(RecoveredState initial);

  // `max_data`: of an entry, in bytes; now and then one is as long as that.
  std::vector<Write> DrawBatch(Random& random, size_t max_data);
  // What DrawBatch returned is given to storage: one state more.
  void Apply(const std::vector<Write>& batch);

  // The state before everything, and after each batch applied.
  const std::vector<std::string>& states() const { return states_; }
  const RecoveredState& state() const { return state_; }

 private:
  Write DrawWrite(Random& random, size_t max_data);

  RecoveredState state_;  // as applied
  RecoveredState drawn_;  // as of the last write drawn
  std::vector<std::string> states_;
  uint64_t last_ticket_ = 0;
};

}  // namespace conclave::raft::testing

#endif  // CONCLAVE_RAFT_STORAGE_TESTING_HISTORY_H_
