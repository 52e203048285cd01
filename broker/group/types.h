#ifndef CONCLAVE_BROKER_GROUP_TYPES_H_
#define CONCLAVE_BROKER_GROUP_TYPES_H_

#include <cstdint>

#include "common/types/strong_int.h"
#include "common/types/time.h"

// The nouns of group coordination. Plain values.
namespace conclave::group {

// Rises with every change of a group; a member's epoch is the group's when what the member is to
// hold last changed. 0: before the first.
using GroupEpoch = StrongInt<struct GroupEpochTag, int32_t>;

// One stream of a member, named by the driver; never used again.
using StreamId = StrongInt<struct StreamIdTag, uint64_t>;

// One call that waits for its answer, named by the driver; never used again.
using RequestId = StrongInt<struct RequestIdTag, uint64_t>;

// Names an append. Rises by one with each, from 1.
using AppendTicket = StrongInt<struct AppendTicketTag, uint64_t>;

// Names a confirmation of leadership. Rises by one with each, from 1.
using ReadRound = StrongInt<struct ReadRoundTag, uint64_t>;

// What every input that depends on time brings along.
struct Now {
  // All time-outs.
  MonotonicTime mono;
  // What is written into records: since when a group is empty.
  WallTime wall;
};

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_TYPES_H_
