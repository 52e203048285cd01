#include "tests/simulation/raft/simulation.h"

#include <algorithm>
#include <string>

#include "common/random/random.h"
#include "tests/simulation/raft/nemesis.h"
#include "tests/simulation/raft/swarm.h"
#include "tests/simulation/raft/world.h"

namespace conclave::raft::sim {
namespace {

// Once faults have stopped: a few attempts at an election, and what lags must be sent.
constexpr Duration kRecovery = Duration::Seconds(15);

constexpr uint64_t kLeastEvents = 2'000;

// Whether one serves and everybody, observers included, has all that was committed by `at_least`.
bool IsWhole(World& world, LogIndex at_least) {
  const int leader = world.Leader();
  if (leader < 0 || !world.node(leader).core->leader_serves()) return false;
  for (int i = 0; i < world.nodes(); ++i) {
    if (!world.IsUp(i) || world.node(i).core->commit_index() < at_least) return false;
  }
  return true;
}

void RunLiveness(World& world, Nemesis& nemesis) {
  nemesis.Stop();
  world.HealAll();
  const MonotonicTime end = world.now() + kRecovery;
  // Something new must get through, to everybody.
  const LogIndex goal = world.last_committed() + 2;
  while (!world.violation() && world.now() < end) {
    world.RunUntil(world.now() + Duration::Milliseconds(50));
    if (IsWhole(world, goal)) return;
  }
  if (!world.violation()) {
    world.Break({kLiveness, "not whole " + std::to_string(kRecovery.milliseconds()) +
                                " ms after the last fault; index " + ToString(goal) +
                                " is not committed everywhere"});
  }
}

}  // namespace

RunResult RunSeed(const RunOptions& options) {
  const Random random(options.seed);
  const Swarm swarm = Swarm::Draw(random.Fork("swarm"));
  World world(options, swarm, random);
  world.Say(swarm.ToString());
  Nemesis nemesis(world, swarm, random);
  nemesis.Start();
  world.RunUntil(MonotonicTime() + swarm.safety_phase);
  // Where faults leave little going on, it takes longer to see as much.
  while (!world.violation() && world.counters().events < kLeastEvents) {
    world.RunUntil(world.now() + Duration::Seconds(1));
  }
  if (!world.violation()) RunLiveness(world, nemesis);

  for (int i = 0; i < world.nodes(); ++i) {
    if (world.IsUp(i)) world.Collect(*world.node(i).core);
  }
  world.counters().committed = world.last_committed().value();
  return {.violation = world.violation(),
          .counters = world.counters(),
          .trace_hash = world.trace().hash(),
          .simulated = world.now() - MonotonicTime()};
}

}  // namespace conclave::raft::sim
