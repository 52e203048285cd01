#include "common/process/open_files.h"

#include <glog/logging.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

constexpr rlim_t kFewestForConnections = 32;
constexpr rlim_t kMostForConnections = 1024;
constexpr rlim_t kLeast = 100;

rlim_t Limit() {
  rlimit limit;
  // It can fail for a bad address or a resource that is none.
  PCHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0) << "the limit of open files cannot be read";
  return limit.rlim_cur;
}

}  // namespace

void RaiseOpenFilesLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    PLOG(WARNING) << "the limit of open files cannot be read";
    return;
  }
  const auto show = [](rlim_t n) {
    return n == RLIM_INFINITY ? std::string("unlimited") : std::to_string(n);
  };
  const std::string before = show(limit.rlim_cur);
  if (limit.rlim_cur == limit.rlim_max) {
    LOG(INFO) << "open files: at most " << before;
    return;
  }
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    PLOG(WARNING) << "open files: at most " << before << ", and it cannot be raised to "
                  << show(limit.rlim_max);
    return;
  }
  LOG(INFO) << "open files: at most " << show(limit.rlim_cur) << ", raised from " << before;
}

absl::Status CheckOpenFilesLimit() {
  if (Limit() >= kLeast) return absl::OkStatus();
  return MakeError(
      v1::INVALID_CONFIG,
      absl::StrCat("at most ", Limit(), " files may be open, and a server needs ", kLeast,
                   " for itself alone: raise the limit (ulimit -n, or LimitNOFILE of "
                   "its systemd unit)"));
}

bool LeavesDescriptors(int fd, int others) {
  return static_cast<rlim_t>(fd) + static_cast<rlim_t>(others) < Limit();
}

int DescriptorsBesideLogs() {
  return kDescriptorsBesideConnections +
         static_cast<int>(std::clamp(Limit() / 4, kFewestForConnections, kMostForConnections));
}

}  // namespace conclave
