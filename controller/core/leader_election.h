#ifndef CONCLAVE_CONTROLLER_CORE_LEADER_ELECTION_H_
#define CONCLAVE_CONTROLLER_CORE_LEADER_ELECTION_H_

#include "absl/status/statusor.h"
#include "common/metadata/image.h"
#include "conclave/v1/admin.pb.h"
#include "controller/core/change.h"
#include "controller/core/replica_reports.h"

namespace conclave::controller {

// An operator's elections (KIP-460). Answers each partition by itself: ELECTION_NOT_NEEDED where a
// partition is led as asked already, ELIGIBLE_LEADERS_NOT_AVAILABLE where nobody can lead it so.
// UNKNOWN_TOPIC_OR_PARTITION and INVALID_REQUEST refuse the whole request.
absl::StatusOr<Change<v1::ElectLeadersResponse>> ElectLeaders(
    const MetadataImage& image, const ReplicaReports& reports,
    const v1::ElectLeadersRequest& request, Now now);

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_LEADER_ELECTION_H_
