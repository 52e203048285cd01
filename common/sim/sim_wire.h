#ifndef CONCLAVE_COMMON_SIM_SIM_WIRE_H_
#define CONCLAVE_COMMON_SIM_SIM_WIRE_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/random/random.h"
#include "common/sim/sim_scheduler.h"
#include "common/transport/wire.h"

namespace conclave {

// The network of the virtual world, under MemoryNetwork. Each direction of a stream delivers in
// order, each message after a delay drawn for it. A link, one direction between two nodes, may be
// cut: messages on it wait, as unacknowledged segments do, until it heals or the streams between
// the two nodes are broken.
//
// Used by the scheduler's thread alone. The scheduler, and the executors it delivers on, outlive
// it.
class SimWire : public Wire {
 public:
  struct Options {
    Duration delay_min = Duration::Microseconds(100);
    Duration delay_max = Duration::Milliseconds(2);
    // How often a message takes up to that long instead.
    double slow = 0;
    Duration slow_delay_max = Duration::Milliseconds(100);
    // How often a message is the last of all streams between its two nodes.
    double break_streams = 0;
    // How long a link is cut before both ends take their streams for broken.
    Duration break_after = Duration::Seconds(10);
  };

  // Called where the streams between two nodes have to break; connected to MemoryNetwork's
  // BreakStreams by whoever owns both.
  using BreakStreams = std::function<void(const std::string& a, const std::string& b)>;

  SimWire(SimScheduler& scheduler, const Random& random, Options options);

  void SetBreakStreams(BreakStreams break_streams) { break_streams_ = std::move(break_streams); }
  void SetOptions(const Options& options) { options_ = options; }

  // Nothing sent by `from` reaches `to` from now on; what is under way waits.
  void Cut(const std::string& from, const std::string& to);
  void Heal(const std::string& from, const std::string& to);
  void CutBothWays(const std::string& a, const std::string& b);
  void HealAll();
  bool IsCut(const std::string& from, const std::string& to) const;

  void Carry(const std::string& from, const std::string& to, uint64_t stream, size_t bytes,
             Executor& receiver, Executor::Task deliver) override;
  // A connection needs both directions.
  bool CanConnect(const std::string& from, const std::string& to) override;

 private:
  using Link = std::pair<std::string, std::string>;

  struct Message {
    MonotonicTime due;
    Executor* receiver;
    Executor::Task deliver;
  };
  // One direction of one stream, while messages are under way on it.
  struct Direction {
    Link link;
    std::deque<Message> messages;
  };

  Duration DrawDelay();
  void ScheduleFront(uint64_t stream);
  void DeliverFront(uint64_t stream);

  SimScheduler& scheduler_;
  Random random_;
  Options options_;
  BreakStreams break_streams_;
  std::map<uint64_t, Direction> directions_;
  // With the number of the cut, so that the time-out of an earlier one does not count.
  std::map<Link, uint64_t> cut_;
  uint64_t last_cut_ = 0;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_SIM_SIM_WIRE_H_
