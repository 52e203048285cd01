#ifndef CONCLAVE_TESTS_HISTORY_TESTING_GENERATOR_H_
#define CONCLAVE_TESTS_HISTORY_TESTING_GENERATOR_H_

#include <cstdint>

#include "tests/history/history.h"

namespace conclave::history {

struct GeneratorOptions {
  uint64_t seed = 1;
  // While producers send; consumers stop a while before them, so that some records are never
  // polled.
  Time lasts = 20'000;
  // Clients of each kind: producers, consumers and members.
  int clients = 3;
};

// The logs of the history: topic "t", partitions from 0.
inline constexpr int kGeneratedLogs = 4;
// Only consumers without a group read this one.
inline constexpr int kUngroupedLog = 0;
// Old records are removed from this one alone.
inline constexpr int kRemovedFromLog = 3;

// What clients of a model of a cluster see that does everything right: several producers at a time,
// with any acks, of whose sends some fail, and of some nobody knows; consumers that seek; a group
// whose members come, go, stall and commit, and another without members, in which any offset is
// committed; leaders that change, as nodes hear of it late; replicas that are compared in the end.
// Everything overlaps in time. A function of the options alone.
History Generate(const GeneratorOptions& options);

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_TESTING_GENERATOR_H_
