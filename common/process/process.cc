#include "common/process/process.h"

#include <glog/logging.h>
#include <unistd.h>

#include <iostream>

#include "common/error/error.h"

namespace conclave {

void InitLogging(const char* program) {
  FLAGS_logtostderr = true;
  FLAGS_log_utc_time = true;
  google::InitGoogleLogging(program);
}

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
