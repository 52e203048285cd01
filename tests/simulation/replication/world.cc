#include "tests/simulation/replication/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "conclave/v1/errors.pb.h"

namespace conclave::replication_simulation {
namespace {

using replication::FollowerReplica;
using replication::LeaderReplica;

constexpr int kBrokers = 3;
constexpr int kMinIsr = 2;
constexpr Duration kLag = Duration::Milliseconds(600);
constexpr Duration kFaultsLast = Duration::Seconds(15);
constexpr Duration kConvergesWithin = Duration::Seconds(20);
constexpr size_t kRecordsInMessage = 5;
constexpr int64_t kMaxUnacknowledged = 20;

class World;

struct Broker {
  BrokerId id;
  bool alive = false;
  BrokerEpoch incarnation;
  SimLog log;
  Offset last_mark;  // While there is neither role, and over a crash as a lower bound.
  Metadata seen;
  std::unique_ptr<LeaderReplica> leader;
  std::unique_ptr<FollowerReplica> follower;
  replication::Session last_session;
  uint64_t stream = 0;  // To the leader; 0: none.
  bool syncing = false;
  uint64_t life = 0;  // Rises with each crash: what was under way dies with it.
  std::map<replication::AppendId, std::pair<uint64_t, Offset>> appends;

  Offset mark() const {
    if (leader != nullptr) return leader->high_watermark();
    return follower != nullptr ? follower->high_watermark() : last_mark;
  }
};

class World {
 public:
  World(uint64_t seed, Fault fault)
      : random_(Random(seed).Fork("replication")),
        fault_(fault),
        crash_every_(Duration::Milliseconds(random_.Between(150, 1500))),
        break_every_(Duration::Milliseconds(random_.Between(100, 4000))),
        metadata_delay_ms_(random_.Between(5, 400)),
        sync_ms_(random_.Between(1, 60)),
        fence_ms_(random_.Between(5, 300)),
        power_cut_chance_(random_.Chance(0.5) ? 0.3 : 0),
        strike_chance_(random_.Chance(0.5) ? 0.4 : 0),
        controller_(kBrokers, fault == Fault::kReelectionWithoutNewEpoch,
                    [this] { SpreadMetadata(); }) {
    for (int i = 1; i <= kBrokers; ++i) {
      Broker& broker = brokers_[i];
      broker.id = BrokerId(i);
    }
  }

  Result Run() {
    for (auto& [id, broker] : brokers_) StartBroker(broker);
    Every(crash_every_, [this] { CrashSomebody(); });
    Every(break_every_, [this] { BreakAStream(); });
    Every(Duration::Milliseconds(10), [this] { Produce(); });
    Every(Duration::Milliseconds(50), [this] { TickAll(); });
    RunUntil(MonotonicTime() + kFaultsLast);
    calm_ = true;
    for (auto& [id, broker] : brokers_) {
      if (!broker.alive) StartBroker(broker);
    }
    const MonotonicTime end = now_ + kConvergesWithin;
    while (!invariants_.violation() && !Converged() && now_ < end && !queue_.empty()) Step();
    if (!invariants_.violation() && !Converged()) {
      result_.violation = Violation{kConvergence, Describe()};
    }
    if (invariants_.violation()) result_.violation = invariants_.violation();
    result_.acknowledged = invariants_.acknowledged();
    result_.elections = controller_.elections();
    for (const auto& [id, broker] : brokers_) result_.truncations += broker.log.cuts();
    return result_;
  }

 private:
  // --- Time

  using Event = std::function<void()>;

