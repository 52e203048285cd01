#include <sstream>

#include "tests/simulation/raft/simulation.h"

namespace conclave::raft::sim {
namespace {

struct Field {
  const char* name;
  uint64_t RunCounters::*value;
};

constexpr Field kFields[] = {
    {"events", &RunCounters::events},
    {"elections won", &RunCounters::elections_won},
    {"truncations", &RunCounters::truncations},
    {"committed", &RunCounters::committed},
    {"reads confirmed", &RunCounters::reads_confirmed},
    {"crashes", &RunCounters::crashes},
    {"crashes that lost writes", &RunCounters::crashes_that_lost_writes},
    {"partitions", &RunCounters::partitions},
    {"one-way cuts", &RunCounters::one_way_cuts},
    {"disk stalls", &RunCounters::disk_stalls},
    {"pauses", &RunCounters::pauses},
    {"wipes", &RunCounters::wipes},
    {"stream resets", &RunCounters::stream_resets},
    {"messages lost", &RunCounters::messages_lost},
    {"messages doubled", &RunCounters::messages_doubled},
    {"pre-votes refused", &RunCounters::pre_votes_refused},
    {"check-quorum resignations", &RunCounters::quorum_resignations},
    {"stalled-sync resignations", &RunCounters::stall_resignations},
};

struct FaultName {
  DriverFault fault;
  const char* name;
};

constexpr FaultName kFaults[] = {
    {DriverFault::kNone, "none"},
    {DriverFault::kVoteForgotten, "vote-forgotten"},
    {DriverFault::kAckBeforeSync, "ack-before-sync"},
    {DriverFault::kLeaderCountsUnsynced, "leader-counts-unsynced"},
};

}  // namespace

RunCounters& RunCounters::operator+=(const RunCounters& other) {
  for (const Field& field : kFields) this->*field.value += other.*field.value;
  return *this;
}

std::string RunCounters::ToString() const {
  std::ostringstream out;
  for (const Field& field : kFields) {
    out << (field.value == kFields[0].value ? "" : ", ") << field.name << " " << this->*field.value;
  }
  return out.str();
}

const char* DriverFaultName(DriverFault fault) {
  for (const FaultName& known : kFaults) {
    if (known.fault == fault) return known.name;
  }
  return "unknown";
}

std::optional<DriverFault> ParseDriverFault(const std::string& name) {
  for (const FaultName& known : kFaults) {
    if (known.name == name) return known.fault;
  }
  return std::nullopt;
}

std::string ReplayCommand(const RunOptions& options) {
  std::string command =
      "bazel run //tests/simulation/raft:replay -- --trace --seed=" + std::to_string(options.seed);
  if (options.fault != DriverFault::kNone) {
    command += std::string(" --fault=") + DriverFaultName(options.fault);
  }
  return command;
}

}  // namespace conclave::raft::sim
