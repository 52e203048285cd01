#ifndef CONCLAVE_TESTS_HISTORY_RECORDING_H_
#define CONCLAVE_TESTS_HISTORY_RECORDING_H_

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

#include "tests/history/history.h"

namespace conclave::history {

// A history in the making: operations that begin, and end later. Not thread-safe.
class Recording {
 public:
  // `now`: of the clock that all who record here share.
  explicit Recording(std::function<Time()> now) : now_(std::move(now)) {}

  const History& history() const { return history_; }
  Time Now() const { return now_(); }
  Name NameOf(std::string_view name) { return history_.NameOf(name); }

  // An operation of `process`: one that begins now, whose outcome is to be filled in, and one that
  // began at `invoke` and went well.
  template <class Kind>
  Kind Begun(std::string_view process) {
    Kind operation;
    operation.process = NameOf(process);
    operation.invoke = Now();
    return operation;
  }
  template <class Kind>
  Kind Seen(std::string_view process, Time invoke) {
    Kind operation = Begun<Kind>(process);
    operation.invoke = invoke;
    operation.complete = Now();
    operation.outcome = Outcome::kOk;
    return operation;
  }
  // The operation's place.
  template <class Kind>
  size_t Add(Kind operation) {
    return history_.Add(std::move(operation));
  }
  template <class Kind>
  Kind& At(size_t place) {
    return history_.Of<Kind>()[place];
  }

 protected:
  History history_;

 private:
  const std::function<Time()> now_;
};

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_RECORDING_H_
