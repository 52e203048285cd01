#include "tests/simulation/cluster/durable_logs.h"

#include "broker/log/segment.h"
#include "common/record/batch_header.h"

namespace conclave::cluster_sim {

bool DurableLogs::Holds(const std::string& directory, Offset offset) {
  const auto known = found_.find(directory);
  if (known != found_.end()) {
    if (offset < known->second.end || ReadOn(directory, known->second)) {
      return offset < known->second.end;
    }
    // The segment that was read last has been removed since.
  }
  Found& first = found_[directory];
  if (!FindStart(directory, first) || !ReadOn(directory, first)) {
    Forget(directory);
    return false;
  }
  return offset < first.end;
}

bool DurableLogs::FindStart(const std::string& directory, Found& found) {
  const auto entries = disk_.List(directory);
  if (!entries.ok()) return false;
  for (const DirectoryEntry& entry : *entries) {  // By name, so by offset.
    const auto base = ParseSegmentName(entry.name);
    if (!base) continue;
    found = {.base = *base, .position = 0, .end = *base};
    return true;
  }
  return false;
}

bool DurableLogs::ReadOn(const std::string& directory, Found& found) {
  for (;;) {
    const std::string path = SegmentPath(directory, found.base, ".log");
    const uint64_t durable = disk_.DurableSize(path);
    const auto file = disk_.Open(path, FileSystem::OpenMode::kReadOnly);
    if (!file.ok()) return false;
    while (found.position + kBatchHeaderBytes <= durable) {
      const auto bytes = (*file)->ReadAt(found.position, kBatchHeaderBytes);
      if (!bytes.ok() || bytes->size() < kBatchHeaderBytes) return true;
      const BatchHeader header = ParseBatchHeader(*bytes);
      const uint64_t next = found.position + static_cast<uint64_t>(header.size_bytes());
      if (header.base_offset != found.end || next > durable) return true;
      found.position = next;
      found.end = header.next_offset();
    }
    // A segment that ends here is followed by one that begins here.
    if (found.end == found.base) return true;
    const auto rolled = disk_.Exists(SegmentPath(directory, found.end, ".log"));
    if (!rolled.ok() || !*rolled) return true;
    found.base = found.end;
    found.position = 0;
  }
}

}  // namespace conclave::cluster_sim
