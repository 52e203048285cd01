#ifndef CONCLAVE_CLIENT_ADMIN_LEADER_OFFSETS_H_
#define CONCLAVE_CLIENT_ADMIN_LEADER_OFFSETS_H_

#include <map>
#include <string>

#include "absl/functional/any_invocable.h"
#include "common/executor/executor.h"
#include "common/transport/transport.h"
#include "common/types/time.h"
#include "conclave/v1/admin.pb.h"

namespace conclave {

// Asks the leader of each partition described for the log's bounds, and fills them in; those of a
// leader that does not answer by `deadline` stay absent. `brokers` has endpoints by broker id.
// `done` is called on the executor, once, unless that stops first; transport and executor outlive
// the calls.
void FillLeaderOffsets(v1::DescribeTopicsResponse topics,
                       const std::map<int32_t, std::string>& brokers, MonotonicTime deadline,
                       Transport& transport, Executor& executor,
                       absl::AnyInvocable<void(v1::DescribeTopicsResponse)> done);

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_ADMIN_LEADER_OFFSETS_H_
