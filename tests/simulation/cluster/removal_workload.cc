#include "tests/simulation/cluster/removal_workload.h"

#include <algorithm>
#include <optional>

#include "common/error/error.h"

namespace conclave::cluster_sim {

void RemovalWorkload::Start(Duration mean_pause) {
  mean_pause_ = mean_pause;
  running_ = true;
  Next();
}

void RemovalWorkload::Next() {
  const Duration pause = Duration::Nanoseconds(random_.Between(0, 2 * mean_pause_.nanoseconds()));
  cluster_.executor().PostAfter(pause, [this] {
    if (!running_) return;
    Remove(static_cast<int>(random_.Below(removed_.size())));
    Next();
  });
}

void RemovalWorkload::Remove(int partition) {
  const std::optional<Offset> end = cluster_.EndOf(topic_, partition);
  Offset& removed = removed_[static_cast<size_t>(partition)];
  if (!end || *end <= removed) return;
  // Seldom everything: most of the time there is to be something left to recover and to copy.
  const int64_t there = *end - removed;
  const Offset before =
      removed + (random_.Chance(0.1) ? there : random_.Between(0, std::min<int64_t>(there, 40)));
  ++open_;
  cluster_.DeleteRecords(
      topic_, partition, before,
      [this, before, &removed](const absl::Status& status, const v1::DeleteRecordsResult& result) {
        --open_;
        if (!status.ok()) return;
        ++done_;
        const Offset start(result.log_start_offset());
        if (start < before) {
          cluster_.Break("records before " + ToString(before) +
                         " were deleted, and the log starts at " + ToString(start));
        }
        // Beyond it retention may have removed some at this leader alone.
        removed = std::max(removed, before);
      });
}

std::string RemovalWorkload::CheckFinal() {
  for (size_t i = 0; i < removed_.size(); ++i) {
    const int partition = static_cast<int>(i);
    const auto all = cluster_.ReadAll(topic_, partition);
    const auto first =
        std::find_if(all.begin(), all.end(), [](const auto& value) { return value.has_value(); });
    if (Offset(first - all.begin()) < removed_[i]) {
      return "what was deleted before " + ToString(removed_[i]) +
             " is served again: " + cluster_.DescribeReplicas(topic_, partition);
    }
  }
  return "";
}

}  // namespace conclave::cluster_sim
