#ifndef CONCLAVE_CONTROLLER_CORE_SESSIONS_H_
#define CONCLAVE_CONTROLLER_CORE_SESSIONS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave::controller {

// Brokers' sessions with this active controller. Soft state: a new active controller starts anew.
//
// A session lives while heartbeats come within the timeout. It ends early when its stream broke and
// none is back within the grace, except:
// - after a change of controller everybody has a full session;
// - when streams of several brokers break within one grace, the cause is likely on this side, and
//   none of them ends early;
// - an incarnation whose stream broke three times in five minutes has only the timeout.
//
// Of an incarnation that is not the session's (another broker epoch) nothing is taken notice of.
class Sessions {
 public:
  Sessions(Duration timeout, Duration grace) : timeout_(timeout), grace_(grace) {}

  // A new incarnation: a full session, no stream, no history.
  void Begin(BrokerId broker, BrokerEpoch epoch, MonotonicTime now);
  // The same, with a change of controller as the cause.
  void BeginAfterChangeOfController(BrokerId broker, BrokerEpoch epoch, MonotonicTime now);
  void Forget(BrokerId broker);
  void Clear();

  // A stream of the incarnation opened; begins a session where there is none.
  void Opened(BrokerId broker, BrokerEpoch epoch, MonotonicTime now);
  // One of its streams broke. Only the last open one counts: a newer one may be there already.
  void Broken(BrokerId broker, BrokerEpoch epoch, MonotonicTime now);
  // A heartbeat came; begins a session where there is none.
  void Heard(BrokerId broker, BrokerEpoch epoch, MonotonicTime now);

  // Not ended.
  bool IsLive(BrokerId broker) const;
  // Live, with an open stream.
  bool IsConnected(BrokerId broker) const;

  struct Ended {
    BrokerId broker;
    BrokerEpoch epoch;
    // When its time was over, which may be earlier than when that was noticed.
    MonotonicTime at;
    // For people.
    std::string why;
  };

  // Ends what is due, in the order in which it fell due.
  std::vector<Ended> Expire(MonotonicTime now);
  // When Expire has something to do; Never() if nothing is live.
  MonotonicTime NextDeadline() const;

 private:
  struct Session {
    BrokerEpoch epoch;
    bool live = true;
    int open_streams = 0;
    MonotonicTime timeout_at;
    // Never(): no early end is pending.
    MonotonicTime early_at = MonotonicTime::Never();
    // Does not end early before this.
    MonotonicTime full_until;
    // Of this incarnation within the last five minutes, oldest first; not more than needed to
    // judge.
    std::vector<MonotonicTime> breaks;
    // Of the broker, whichever incarnation.
    std::optional<MonotonicTime> last_break;

    MonotonicTime EndsAt() const;
  };

  Session* Find(BrokerId broker, BrokerEpoch epoch);
  Session& FindOrBegin(BrokerId broker, BrokerEpoch epoch, MonotonicTime now);
  void Revive(Session& session, MonotonicTime now) const;
  // Whether another broker's stream broke within a grace of `now`; takes their early ends back.
  bool IsBreakShared(BrokerId broker, MonotonicTime now);

  const Duration timeout_;
  const Duration grace_;
  std::map<BrokerId, Session> sessions_;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_SESSIONS_H_
