#include "controller/core/sessions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace conclave::controller {
namespace {

constexpr size_t kFlappingBreaks = 3;
constexpr Duration kFlappingWindow = Duration::Seconds(300);

}  // namespace

MonotonicTime Sessions::Session::EndsAt() const {
  return live ? std::min(timeout_at, early_at) : MonotonicTime::Never();
}

Sessions::Session* Sessions::Find(BrokerId broker, BrokerEpoch epoch) {
  const auto found = sessions_.find(broker);
  return found != sessions_.end() && found->second.epoch == epoch ? &found->second : nullptr;
}

Sessions::Session& Sessions::FindOrBegin(BrokerId broker, BrokerEpoch epoch, MonotonicTime now) {
  if (Session* session = Find(broker, epoch)) return *session;
  Begin(broker, epoch, now);
  return sessions_.at(broker);
}

void Sessions::Begin(BrokerId broker, BrokerEpoch epoch, MonotonicTime now) {
  Session session;
  session.epoch = epoch;
  session.timeout_at = now + timeout_;
  session.full_until = now;
  const auto found = sessions_.find(broker);
  // A break just before counts for the other brokers' early ends whatever became of this one.
  if (found != sessions_.end()) session.last_break = found->second.last_break;
  sessions_.insert_or_assign(broker, std::move(session));
}

void Sessions::BeginAfterChangeOfController(BrokerId broker, BrokerEpoch epoch, MonotonicTime now) {
  Begin(broker, epoch, now);
  sessions_.at(broker).full_until = now + timeout_;
}

void Sessions::Forget(BrokerId broker) { sessions_.erase(broker); }

void Sessions::Clear() { sessions_.clear(); }

void Sessions::Revive(Session& session, MonotonicTime now) const {
  session.live = true;
  session.timeout_at = now + timeout_;
  session.early_at = MonotonicTime::Never();
}

void Sessions::Opened(BrokerId broker, BrokerEpoch epoch, MonotonicTime now) {
  Session& session = FindOrBegin(broker, epoch, now);
  ++session.open_streams;
  session.early_at = MonotonicTime::Never();
  if (!session.live) Revive(session, now);
}

void Sessions::Heard(BrokerId broker, BrokerEpoch epoch, MonotonicTime now) {
  Session& session = FindOrBegin(broker, epoch, now);
  if (session.live) {
    // An early end that is pending stays so: only a stream takes it back.
    session.timeout_at = now + timeout_;
  } else {
    Revive(session, now);
  }
}

void Sessions::Broken(BrokerId broker, BrokerEpoch epoch, MonotonicTime now) {
  Session* session = Find(broker, epoch);
  if (session == nullptr || session->open_streams == 0) return;
  if (--session->open_streams > 0) return;
  std::vector<MonotonicTime>& breaks = session->breaks;
  std::erase_if(breaks, [now](MonotonicTime then) { return now - then > kFlappingWindow; });
  breaks.push_back(now);
  if (breaks.size() > kFlappingBreaks) breaks.erase(breaks.begin());
  session->last_break = now;
  const bool shared = IsBreakShared(broker, now);
  if (shared || breaks.size() >= kFlappingBreaks) {
    session->early_at = MonotonicTime::Never();
  } else {
    session->early_at = std::max(now + grace_, session->full_until);
  }
}

bool Sessions::IsBreakShared(BrokerId broker, MonotonicTime now) {
  bool shared = false;
  for (auto& [other, session] : sessions_) {
    if (other == broker || !session.last_break || now - *session.last_break > grace_) continue;
    shared = true;
    session.early_at = MonotonicTime::Never();
  }
  return shared;
}

bool Sessions::IsLive(BrokerId broker) const {
  const auto found = sessions_.find(broker);
  return found != sessions_.end() && found->second.live;
}

bool Sessions::IsConnected(BrokerId broker) const {
  return IsLive(broker) && sessions_.at(broker).open_streams > 0;
}

std::vector<Sessions::Ended> Sessions::Expire(MonotonicTime now) {
  std::vector<Ended> ended;
  for (auto& [broker, session] : sessions_) {
    const MonotonicTime at = session.EndsAt();
    if (at > now) continue;
    const bool early = session.early_at < session.timeout_at;
    session.live = false;
    session.early_at = MonotonicTime::Never();
    ended.push_back({broker, session.epoch, at,
                     early
                         ? absl::StrCat("its stream broke and was not back within ",
                                        grace_.milliseconds(), " ms")
                         : absl::StrCat("no heartbeat came for ", timeout_.milliseconds(), " ms")});
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Ended& a, const Ended& b) { return a.at < b.at; });
  return ended;
}

MonotonicTime Sessions::NextDeadline() const {
  MonotonicTime next = MonotonicTime::Never();
  for (const auto& [broker, session] : sessions_) next = std::min(next, session.EndsAt());
  return next;
}

}  // namespace conclave::controller
