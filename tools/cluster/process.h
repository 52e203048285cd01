#ifndef CONCLAVE_TOOLS_CLUSTER_PROCESS_H_
#define CONCLAVE_TOOLS_CLUSTER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/types/time.h"

namespace conclave::tools {

// A process as it can be found again later: the kernel gives a pid to another process some day, but
// not with the same start time.
struct ProcessId {
  pid_t pid = 0;
  // In clock ticks since the machine booted (proc(5), starttime).
  uint64_t start_time = 0;
};

// Starts `arguments[0]` in a session of its own, so that it outlives this process and its terminal;
// output and errors are appended to `log_file`.
absl::StatusOr<ProcessId> StartDetached(const std::vector<std::string>& arguments,
                                        const std::string& log_file);

enum class ProcessState {
  kGone,  // also one that ended and was not waited for
  kRunning,
  kStopped,  // by SIGSTOP
};
ProcessState StateOf(const ProcessId& process);

// NotFound if it is gone.
absl::Status SendSignal(const ProcessId& process, int signal);

// Whether it was gone within `timeout`.
bool WaitUntilGone(const ProcessId& process, Duration timeout);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLUSTER_PROCESS_H_