  void At(MonotonicTime when, Event event) {
    queue_.emplace(std::pair(when, ++sequence_), std::move(event));
  }
  void After(Duration delay, Event event) { At(now_ + delay, std::move(event)); }
  void AfterMs(int64_t low, int64_t high, Event event) {
    After(Duration::Microseconds(random_.Between(low * 1000, high * 1000)), std::move(event));
  }
  void Every(Duration period, std::function<void()> what) {
    After(period, [this, period, what = std::move(what)] {
      what();
      Every(period, what);
    });
  }
  void Step() {
    const auto first = queue_.begin();
    now_ = first->first.first;
    const Event event = std::move(first->second);
    queue_.erase(first);
    ++result_.events;
    event();
    Hash(static_cast<uint64_t>(now_.nanoseconds()));
    for (auto& [id, broker] : brokers_) Check(broker);
  }
  void RunUntil(MonotonicTime end) {
    while (!invariants_.violation() && !queue_.empty() && queue_.begin()->first.first < end) Step();
  }
  void Hash(uint64_t value) {
    result_.trace_hash = (result_.trace_hash ^ value) * 0x100000001B3ULL + 0x9E3779B97F4A7C15ULL;
  }

  void Check(Broker& broker) {
    if (!broker.alive) return;
    const Offset mark = broker.mark();
    if (broker.leader == nullptr && broker.follower == nullptr) return;
    invariants_.MarkStands(broker.id, broker.incarnation, mark, broker.log);
  }

  // --- Brokers

  void StartBroker(Broker& broker) {
    broker.alive = true;
    broker.seen = Metadata();
    broker.incarnation = controller_.Register(broker.id);
    const uint64_t life = broker.life;
    AfterMs(5, 100, [this, &broker, life] {
      if (life == broker.life) controller_.Unfence(broker.id, broker.incarnation);
    });
  }

  void CrashSomebody() {
    if (calm_) return;
    // Leaders and whoever may be next, more often than others.
    Broker* victim = &brokers_[static_cast<int>(random_.Between(1, kBrokers))];
    const BrokerId leader = controller_.metadata().leader;
    if (random_.Chance(0.5) && leader != kNoBroker) victim = &brokers_[leader.value()];
    if (random_.Chance(power_cut_chance_)) {
      for (auto& [id, broker] : brokers_) {
        if (broker.id != victim->id && random_.Chance(0.7)) CrashAndComeBack(broker);
      }
    }
    CrashAndComeBack(*victim);
  }

  void CrashAndComeBack(Broker& broker) {
    if (!broker.alive || calm_) return;
    Broker* const victim = &broker;
    Crash(*victim);
    const uint64_t life = victim->life;
    const BrokerEpoch incarnation = victim->incarnation;
    AfterMs(1, fence_ms_, [this, victim, incarnation] {
      // A new incarnation has ended the old one's session already.
      if (!victim->alive && victim->incarnation == incarnation) controller_.Fence(victim->id);
    });
    AfterMs(5, 800, [this, victim, life] {
      if (!victim->alive && victim->life == life) StartBroker(*victim);
    });
  }

  void Crash(Broker& broker) {
    broker.last_mark = std::max(Offset(), broker.mark() - random_.Between(0, 8));
    broker.alive = false;
    ++broker.life;
    // What it had sent is often lost with it.
    if (random_.Chance(0.5)) {
      for (const auto& [pair, stream] : feeding_) {
        if (pair.first != broker.id) continue;
        broken_.insert(stream);
        Broker& follower = brokers_[pair.second.value()];
        if (follower.stream == stream) {
          follower.stream = 0;
          RetryLater(follower);
        }
      }
      if (broker.stream != 0) broken_.insert(broker.stream);
    }
    broker.leader.reset();
    broker.follower.reset();
    broker.appends.clear();
    broker.syncing = false;
    broker.stream = 0;
    if (broker.log.Crash(random_)) ++result_.lost_unsynced;
    broker.last_mark = std::min(broker.last_mark, broker.log.position().end);
  }

  // --- Metadata

