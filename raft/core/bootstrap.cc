#include "raft/core/bootstrap.h"

#include <memory>
#include <string>

namespace conclave::raft {

RecoveredState FormatInitialVoters(const VoterSet& voters) {
  RecoveredState state;
  state.hard_state.term = Term(1);
  state.entries.push_back({.index = LogIndex(1),
                           .term = Term(1),
                           .kind = EntryKind::kVoters,
                           .data = std::make_shared<const std::string>(voters.Serialize())});
  return state;
}

}  // namespace conclave::raft
