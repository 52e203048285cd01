#include "tools/cluster/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/clock/system_clock.h"
#include "common/error/error.h"

namespace conclave::tools {
namespace {

struct ProcStat {
  char state;
  uint64_t start_time;
};

std::optional<ProcStat> ReadProcStat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The name, in parentheses, may hold anything: the fields are counted from its end.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  ProcStat stat{};
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> stat.start_time;
  if (!fields) return std::nullopt;
  return stat;
}

absl::Status SystemError(const std::string& doing, int error) {
  return MakeError(v1::UNKNOWN_SERVER_ERROR, absl::StrCat(doing, ": ", std::strerror(error)));
}

// In the child. Returns only if it failed, with errno set.
void BecomeProgram(const std::vector<std::string>& arguments, int log_fd) {
  if (setsid() < 0) return;
  const int null_fd = open("/dev/null", O_RDONLY);
  if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0) return;
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
}

}  // namespace

absl::StatusOr<ProcessId> StartDetached(const std::vector<std::string>& arguments,
                                        const std::string& log_file) {
  const int log_fd = open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log_fd < 0) return SystemError(absl::StrCat("open ", log_file), errno);
  // Closed by a successful exec; else it brings the reason.
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) {
    const int error = errno;
    close(log_fd);
    return SystemError("pipe", error);
  }
  const pid_t pid = fork();
  if (pid == 0) {
    BecomeProgram(arguments, log_fd);
    const int error = errno;
    const ssize_t told = write(failure[1], &error, sizeof error);
    _exit(told == sizeof error ? 127 : 126);
  }
  const int fork_error = errno;
  close(log_fd);
  close(failure[1]);
  if (pid < 0) {
    close(failure[0]);
    return SystemError("fork", fork_error);
  }
  int error = 0;
  const ssize_t got = read(failure[0], &error, sizeof error);
  close(failure[0]);
  if (got > 0) {
    waitpid(pid, nullptr, 0);
    return SystemError(absl::StrCat("run ", arguments[0]), error);
  }
  const auto stat = ReadProcStat(pid);
  return ProcessId{pid, stat ? stat->start_time : 0};
}

ProcessState StateOf(const ProcessId& process) {
  if (process.pid <= 0) return ProcessState::kGone;
  // Where this process is the parent, an ended child stays until it is waited for.
  waitpid(process.pid, nullptr, WNOHANG);
  const auto stat = ReadProcStat(process.pid);
  if (!stat || stat->start_time != process.start_time) return ProcessState::kGone;
  if (stat->state == 'Z' || stat->state == 'X') return ProcessState::kGone;
  return stat->state == 'T' ? ProcessState::kStopped : ProcessState::kRunning;
}

absl::Status SendSignal(const ProcessId& process, int signal) {
  if (StateOf(process) == ProcessState::kGone) return absl::NotFoundError("the process is gone");
  if (kill(process.pid, signal) == 0) return absl::OkStatus();
  if (errno == ESRCH) return absl::NotFoundError("the process is gone");
  return SystemError(absl::StrCat("signal process ", process.pid), errno);
}

bool WaitUntilGone(const ProcessId& process, Duration timeout) {
  const SystemClock clock;
  const MonotonicTime deadline = clock.Now() + timeout;
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  // The descriptor may be of a successor: whether it is ours is asked after opening it.
  while (StateOf(process) != ProcessState::kGone) {
    const Duration left = deadline - clock.Now();
    if (left <= Duration()) break;
    // Becomes readable when the process ends. Without pidfds, only the time-out ends the wait.
    pollfd ended{fd, POLLIN, 0};
    const int64_t longest = fd >= 0 ? left.milliseconds() + 1 : 10;
    poll(&ended, 1, static_cast<int>(std::min<int64_t>(longest, 60'000)));
  }
  if (fd >= 0) close(fd);
  return StateOf(process) == ProcessState::kGone;
}

}  // namespace conclave::tools
