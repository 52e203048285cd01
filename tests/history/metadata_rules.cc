#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "tests/history/rules.h"

namespace conclave::history {
namespace {

class MetadataCheck {
 public:
  explicit MetadataCheck(Findings& findings) : findings_(findings) {}

  void Observe(const Metadata& seen) {
    if (seen.controller) ObserveController(seen);
    if (seen.leader) ObserveLeader(seen);
    if (seen.log) ObserveLog(seen);
  }

 private:
  void ObserveController(const Metadata& seen) {
    const auto [term, leader] = std::pair(seen.controller->term, seen.controller->leader);
    if (leader >= 0) {
      const auto [known, first] = controllers_.try_emplace(term, &seen);
      if (!first && known->second->controller->leader != leader) {
        findings_.Add(15, "term ", term, " has leader ", leader, ", by ", findings_.By(seen),
                      ", and leader ", known->second->controller->leader, ", by ",
                      findings_.By(*known->second));
      }
    }
    const Metadata*& before = terms_[seen.process];
    if (before != nullptr && term < before->controller->term) {
      findings_.Add(15, "the term fell from ", before->controller->term, ", by ",
                    findings_.By(*before), ", to ", term, ", by ", findings_.By(seen));
    }
    before = &seen;
  }

  void ObserveLeader(const Metadata& seen) {
    const auto [epoch, leader] = std::pair(seen.leader->epoch, seen.leader->leader);
    if (leader >= 0) {
      const auto [known, first] = leaders_.try_emplace({seen.key, epoch}, &seen);
      if (!first && known->second->leader->leader != leader) {
        findings_.Add(15, findings_.Log(seen.key), ": epoch ", epoch, " has leader ", leader,
                      ", by ", findings_.By(seen), ", and leader ", known->second->leader->leader,
                      ", by ", findings_.By(*known->second));
      }
    }
    const Metadata*& before = epochs_[{seen.process, seen.key}];
    if (before != nullptr && epoch < before->leader->epoch) {
      findings_.Add(15, findings_.Log(seen.key), ": the leader epoch fell from ",
                    before->leader->epoch, ", by ", findings_.By(*before), ", to ", epoch, ", by ",
                    findings_.By(seen));
    }
    before = &seen;
  }

  void ObserveLog(const Metadata& seen) {
    const Metadata::Log& log = *seen.log;
    if (log.start <= log.high_watermark && log.high_watermark <= log.end) return;
    findings_.Add(15, findings_.Log(seen.key), ": ", findings_.By(seen), " has log start ",
                  log.start, ", high watermark ", log.high_watermark, " and log end ", log.end);
  }

  Findings& findings_;
  // Those seen first.
  std::map<int64_t, const Metadata*> controllers_;
  std::map<std::pair<KeyIndex, int64_t>, const Metadata*> leaders_;
  // Those seen last.
  std::map<Name, const Metadata*> terms_;
  std::map<std::pair<Name, KeyIndex>, const Metadata*> epochs_;
};

}  // namespace

void CheckMetadata(const History& history, Findings& findings) {
  MetadataCheck check(findings);
  for (const Metadata& seen : history.Of<Metadata>()) {
    if (seen.outcome == Outcome::kOk) check.Observe(seen);
  }
}

}  // namespace conclave::history
