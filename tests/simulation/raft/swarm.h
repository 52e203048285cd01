#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_SWARM_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_SWARM_H_

#include <cstddef>
#include <string>

#include "common/random/random.h"
#include "common/types/time.h"

namespace conclave::raft::sim {

// What one run does to its cluster. Each seed draws its own mix, in which most kinds of fault are
// absent (swarm testing, Groce et al. 2012): a fault that is always there hides what only shows
// without it.
struct Swarm {
  int voters = 3;
  int observers = 0;
  Duration safety_phase;

  // Of each message.
  double drop = 0;
  double duplicate = 0;
  double slow = 0;  // takes up to slow_delay instead
  Duration delay_min;
  Duration delay_max;
  Duration slow_delay;
  bool in_order = false;  // between two nodes

  // Of each write.
  Duration sync_min;
  Duration sync_max;
  double sync_slow = 0;  // takes up to sync_slow_delay instead
  Duration sync_slow_delay;

  // Mean times between faults; infinite for never.
  Duration between_crashes = Duration::Infinite();
  Duration between_partitions = Duration::Infinite();
  Duration between_one_way_cuts = Duration::Infinite();
  Duration between_stream_resets = Duration::Infinite();
  Duration between_stalls = Duration::Infinite();
  Duration between_pauses = Duration::Infinite();
  // A node loses power right after a message left it.
  double crash_after_send = 0;
  // The same, right after a granted vote left it: what it promised is all that is left of it.
  double crash_after_vote = 0;
  // A new leader is crashed or cut off within strike_within: terms end with tails of entries that
  // few others have.
  double strike_new_leader = 0;
  Duration strike_within;
  // Each such strike cuts the new leader off and lets the one before it back in.
  bool rolling_strikes = false;
  int wipes = 0;           // disks exchanged for empty ones, no majority of them
  double at_leader = 0.5;  // how often a fault is aimed at a leader
  Duration restart_max;    // a crashed node is down for up to this
  Duration fault_max;      // a cut, stall or pause lasts up to this
  double stream_reset_on_crash = 1;

  // The work.
  Duration between_proposals;
  int burst = 1;
  size_t data_bytes = 8;
  double reads = 0;  // for each proposal

  // Limits of the core.
  size_t max_append_bytes = 1 << 20;
  size_t max_in_flight_appends = 16;

  static Swarm Draw(Random random);
  // One line for a person.
  std::string ToString() const;
};

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_SWARM_H_
