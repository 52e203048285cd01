#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_SIM_NETWORK_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_SIM_NETWORK_H_

#include <optional>
#include <vector>

#include "common/random/random.h"
#include "common/types/time.h"
#include "tests/simulation/raft/swarm.h"

namespace conclave::raft::sim {

// Decides what becomes of messages between nodes numbered from 0. Keeps no messages itself.
class SimNetwork {
 public:
  SimNetwork(const Swarm& swarm, int nodes, Random random)
      : swarm_(swarm),
        nodes_(nodes),
        random_(std::move(random)),
        cut_(static_cast<size_t>(nodes * nodes), 0),
        last_(cut_.size()) {}

  // The moments at which copies of a message sent now arrive: none, one or two.
  std::vector<MonotonicTime> Route(int from, int to, MonotonicTime now);

  // Cuts count, so that overlapping faults heal one by one.
  void Cut(int from, int to) { ++cut_[Link(from, to)]; }
  void Mend(int from, int to) { --cut_[Link(from, to)]; }
  bool IsCut(int from, int to) const { return cut_[Link(from, to)] > 0; }
  // From now on: no cuts, no losses, short delays.
  void BecomePerfect();

 private:
  size_t Link(int from, int to) const { return static_cast<size_t>(from * nodes_ + to); }
  MonotonicTime Arrival(int from, int to, MonotonicTime now);

  Swarm swarm_;
  int nodes_;
  Random random_;
  std::vector<int> cut_;
  std::vector<MonotonicTime> last_;  // arrival on each link, for order
};

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_SIM_NETWORK_H_
