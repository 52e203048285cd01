#include "tests/history/eras.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace conclave::history {

Eras::Eras(const History& history, const CheckOptions& options) {
  if (options.flush_policy == CheckOptions::FlushPolicy::kFsync) return;
  // Where one loss ends as another begins they overlap: begins come first.
  enum Change { kBegin, kEnd };
  std::vector<std::tuple<Time, Change, Name>> changes;
  for (const PowerLoss& loss : history.Of<PowerLoss>()) {
    changes.emplace_back(loss.invoke, kBegin, loss.process);
    changes.emplace_back(std::max(loss.invoke, loss.complete), kEnd, loss.process);
  }
  std::sort(changes.begin(), changes.end());
  // A node that loses power again before it has caught up is one node all the same.
  std::map<Name, int> down;
  const auto too_many = [&] {
    return static_cast<int>(down.size()) >= std::max(1, options.min_insync_replicas);
  };
  for (const auto& [time, change, node] : changes) {
    const bool before = too_many();
    if (change == kBegin) {
      ++down[node];
    } else if (--down[node] == 0) {
      down.erase(node);
    }
    if (!before && too_many()) losses_.emplace_back(time, kNever);
    if (before && !too_many()) losses_.back().second = time;
  }
}

int Eras::Of(const Operation& operation) const {
  const auto over = std::partition_point(losses_.begin(), losses_.end(), [&](const auto& loss) {
    return loss.second < operation.invoke;
  });
  const auto begun = std::partition_point(losses_.begin(), losses_.end(), [&](const auto& loss) {
    return loss.first <= operation.complete;
  });
  return over == begun ? static_cast<int>(over - losses_.begin()) : -1;
}

}  // namespace conclave::history
