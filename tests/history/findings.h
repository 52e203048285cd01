#ifndef CONCLAVE_TESTS_HISTORY_FINDINGS_H_
#define CONCLAVE_TESTS_HISTORY_FINDINGS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/history/check.h"
#include "tests/history/history.h"

namespace conclave::history {

// Collects what the rules find, and words what they speak of.
class Findings {
 public:
  // Both outlive it.
  Findings(const History& history, const CheckOptions& options)
      : history_(history), options_(options) {}

  // The parts of the message, of any kind that absl::StrCat takes; joined only if it is kept.
  template <class... Parts>
  void Add(int rule, const Parts&... parts) {
    if (++report_.counts[rule] > options_.max_violations_per_rule) return;
    report_.violations.push_back({rule, absl::StrCat(parts...)});
  }

  // "log 3xy…-0"
  std::string Log(KeyIndex key) const;
  std::string Named(Name name) const { return std::string(history_.TextOf(name)); }
  // "consumer-1 at 100..200"
  std::string By(const Operation& operation) const;
  // As bytes, in quotes; long ones are cut.
  static std::string Value(std::string_view value);

  const History& history() const { return history_; }
  // By rule.
  CheckReport Take() &&;

 private:
  const History& history_;
  const CheckOptions& options_;
  CheckReport report_;
};

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_FINDINGS_H_
