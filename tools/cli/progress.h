#ifndef CONCLAVE_TOOLS_CLI_PROGRESS_H_
#define CONCLAVE_TOOLS_CLI_PROGRESS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace conclave::tools {

// A line on stderr about work under way, written anew each second until the end, when it is wiped
// away. Commands shorter than a second show nothing, and nothing is shown where stderr, or what
// the line would disturb, says otherwise.
class Progress {
 public:
  // One line, no longer than a terminal is wide. Called on a thread of its own.
  using Text = std::function<std::string()>;

  // `beside`: the file descriptor whose user the line would disturb if it were the same terminal
  // (typed input, printed records); -1 for none.
  Progress(int beside, Text text);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void Loop();

  const Text text_;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::thread thread_;
};

// "12.3 MB".
std::string MegabytesText(uint64_t bytes);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_PROGRESS_H_