  void SpreadMetadata() {
    const Metadata metadata = controller_.metadata();
    if (metadata.state.isr.size() < last_isr_) ++result_.shrinks;
    if (metadata.state.isr.size() > last_isr_) ++result_.expands;
    last_isr_ = metadata.state.isr.size();
    for (auto& entry : brokers_) {
      Broker& broker = entry.second;
      if (!broker.alive) continue;
      const uint64_t life = broker.life;
      AfterMs(1, calm_ ? 20 : metadata_delay_ms_, [this, &broker, life, metadata] {
        if (life == broker.life) TakeMetadata(broker, metadata);
      });
    }
  }

  void TakeMetadata(Broker& broker, const Metadata& metadata) {
    if (metadata.version <= broker.seen.version) return;
    const bool new_epoch = broker.seen.version == 0 ||
                           metadata.state.leader_epoch != broker.seen.state.leader_epoch ||
                           metadata.leader != broker.seen.leader;
    broker.seen = metadata;
    if (new_epoch) {
      BecomeWhatItSays(broker);
    } else if (broker.leader != nullptr) {
      broker.leader->MetadataChanged(metadata.state, kMinIsr, now_);
    }
    if (broker.leader != nullptr) broker.leader->SetBrokers(metadata.brokers, now_);
    Serve(broker);
  }

  void BecomeWhatItSays(Broker& broker) {
    const Offset mark = broker.last_mark = broker.mark();
    if (broker.leader != nullptr) {
      broker.leader->Resign();
      Release(broker);
    }
    broker.leader.reset();
    broker.follower.reset();
    const Metadata& seen = broker.seen;
    // An epoch given to an incarnation that is gone is nobody's: the next one is on its way.
    const auto info = seen.brokers.find(broker.id);
    if (info == seen.brokers.end() || info->second.epoch != broker.incarnation) return;
    if (seen.leader == broker.id) {
      LeaderReplica::Start start;
      start.state = seen.state;
      start.min_isr = kMinIsr;
      start.log = broker.log.position();
      start.high_watermark = mark;
      broker.leader = std::make_unique<LeaderReplica>(LeaderReplica::Config{broker.id, kLag}, start,
                                                      broker.log, now_);
      invariants_.LeaderBegan(seen.state.leader_epoch, broker.id, broker.incarnation, broker.log);
      // A leader that falls before its followers have settled under it is the hardest case.
      if (!calm_ && random_.Chance(strike_chance_)) {
        const uint64_t life = broker.life;
        AfterMs(0, 25, [this, &broker, life] {
          if (life == broker.life) CrashAndComeBack(broker);
        });
      }
    } else if (seen.leader != kNoBroker) {
      if (fault_ == Fault::kTruncateToHighWatermark) (void)broker.log.TruncateTo(mark);
      broker.follower = std::make_unique<FollowerReplica>(seen.state.leader_epoch,
                                                          broker.last_session, mark, broker.log);
      OpenStream(broker);
    }
  }

  // --- Streams. A message is delivered in its stream's order, or not at all once that has broken.

  void OpenStream(Broker& follower) {
    if (follower.stream == 0) follower.stream = ++last_stream_;
    SendPosition(follower, follower.follower->Begin());
  }

  void BreakAStream() {
    if (calm_) return;
    Broker& broker = brokers_[static_cast<int>(random_.Between(1, kBrokers))];
    if (!broker.alive || broker.stream == 0) return;
    const uint64_t stream = std::exchange(broker.stream, 0);
    broken_.insert(stream);
    const BrokerEpoch incarnation = broker.incarnation;
    const replication::Session session = broker.last_session;
    for (auto& entry : brokers_) {
      Broker& other = entry.second;
      if (other.leader == nullptr || other.id == broker.id) continue;
      AfterMs(0, 30, [&other, &broker, incarnation, session] {
        if (other.leader != nullptr) other.leader->StreamClosed(broker.id, incarnation, session);
      });
    }
    RetryLater(broker);
  }

  void RetryLater(Broker& broker) {
    const uint64_t life = broker.life;
    AfterMs(20, 150, [this, &broker, life] {
      if (life != broker.life || broker.follower == nullptr) return;
      OpenStream(broker);
    });
  }

