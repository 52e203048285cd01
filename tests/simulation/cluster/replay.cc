// Runs one seed with a readable trace, and what the nodes log, on standard output.
#include <glog/logging.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/simulation/cluster/simulation.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: replay <seed> [<last seed>]\n";
    return 2;
  }
  const uint64_t first = std::strtoull(argv[1], nullptr, 10);
  const uint64_t last = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : first;
  const bool one = first == last;
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = one ? google::GLOG_INFO : google::GLOG_FATAL;
  google::InitGoogleLogging(argv[0]);
  bool failed = false;
  conclave::cluster_sim::RunCounters total;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const auto result =
        conclave::cluster_sim::RunSeed({.seed = seed, .trace = one ? &std::cerr : nullptr});
    total += result.counters;
    if (result.violation.empty()) continue;
    failed = true;
    std::cout << "seed " << seed << ": " << result.violation << std::endl;
  }
  std::cout << total.ToString() << std::endl;
  return failed ? 1 : 0;
}
