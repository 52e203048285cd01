#ifndef CONCLAVE_TOOLS_CLUSTER_READINESS_H_
#define CONCLAVE_TOOLS_CLUSTER_READINESS_H_

#include <vector>

#include "absl/status/status.h"
#include "common/fs/file_system.h"
#include "common/types/time.h"
#include "tools/cluster/local_cluster.h"

namespace conclave::tools {

// Returns once a controller of this cluster leads, every broker of it is active, and all processes
// still run. An error names what is still missing, with the end of its log; NOT_READY comes at once
// when a process has ended, INCONSISTENT_CLUSTER_ID at the end of the time when nodes of another
// cluster answer in the place of these.
absl::Status WaitUntilClusterIsReady(FileSystem& fs, const LocalCluster& cluster, Duration timeout);

// Returns once these nodes, which run, take part: controllers answer requests, be it with a
// refusal, and brokers are active. Where too few controllers run for a quorum, brokers too need
// only answer.
absl::Status WaitUntilNodesTakePart(FileSystem& fs, const LocalCluster& cluster,
                                    const std::vector<LocalNode*>& nodes, Duration timeout);

// INCONSISTENT_CLUSTER_ID if a node of another cluster answers at the address of one of these. One
// that does not answer soon is no error.
absl::Status CheckClusterId(const LocalCluster& cluster,
                            const std::vector<const LocalNode*>& nodes);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLUSTER_READINESS_H_
