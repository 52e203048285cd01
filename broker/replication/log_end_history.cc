#include "broker/replication/log_end_history.h"

namespace conclave::replication {
namespace {

constexpr int kStepsInSpan = 64;

}  // namespace

LogEndHistory::LogEndHistory(Duration span, Offset end, MonotonicTime now)
    : step_(span / kStepsInSpan), span_(span) {
  steps_.push_back({now, end});
}

void LogEndHistory::Append(Offset end, MonotonicTime now) {
  if (end <= steps_.back().end) return;
  // Within one step the log is taken to have grown at the step's beginning: a replica that lacks
  // the last record of it is current only up to there.
  if (steps_.size() > 1 && now - steps_.back().since < step_) {
    steps_.back().end = end;
  } else {
    steps_.push_back({now, end});
  }
  // Whatever is older than the span is too old to tell apart.
  while (steps_.size() > 2 && now - steps_[1].since > span_ * 2) steps_.pop_front();
}

MonotonicTime LogEndHistory::CurrentAt(Offset position, MonotonicTime now) const {
  if (position >= steps_.back().end) return now;
  // Current until the log went beyond `position`.
  for (size_t i = steps_.size() - 1; i > 0; --i) {
    if (position >= steps_[i - 1].end) return steps_[i].since;
  }
  return steps_.front().since;
}

}  // namespace conclave::replication
