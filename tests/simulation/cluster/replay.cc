// Runs seeds of the simulation; see replay_main.h.
#include <ostream>

#include "tests/simulation/cluster/simulation.h"
#include "tests/simulation/controllers/replay_main.h"

int main(int argc, char** argv) {
  return conclave::ReplayMain<conclave::cluster_sim::RunCounters>(
      argc, argv, [](uint64_t seed, std::ostream* trace) {
        return conclave::cluster_sim::RunSeed({.seed = seed, .trace = trace});
      });
}
