#ifndef CONCLAVE_CONTROLLER_CORE_ISR_CHANGES_H_
#define CONCLAVE_CONTROLLER_CORE_ISR_CHANGES_H_

#include "absl/status/statusor.h"
#include "common/metadata/image.h"
#include "conclave/v1/controller.pb.h"
#include "controller/core/change.h"

namespace conclave::controller {

// Leaders propose ISRs (KIP-497); each partition is answered by itself, in the request's order.
//
// A member is named with the broker epoch under which its position was acknowledged (KIP-903): one
// that has been started again since, is fenced, or is on its way out and would be added, is refused
// as INELIGIBLE_REPLICA. The request as a whole is refused for a stale epoch of the leader itself.
absl::StatusOr<Change<v1::AlterPartitionResponse>> AlterPartition(
    const MetadataImage& image, const v1::AlterPartitionRequest& request, Now now);

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_ISR_CHANGES_H_
