#include "tests/simulation/raft/log_matching.h"

#include <sstream>

namespace conclave::raft::sim {

uint64_t ContentHash(const Entry& entry) {
  uint64_t hash = 0xCBF29CE484222325ULL ^ static_cast<uint64_t>(entry.kind);  // FNV-1a
  for (char c : *entry.data) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ULL;
  return hash;
}

MaybeViolation LogMatching::OnAppend(const Entry& entry, Term previous) {
  if (by_index_.size() <= entry.index.value()) by_index_.resize(entry.index.value() + 1);
  const uint64_t content = ContentHash(entry);
  for (const Known& known : by_index_[entry.index.value()]) {
    if (known.term != entry.term) continue;
    if (known.previous == previous && known.content == content) return std::nullopt;
    std::ostringstream detail;
    detail << entry.position() << " follows term " << previous << " here and " << known.previous
           << " elsewhere" << (known.content == content ? "" : ", with other data");
    return Violation{kLogMatching, detail.str()};
  }
  by_index_[entry.index.value()].push_back({entry.term, previous, content});
  return std::nullopt;
}

}  // namespace conclave::raft::sim
