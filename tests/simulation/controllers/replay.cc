// Runs seeds of the simulation; see replay_main.h.
#include <ostream>

#include "tests/simulation/controllers/replay_main.h"
#include "tests/simulation/controllers/simulation.h"

int main(int argc, char** argv) {
  return conclave::ReplayMain<conclave::control_sim::RunCounters>(
      argc, argv, [](uint64_t seed, std::ostream* trace) {
        return conclave::control_sim::RunSeed({.seed = seed, .trace = trace});
      });
}
