#ifndef CONCLAVE_CONTROLLER_CORE_TOPIC_CHANGES_H_
#define CONCLAVE_CONTROLLER_CORE_TOPIC_CHANGES_H_

#include "absl/status/statusor.h"
#include "common/metadata/image.h"
#include "conclave/v1/admin.pb.h"
#include "controller/core/change.h"
#include "controller/core/replica_reports.h"
#include "controller/core/topic_creation.h"

namespace conclave::controller {

// Answers each name by itself, in the request's order. Brokers remove what they hold when they see
// the record, or when they are back.
Change<v1::DeleteTopicsResponse> DeleteTopics(const MetadataImage& image,
                                              const v1::DeleteTopicsRequest& request,
                                              Requester requester, Now now);

// Of topics. Takes effect as a whole or not at all. Allowing unclean election elects at once where
// there is no leader. With another minimum of in-sync replicas the ELRs are forgotten; with
// flush.policy=replicated unclean stops count from now on.
absl::StatusOr<Change<v1::AlterConfigsResponse>> AlterConfigs(
    const MetadataImage& image, const ReplicaReports& reports,
    const v1::AlterConfigsRequest& request, Now now);

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_TOPIC_CHANGES_H_
