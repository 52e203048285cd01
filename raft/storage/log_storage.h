#ifndef CONCLAVE_RAFT_STORAGE_LOG_STORAGE_H_
#define CONCLAVE_RAFT_STORAGE_LOG_STORAGE_H_

#include <vector>

#include "absl/status/status.h"
#include "raft/core/ready.h"

namespace conclave::raft {

// Where a replica keeps its log, term and vote. Used by one thread at a time.
class LogStorage {
 public:
  virtual ~LogStorage() = default;

  // Applies the writes in order, as one atomic batch, and returns once that is on disk. Tickets
  // rise from call to call. After an error nothing may be assumed of what is on disk, no later call
  // succeeds, and the process is to end without acknowledging anything further (a failed sync is
  // never retried: semantics, section 1).
  virtual absl::Status Append(const std::vector<Write>& writes) = 0;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_STORAGE_LOG_STORAGE_H_
