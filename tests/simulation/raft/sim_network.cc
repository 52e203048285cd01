#include "tests/simulation/raft/sim_network.h"

#include <algorithm>

namespace conclave::raft::sim {

std::vector<MonotonicTime> SimNetwork::Route(int from, int to, MonotonicTime now) {
  if (IsCut(from, to) || random_.Chance(swarm_.drop)) return {};
  std::vector<MonotonicTime> arrivals = {Arrival(from, to, now)};
  if (random_.Chance(swarm_.duplicate)) arrivals.push_back(Arrival(from, to, now));
  return arrivals;
}

MonotonicTime SimNetwork::Arrival(int from, int to, MonotonicTime now) {
  const Duration longest = random_.Chance(swarm_.slow) ? swarm_.slow_delay : swarm_.delay_max;
  MonotonicTime at =
      now + Duration::Nanoseconds(random_.Between(
                swarm_.delay_min.nanoseconds(), std::max(swarm_.delay_min, longest).nanoseconds()));
  if (swarm_.in_order) at = last_[Link(from, to)] = std::max(at, last_[Link(from, to)]);
  return at;
}

void SimNetwork::BecomePerfect() {
  std::fill(cut_.begin(), cut_.end(), 0);
  swarm_.drop = swarm_.duplicate = swarm_.slow = 0;
  swarm_.delay_min = Duration::Microseconds(200);
  swarm_.delay_max = Duration::Milliseconds(2);
}

}  // namespace conclave::raft::sim
