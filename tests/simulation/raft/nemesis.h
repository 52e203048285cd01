#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_NEMESIS_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_NEMESIS_H_

#include "common/random/random.h"
#include "tests/simulation/raft/swarm.h"
#include "tests/simulation/raft/world.h"

namespace conclave::raft::sim {

// Does to a world what the swarm says, until it is stopped, and gives it work to do.
class Nemesis {
 public:
  // `world` outlives this, and this the world's events.
  Nemesis(World& world, const Swarm& swarm, const Random& random);

  void Start();
  // No more faults. Work goes on.
  void Stop() { stopped_ = true; }

 private:
  using Fault = void (Nemesis::*)();

  void Every(Duration mean, Fault fault);
  void Schedule(Duration mean, Fault fault);
  void Work();
  void ProposeTo(int node, int count);
  int Target();
  Duration HowLong();
  void CutFor(int from, int to, Duration time);

  void StrikeNewLeader(int leader);
  void CutOff(int node, Duration time);
  void RollOn(int node);
  void SetCut(int node, bool cut);
  void ResetStreamsFrom(int node);
  void CrashOne();
  void Partition();
  void OneWayCut();
  void ResetOne();
  void StallDisk();
  void PauseOne();
  void WipeOne();

  World& world_;
  const Swarm swarm_;
  Random random_;
  Random work_;
  bool stopped_ = false;
  uint64_t proposals_ = 0;
  int wipes_ = 0;
  int rolled_ = -1;  // cut off by the last rolling strike
};

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_NEMESIS_H_