  void Deliver(Broker& to, uint64_t stream, int direction, Event event) {
    MonotonicTime& last = last_delivery_[{stream, direction}];
    last = std::max(last, now_ + Duration::Microseconds(random_.Between(50, 8000)));
    const uint64_t life = to.life;
    At(last, [this, &to, life, stream, event = std::move(event)] {
      if (life == to.life && to.alive && broken_.count(stream) == 0) event();
    });
  }

  void SendPosition(Broker& from, const FollowerReplica::Position& position) {
    from.last_session = position.session;
    LeaderReplica::Position told{from.id,          from.incarnation,
                                 position.session, position.leader_epoch,
                                 position.log,     position.last_epoch};
    if (fault_ == Fault::kUnsyncedFollowerCounts) told.log.durable = told.log.end;
    Broker& leader = brokers_[from.seen.leader.value()];
    const uint64_t stream = from.stream;
    Deliver(leader, stream, 0, [this, &leader, &from, stream, told] {
      if (leader.leader == nullptr) {
        return SendToFollower(from, stream, [this, &from, told] {
          if (from.follower == nullptr) return;
          Follow(from, from.follower->OnRefused(told.session, told.leader_epoch,
                                                MakeError(v1::NOT_LEADER_OR_FOLLOWER, "not yet")));
        });
      }
      const auto answer = leader.leader->Positioned(told, now_);
      if (const auto* end = std::get_if<replication::EpochEnd>(&answer)) {
        SendToFollower(from, stream, [this, &from, told, end = *end] {
          if (from.follower == nullptr) return;
          Follow(from, from.follower->OnDivergence(told.session, told.leader_epoch, end));
        });
      } else if (const auto* refused = std::get_if<absl::Status>(&answer)) {
        SendToFollower(from, stream, [this, &from, told, refused = *refused] {
          if (from.follower == nullptr) return;
          Follow(from, from.follower->OnRefused(told.session, told.leader_epoch, refused));
        });
      } else {
        feeding_[{leader.id, from.id}] = stream;
      }
      Serve(leader);
    });
  }

  void SendToFollower(Broker& to, uint64_t stream, Event event) {
    Deliver(to, stream, 1, std::move(event));
  }

  void Follow(Broker& broker, const FollowerReplica::Next& next) {
    if (const auto* position = std::get_if<FollowerReplica::Position>(&next)) {
      SendPosition(broker, *position);
    } else if (std::holds_alternative<FollowerReplica::Stopped>(next)) {
      RetryLater(broker);
    }
    Acknowledge(broker);
    StartSync(broker);
  }

  void Acknowledge(Broker& broker) {
    if (broker.follower == nullptr || broker.stream == 0) return;
    auto ack = broker.follower->TakeAck();
    if (!ack) return;
    if (fault_ == Fault::kUnsyncedFollowerCounts) ack->log.durable = ack->log.end;
    Broker& leader = brokers_[broker.seen.leader.value()];
    Deliver(leader, broker.stream, 0,
            [this, &leader, id = broker.id, incarnation = broker.incarnation, ack = *ack] {
              if (leader.leader == nullptr) return;
              leader.leader->Acknowledged(id, incarnation, ack.session, ack.leader_epoch, ack.log,
                                          ack.round, now_);
              Serve(leader);
            });
  }

  // --- Leading

  // What a leader's driver does after every input.
  void Serve(Broker& broker) {
    if (broker.leader == nullptr) return;
    Release(broker);
    for (auto& [id, follower] : brokers_) {
      if (follower.id != broker.id) Feed(broker, follower);
    }
    if (auto proposal = broker.leader->TakeProposal()) SendProposal(broker, *std::move(proposal));
    StartSync(broker);
  }

