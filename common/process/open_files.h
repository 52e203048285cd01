#ifndef CONCLAVE_COMMON_PROCESS_OPEN_FILES_H_
#define CONCLAVE_COMMON_PROCESS_OPEN_FILES_H_

#include "absl/status/status.h"

// The limit of open files (RLIMIT_NOFILE), of which files of logs, connections and gRPC itself live
// together. Each of the first two leaves some to the others, so that none brings the process down.
namespace conclave {

// Raises the limit to what the system allows this process: partitions and connections take several
// each. Says what it was and is.
void RaiseOpenFilesLimit();

// OK where the limit leaves a server room to work at all; the error names what it needs.
absl::Status CheckOpenFilesLimit();

// Whether so many more descriptors could be had when this one, new, was: the system gives the least
// number that is free.
bool LeavesDescriptors(int fd, int others);

// What gRPC takes for itself, files that are open for a moment, and connections to other nodes.
inline constexpr int kDescriptorsBesideConnections = 16;

// What files of logs leave: the above, and a quarter of the limit, 32 to 1,024, to connections.
int DescriptorsBesideLogs();

}  // namespace conclave

#endif  // CONCLAVE_COMMON_PROCESS_OPEN_FILES_H_
