#ifndef CONCLAVE_TOOLS_CLUSTER_READINESS_H_
#define CONCLAVE_TOOLS_CLUSTER_READINESS_H_

#include "absl/status/status.h"
#include "common/fs/file_system.h"
#include "common/types/time.h"
#include "tools/cluster/local_cluster.h"

namespace conclave::tools {

// Returns once a controller leads and every broker of the cluster is active. An error names what is
// still missing, with the end of its log; it comes at once when a process has ended.
absl::Status WaitUntilClusterIsReady(FileSystem& fs, const LocalCluster& cluster, Duration timeout);

// Returns once the node answers requests, be it with a refusal.
absl::Status WaitUntilNodeAnswers(FileSystem& fs, const LocalNode& node, Duration timeout);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLUSTER_READINESS_H_
