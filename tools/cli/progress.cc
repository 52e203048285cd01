#include "tools/cli/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "tools/cli/data_options.h"

namespace conclave::tools {
namespace {

constexpr auto kInterval = std::chrono::seconds(1);
// Back to the line's begin, and everything on it gone (ECMA-48: erase in line).
constexpr char kWipe[] = "\r\x1b[K";

}  // namespace

Progress::Progress(int beside, Text text) : text_(std::move(text)) {
  if (isatty(STDERR_FILENO) == 0 || (beside >= 0 && isatty(beside) != 0)) return;
  thread_ = std::thread([this] { Loop(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  thread_.join();
}

void Progress::Loop() {
  bool shown = false;
  std::unique_lock lock(mutex_);
  while (!ended_changed_.wait_for(lock, kInterval, [this] { return ended_; })) {
    std::fprintf(stderr, "%s%s", kWipe, text_().c_str());
    std::fflush(stderr);
    shown = true;
  }
  if (shown) std::fputs(kWipe, stderr);
}

std::string MegabytesText(uint64_t bytes) {
  return Decimals(static_cast<double>(bytes) / 1e6, 1) + " MB";
}

}  // namespace conclave::tools
