#include "tests/simulation/replication/invariants.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace conclave::replication_simulation {

void Invariants::Violated(const char* invariant, std::string detail) {
  if (!violation_) violation_ = Violation{invariant, std::move(detail)};
}

void Invariants::LeaderBegan(LeaderEpoch epoch, BrokerId broker, BrokerEpoch incarnation,
                             const SimLog& log) {
  const auto [it, first] = reigns_.try_emplace(epoch, broker, incarnation);
  if (!first && it->second != std::pair(broker, incarnation)) {
    Violated(kOneReignAnEpoch, absl::StrCat("epoch ", epoch.value(), ": brokers ",
                                            it->second.first.value(), " and ", broker.value()));
  }
  const auto& records = log.records();
  for (size_t i = 0; i < committed_.size(); ++i) {
    if (i < records.size() && records[i] == committed_[i]) continue;
    return Violated(kLeaderCompleteness,
                    absl::StrCat("broker ", broker.value(), " leads epoch ", epoch.value(),
                                 " without what is committed at ", i));
  }
}

void Invariants::MarkStands(BrokerId broker, BrokerEpoch incarnation, Offset mark,
                            const SimLog& log) {
  Offset& last = marks_[{broker, incarnation}];
  if (mark < last) {
    Violated(kMarksDoNotFall, absl::StrCat("broker ", broker.value(), ": from ", last.value(),
                                           " to ", mark.value()));
  }
  const auto& records = log.records();
  // What was checked before is checked again only where it may have changed: from the last mark on.
  for (int64_t i = std::min(last.value(), mark.value()); i < mark.value(); ++i) {
    const size_t at = static_cast<size_t>(i);
    if (at >= records.size()) {
      return Violated(kIdenticalBelowMark, absl::StrCat("broker ", broker.value(), " has no ", i));
    }
    if (at == committed_.size()) committed_.push_back(records[at]);
    if (records[at] == committed_[at]) continue;
    return Violated(kIdenticalBelowMark,
                    absl::StrCat("broker ", broker.value(), " at ", i, ": epoch ",
                                 records[at].epoch, " value ", records[at].value,
                                 ", committed was "
                                 "epoch ",
                                 committed_[at].epoch, " value ", committed_[at].value));
  }
  last = std::max(last, mark);
}

void Invariants::Acknowledged(uint64_t value, Offset offset) {
  ++acknowledged_;
  const size_t at = static_cast<size_t>(offset.value());
  if (at < committed_.size() && committed_[at].value == value) return;
  Violated(kAcknowledgedIsCommitted, absl::StrCat("value ", value, " at ", offset.value(),
                                                  " is not what is committed there"));
}

}  // namespace conclave::replication_simulation
