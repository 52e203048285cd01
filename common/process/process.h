#ifndef CONCLAVE_COMMON_PROCESS_PROCESS_H_
#define CONCLAVE_COMMON_PROCESS_PROCESS_H_

#include <signal.h>

#include "absl/status/status.h"

// What a server's main needs around the server itself.
namespace conclave {

// Log messages go to stderr, one a line, with UTC times.
void InitLogging(const char* program);

// Opens /dev/null in place of standard streams that the process was started without: the next files
// that are opened would take their numbers, and messages meant for stderr would go into a log. Done
// by itself before main, and before shared libraries are initialized: gRPC's opens a file then.
void OpenStandardStreams();

// SIGTERM and SIGINT, taken in by whoever waits. Made before any thread is: threads inherit that
// the signals are blocked.
class TerminationSignals {
 public:
  TerminationSignals();
  // Returns the signal that came.
  int Wait() const;

 private:
  sigset_t set_;
};

// Says why on stderr and in the log; 0 for OK, else 1.
int ExitCodeOf(const absl::Status& status);

// Ends the process at once, with exit code 1 and without running destructors: nothing may be
// written or answered any more.
[[noreturn]] void EndProcess(const absl::Status& why);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_PROCESS_PROCESS_H_
