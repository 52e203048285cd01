#include "tests/simulation/replication/sim_log.h"

#include <algorithm>
#include <cstring>

namespace conclave::replication_simulation {

LeaderEpoch SimLog::last_epoch() const {
  return records_.empty() ? replication::kNoEpoch : LeaderEpoch(records_.back().epoch);
}

replication::EpochEnd SimLog::EndOfEpoch(LeaderEpoch epoch) const {
  replication::EpochEnd found;
  for (size_t i = 0; i < records_.size() && records_[i].epoch <= epoch.value(); ++i) {
    found = {LeaderEpoch(records_[i].epoch), Offset(static_cast<int64_t>(i + 1))};
  }
  return found;
}

absl::Status SimLog::TruncateTo(Offset end) {
  if (end.value() >= static_cast<int64_t>(records_.size())) return absl::OkStatus();
  records_.resize(static_cast<size_t>(end.value()));
  durable_ = std::min(durable_, end.value());
  ++cuts_;
  return absl::OkStatus();
}

absl::Status SimLog::Append(const Buffer& batches) {
  const std::string bytes = batches.ToString();
  for (size_t at = 0; at + sizeof(SimRecord) <= bytes.size(); at += sizeof(SimRecord)) {
    SimRecord record;
    std::memcpy(&record, bytes.data() + at, sizeof record);
    records_.push_back(record);
  }
  return absl::OkStatus();
}

Buffer SimLog::Read(Offset from, size_t max_records) const {
  std::string bytes;
  const size_t first = static_cast<size_t>(from.value());
  const size_t last = std::min(records_.size(), first + max_records);
  for (size_t i = first; i < last; ++i) {
    bytes.append(reinterpret_cast<const char*>(&records_[i]), sizeof(SimRecord));
  }
  return Buffer(std::move(bytes));
}

void SimLog::EndSync(const Sync& sync) {
  if (sync.cuts == cuts_) durable_ = std::max(durable_, sync.end);
}

bool SimLog::Crash(Random& random) {
  const int64_t before = static_cast<int64_t>(records_.size());
  const int64_t kept = random.Between(durable_, before);
  records_.resize(static_cast<size_t>(kept));
  // What survived is on the disk; a recovery syncs it before it counts.
  durable_ = kept;
  return kept < before;
}

}  // namespace conclave::replication_simulation
