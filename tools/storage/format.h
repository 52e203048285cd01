#ifndef CONCLAVE_TOOLS_STORAGE_FORMAT_H_
#define CONCLAVE_TOOLS_STORAGE_FORMAT_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_system.h"
#include "common/identity/identity.h"
#include "common/random/random.h"

namespace conclave::tools {

// Where a controller keeps its Raft log within its data directory.
inline constexpr char kRaftDirectoryName[] = "raft";

struct FormatRequest {
  std::string directory;
  NodeRole role = NodeRole::kBroker;
  int32_t node_id = -1;
  ClusterId cluster_id;
  // Of a controller that founds a quorum: `id@host:port#directory-id,…`, the same text on all. The
  // node's own directory id stands in it. Without, a controller is an observer.
  std::string initial_voters;
};

// Makes a directory a node's own, once. A directory that is formatted already or holds anything
// else is refused and left as it is. The identity file comes last: what was interrupted before it
// was there is taken up again by the next try.
absl::StatusOr<Identity> FormatStorage(FileSystem& fs, const FormatRequest& request,
                                       Random& random);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_STORAGE_FORMAT_H_