  void SendProposal(Broker& broker, LeaderReplica::Proposal proposal) {
    const uint64_t life = broker.life;
    const LeaderEpoch epoch = broker.leader->leader_epoch();
    const auto still_leads = [&broker, life, epoch] {
      return life == broker.life && broker.leader != nullptr &&
             broker.leader->leader_epoch() == epoch;
    };
    // The request, or its answer, may be lost, and a lost one may be late instead.
    const bool answer_lost = !calm_ && random_.Chance(0.1);
    AfterMs(1, answer_lost ? 800 : 30,
            [this, &broker, epoch, answer_lost, still_leads, proposal = std::move(proposal)] {
              const auto outcome = controller_.AlterIsr(broker.id, epoch, proposal);
              if (answer_lost || outcome != ModelController::Outcome::kRefused) return;
              AfterMs(1, 30, [this, &broker, still_leads] {
                if (!still_leads()) return;
                broker.leader->ProposalRefused(now_);
                Serve(broker);
              });
            });
    if (!answer_lost) return;
    AfterMs(100, 300, [this, &broker, still_leads] {
      if (!still_leads()) return;
      broker.leader->ProposalOutcomeUnknown(now_);
      Serve(broker);
    });
  }

  void Feed(Broker& leader, Broker& follower) {
    const auto stream = feeding_.find({leader.id, follower.id});
    if (stream == feeding_.end()) return;
    const auto feed = leader.leader->FeedOf(follower.id);
    if (!feed) return;
    const Offset mark = leader.leader->high_watermark();
    const bool data = feed->next < leader.log.position().end &&
                      feed->next - feed->acknowledged < kMaxUnacknowledged;
    if (!data && feed->told_high_watermark >= mark) return;
    FollowerReplica::Data message;
    if (data) message.batches = leader.log.Read(feed->next, kRecordsInMessage);
    message.high_watermark = mark;
    const Offset next =
        feed->next + static_cast<int64_t>(message.batches.size() / sizeof(SimRecord));
    leader.leader->Sent(follower.id, feed->session, next, mark, replication::Round());
    const LeaderEpoch epoch = leader.leader->leader_epoch();
    SendToFollower(
        follower, stream->second, [this, &follower, session = feed->session, epoch, message] {
          if (follower.follower == nullptr) return;
          FollowerReplica& replica = *follower.follower;
          const bool ignored = fault_ == Fault::kEpochIgnored;
          Follow(follower, replica.OnData(ignored ? replica.session() : session,
                                          ignored ? replica.leader_epoch() : epoch, message));
        });
    Feed(leader, follower);
  }

  void Release(Broker& broker) {
    for (const auto& released : broker.leader->TakeReleased()) {
      const auto append = broker.appends.find(released.append);
      if (append == broker.appends.end()) continue;
      if (released.status.ok()) {
        Check(broker);
        invariants_.Acknowledged(append->second.first, append->second.second);
        // Right after an acknowledgement, before anybody has heard of the new mark.
        if (!calm_ && random_.Chance(strike_chance_ / 100)) {
          const uint64_t life = broker.life;
          After(Duration(), [this, &broker, life] {
            if (life == broker.life) CrashAndComeBack(broker);
          });
        }
      }
      broker.appends.erase(append);
    }
  }

  void Produce() {
    if (calm_) return;
    for (auto& [id, broker] : brokers_) {
      if (broker.leader == nullptr || !random_.Chance(0.7)) continue;
      if (!broker.leader->CheckAppendToAll().ok()) continue;
      const int64_t count = random_.Between(1, 4);
      for (int64_t i = 0; i < count; ++i) {
        const uint64_t value = ++last_value_;
        const Offset offset = broker.log.position().end;
        broker.log.AppendOwn({broker.leader->leader_epoch().value(), value});
        broker.leader->Appended(offset + 1, now_);
        const replication::AppendId append(value);
        broker.appends[append] = {value, offset};
        broker.leader->AwaitCommit(append, offset + 1);
      }
      Serve(broker);
    }
  }

