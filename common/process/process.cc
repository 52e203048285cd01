#include "common/process/process.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iostream>

#include "common/error/error.h"

namespace conclave {

void InitLogging(const char* program) {
  FLAGS_logtostderr = true;
  FLAGS_log_utc_time = true;
  google::InitGoogleLogging(program);
}

// System calls as such, and not instrumented: it runs before a sanitizer is set up.
__attribute__((no_sanitize("address", "thread", "undefined"))) void OpenStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (syscall(SYS_fcntl, fd, F_GETFD) >= 0) continue;
    // The least number that is free: those below are open by now. There is nobody to tell a
    // failure.
    if (syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR) != fd) _exit(1);
  }
}

namespace {

__attribute__((no_sanitize("address", "thread", "undefined"))) void BeforeLibraries(int, char**,
                                                                                    char**) {
  OpenStandardStreams();
}

__attribute__((section(".preinit_array"),
               used)) void (*const g_before_libraries)(int, char**, char**) = &BeforeLibraries;

}  // namespace

TerminationSignals::TerminationSignals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  PCHECK(pthread_sigmask(SIG_BLOCK, &set_, nullptr) == 0) << "pthread_sigmask";
  // A peer that closes its end shows as an error of the write.
  signal(SIGPIPE, SIG_IGN);
}

int TerminationSignals::Wait() const {
  int signal = 0;
  while (sigwait(&set_, &signal) != 0) {
  }
  return signal;
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return 0;
  std::cerr << Describe(status) << std::endl;
  return 1;
}

void EndProcess(const absl::Status& why) {
  std::cerr << "ending: " << Describe(why) << std::endl;
  google::FlushLogFiles(google::INFO);
  _exit(1);
}

}  // namespace conclave
