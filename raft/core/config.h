#ifndef CONCLAVE_RAFT_CORE_CONFIG_H_
#define CONCLAVE_RAFT_CORE_CONFIG_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/types/ids.h"
#include "common/types/time.h"
#include "raft/core/types.h"

namespace conclave::raft {

// Who this replica is and within what limits it works. Fixed for its life.
struct Config {
  ClusterId cluster_id;
  ReplicaKey self;
  // host:port where other controllers reach this one; told to the leader by an observer.
  std::string endpoint;
  // Nodes that an observer announces itself to, besides the voters it knows of from its log.
  std::vector<NodeId> bootstrap_nodes;

  // A leader's silence towards a follower ends after this.
  Duration heartbeat_interval = Duration::Milliseconds(200);
  // A follower gives its leader up after a time drawn from [min, max] anew for each attempt. `min`
  // is also how long one that heard from the leader refuses pre-votes; `max` how long a leader goes
  // on without a majority, or with its own write not yet durable.
  Duration election_timeout_min = Duration::Milliseconds(500);
  Duration election_timeout_max = Duration::Milliseconds(1000);
  // A leader forgets an observer that it has not heard from for this long.
  Duration observer_silence = Duration::Seconds(5);

  // Entries of one append, in bytes; one entry always goes, however large.
  size_t max_append_bytes = 1 << 20;
  // Appends with entries that one peer has not answered yet.
  size_t max_in_flight_appends = 16;
  // Largest data of one proposal, in bytes.
  size_t max_proposal_bytes = 8 << 20;
  // Entries a leader holds above its commit index, in bytes, before it refuses proposals.
  size_t max_uncommitted_bytes = 64 << 20;
  // Committed entries handed out by one Ready, in bytes; one always goes.
  size_t max_committed_bytes = 4 << 20;
  size_t max_pending_reads = 10'000;
  size_t max_observers = 64;
  // Rejections described by one Ready; more are only counted.
  size_t max_rejections = 32;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_CONFIG_H_