  void StartSync(Broker& broker) {
    const auto position = broker.log.position();
    if (broker.syncing || position.durable == position.end) return;
    broker.syncing = true;
    const SimLog::Sync sync = broker.log.BeginSync();
    const uint64_t life = broker.life;
    AfterMs(1, sync_ms_, [this, &broker, life, sync] {
      if (life != broker.life) return;
      broker.syncing = false;
      broker.log.EndSync(sync);
      if (broker.leader != nullptr) {
        broker.leader->Durable(broker.log.position().durable, now_);
        Serve(broker);
      }
      Acknowledge(broker);
      StartSync(broker);
    });
  }

  void TickAll() {
    for (auto& [id, broker] : brokers_) {
      if (broker.leader == nullptr) continue;
      broker.leader->Tick(now_);
      Serve(broker);
    }
  }

  // --- The end

  bool Converged() {
    const Metadata& metadata = controller_.metadata();
    if (metadata.leader == kNoBroker || metadata.state.isr.size() != kBrokers) return false;
    const Broker& leader = brokers_[metadata.leader.value()];
    if (leader.leader == nullptr || leader.mark() != leader.log.position().end) return false;
    for (const auto& [id, broker] : brokers_) {
      if (broker.log.records() != leader.log.records() || broker.mark() != leader.mark()) {
        return false;
      }
    }
    return true;
  }

  std::string Describe() const {
    const Metadata& metadata = controller_.metadata();
    std::string text =
        absl::StrCat("leader ", metadata.leader.value(), ", epoch ",
                     metadata.state.leader_epoch.value(), ", isr of ", metadata.state.isr.size());
    for (const auto& [id, broker] : brokers_) {
      absl::StrAppend(&text, "; broker ", id, broker.alive ? "" : " (dead)", ": end ",
                      broker.log.position().end.value(), " durable ",
                      broker.log.position().durable.value(), " mark ", broker.mark().value(),
                      broker.leader != nullptr ? " leads" : "",
                      broker.follower != nullptr ? " follows" : "");
      const auto info = metadata.brokers.find(broker.id);
      if (info != metadata.brokers.end()) {
        absl::StrAppend(&text, " epoch ", info->second.epoch.value(), " of ",
                        broker.incarnation.value(), info->second.eligible ? " live" : " fenced");
      }
      if (broker.leader != nullptr) {
        absl::StrAppend(&text, broker.leader->HasProposalInFlight() ? " proposed" : "");
        for (const auto& [other, unused] : brokers_) {
          const auto feed = broker.leader->FeedOf(BrokerId(other));
          if (feed) absl::StrAppend(&text, " ", other, "@", feed->acknowledged.value());
        }
      }
    }
    return text;
  }

  Random random_;
  const Fault fault_;
  const Duration crash_every_;
  const Duration break_every_;
  const int64_t metadata_delay_ms_;
  const int64_t sync_ms_;
  const int64_t fence_ms_;
  const double power_cut_chance_;
  const double strike_chance_;

  MonotonicTime now_;
  uint64_t sequence_ = 0;
  std::map<std::pair<MonotonicTime, uint64_t>, Event> queue_;
  bool calm_ = false;

  std::map<int, Broker> brokers_;
  ModelController controller_;
  size_t last_isr_ = kBrokers;
  uint64_t last_stream_ = 0;
  std::set<uint64_t> broken_;
  std::map<std::pair<uint64_t, int>, MonotonicTime> last_delivery_;
  // On which stream a leader feeds a follower.
  std::map<std::pair<BrokerId, BrokerId>, uint64_t> feeding_;
  uint64_t last_value_ = 0;
  Invariants invariants_;
  Result result_;
};

}  // namespace

Result RunSeed(uint64_t seed, Fault fault) { return World(seed, fault).Run(); }

}  // namespace conclave::replication_simulation
