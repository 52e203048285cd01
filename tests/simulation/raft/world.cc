#include "tests/simulation/raft/world.h"

#include <glog/logging.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "raft/core/bootstrap.h"
#include "raft/core/voter_set.h"

namespace conclave::raft::sim {
namespace {

ReplicaKey DrawKey(int number, Random& random) {
  return {NodeId(number + 1), DirectoryId::FromRandom(random.Next(), random.Next())};
}

}  // namespace

World::World(const RunOptions& options, const Swarm& swarm, const Random& random)
    : options_(options),
      swarm_(swarm),
      random_(random.Fork("world")),
      disk_random_(random.Fork("disk")),
      trace_(options.trace),
      network_(swarm, swarm.voters + swarm.observers, random.Fork("network")) {
  Config config;
  config.cluster_id = ClusterId::FromRandom(random_.Next(), random_.Next());
  config.max_append_bytes = swarm.max_append_bytes;
  config.max_in_flight_appends = swarm.max_in_flight_appends;
  // More would only be a backlog that no recovery works off in time.
  config.max_uncommitted_bytes = 100 * (swarm.data_bytes + 32);
  const int count = swarm.voters + swarm.observers;
  for (int i = 0; i < count; ++i) config.bootstrap_nodes.push_back(NodeId(i + 1));
  std::vector<VoterSet::Member> members;
  for (int i = 0; i < count; ++i) {
    SimNode& node = nodes_.emplace_back();
    node.number = i;
    node.config = config;
    node.config.self = DrawKey(i, random_);
    node.config.endpoint = "c" + std::to_string(i + 1) + ":7300";
    if (i < swarm.voters) members.push_back({node.key(), node.config.endpoint});
    if (options.fault == DriverFault::kVoteForgotten) node.disk.ForgetVotes();
  }
  const auto voters = VoterSet::Of(members);
  CHECK(voters.ok()) << voters.status();
  for (int i = 0; i < swarm.voters; ++i) node(i).disk.Format(FormatInitialVoters(*voters));
  for (int i = 0; i < count; ++i) Start(i);
}

void World::Say(const std::string& line) {
  if (trace_.wants_text()) trace_.Line(now_, line);
}

void World::Break(Violation violation) {
  if (violation_) return;
  Say("VIOLATED: " + violation.invariant + ": " + violation.detail);
  violation_ = std::move(violation);
}

// --- The clock ---------------------------------------------------------------------------------

void World::Push(Event event) {
  event.order = ++order_;
  events_.push(std::move(event));
}

void World::At(MonotonicTime at, std::function<void()> action) {
  Event event;
  event.at = std::max(at, now_);
  event.action = std::move(action);
  Push(std::move(event));
}

void World::RunUntil(MonotonicTime end) {
  while (!violation_ && !events_.empty() && events_.top().at <= end) {
    Event event = std::move(const_cast<Event&>(events_.top()));  // popped before its use is over
    events_.pop();
    now_ = event.at;
    Handle(std::move(event));
  }
  now_ = std::max(now_, end);
}

void World::Handle(Event event) {
  trace_.Mix(static_cast<uint64_t>(event.at.nanoseconds()));
  trace_.Mix(static_cast<uint64_t>(event.kind) << 8 | static_cast<uint64_t>(event.node + 1));
  if (event.kind == Kind::kAction) return event.action();
  SimNode& target = node(event.node);
  if (!target.core || (event.kind != Kind::kDeliver && event.incarnation != target.incarnation)) {
    return;
  }
  if (target.paused_until > now_) {
    event.at = target.paused_until;
    return Push(std::move(event));
  }
  if (!HandleForNode(target, event)) return;
  ++counters_.events;
  Pump(target);
  const RaftCore& core = *target.core;
  trace_.Mix(core.term().value() << 32 ^ core.commit_index().value() << 8 ^
             core.log().last_index().value() << 3 ^ static_cast<uint64_t>(core.role()));
  if (std::exchange(crash_wanted_, false)) Crash(target.number);
}

// Whether anything came of it.
bool World::HandleForNode(SimNode& node, Event& event) {
  switch (event.kind) {
    case Kind::kDeliver:
      // A cut takes what is on the wire too.
      if (network_.IsCut(event.message->from().node_id() - 1, node.number)) {
        ++counters_.messages_lost;
        return false;
      }
      if (trace_.wants_text()) Say(Describe(*event.message));
      node.core->Receive(*event.message, now_);
      return true;
    case Kind::kTimer:
      return HandleTimer(node);
    case Kind::kDisk:
      return HandleDisk(node);
    case Kind::kAction:
      break;
  }
  return false;
}

bool World::HandleTimer(SimNode& node) {
  if (node.timer_at > now_) return false;  // an earlier one was set in its place
  node.timer_at = MonotonicTime::Never();
  if (node.core->NextDeadline() > now_) {
    ArmTimer(node);
    return false;
  }
  const Role before = node.core->role();
  node.core->Tick(now_);
  if (node.core->NextDeadline() <= now_) {
    Break({kLiveness, "a deadline stays in the past after a tick"});
  }
  if (node.core->role() != before || node.core->HasReady()) return true;
  ArmTimer(node);
  return false;
}

bool World::HandleDisk(SimNode& node) {
  if (node.disk.queued() == 0) return false;  // an earlier completion took this write along
  if (node.stalled_until > now_) {
    Event again;
    again.at = node.stalled_until;
    again.kind = Kind::kDisk;
    again.node = node.number;
    again.incarnation = node.incarnation;
    Push(std::move(again));
    return false;
  }
  // Storage may sync what has queued up as one.
  const size_t count = disk_random_.Chance(0.5) ? 1 : node.disk.queued();
  Persisted(node, node.disk.Complete(count));
  return true;
}

void World::Persisted(SimNode& node, WriteTicket ticket) {
  if (trace_.wants_text()) {
    Say(ToString(node.key().node) + " durable through write " + ToString(ticket));
  }
  node.durable = std::max(node.durable, ticket);
  std::vector<DeferredMessage> waiting;
  for (DeferredMessage& deferred : std::exchange(node.deferred, {})) {
    if (deferred.after <= node.durable) {
      SendOut(node, std::move(deferred.message));
    } else {
      waiting.push_back(std::move(deferred));
    }
  }
  node.deferred = std::move(waiting);
  node.core->Persisted(ticket, now_);
}

// --- The driver --------------------------------------------------------------------------------

void World::Pump(SimNode& node) {
  while (node.core->HasReady()) {
    Ready ready = node.core->TakeReady();
    for (v1::RaftMessage& message : ready.messages) SendOut(node, std::move(message));
    if (ready.write) {
      CheckWrite(node, *ready.write);
      Submit(node, *std::move(ready.write));
    }
    for (DeferredMessage& deferred : ready.deferred) {
      if (deferred.after <= node.durable || options_.fault == DriverFault::kAckBeforeSync) {
        SendOut(node, std::move(deferred.message));
      } else {
        node.deferred.push_back(std::move(deferred));
      }
    }
    for (const Entry& entry : ready.committed) CheckCommitted(node, entry);
    for (const ConfirmedRead& read : ready.reads) {
      ++counters_.reads_confirmed;
      if (auto broken = commits_.OnReadConfirmed(read)) Break(*std::move(broken));
    }
    for (const Rejection& rejection : ready.rejections) {
      if (rejection.reason == RejectionReason::kWrongDirectory && swarm_.wipes > 0) continue;
      Break(
          {kNoRejections, std::string(RejectionName(rejection.reason)) + ": " + rejection.detail});
    }
    if (ready.leadership && trace_.wants_text()) {
      std::ostringstream line;
      line << node.key().node << " is " << ready.leadership->role << " in term "
           << ready.leadership->term;
      Say(line.str());
    }
    CheckState(node);
  }
  ArmTimer(node);
}

void World::Submit(SimNode& node, Write write) {
  const WriteTicket ticket = write.ticket;
  node.disk.Submit(std::move(write));
  const Duration longest =
      disk_random_.Chance(swarm_.sync_slow) ? swarm_.sync_slow_delay : swarm_.sync_max;
  const Duration took = Duration::Nanoseconds(disk_random_.Between(
      swarm_.sync_min.nanoseconds(), std::max(swarm_.sync_min, longest).nanoseconds()));
  Event event;
  event.at = node.disk_free_at = std::max(node.disk_free_at, now_) + took;
  event.kind = Kind::kDisk;
  event.node = node.number;
  event.incarnation = node.incarnation;
  Push(std::move(event));
  if (options_.fault == DriverFault::kLeaderCountsUnsynced && node.core->role() == Role::kLeader) {
    node.core->Persisted(ticket, now_);
  }
}

void World::SendOut(SimNode& node, v1::RaftMessage message) {
  if (auto broken = elections_.OnSent(node.key(), message)) Break(*std::move(broken));
  const int to = message.to().node_id() - 1;
  CHECK(to >= 0 && to < nodes()) << "a message to nobody: " << Describe(message);
  const auto arrivals = network_.Route(node.number, to, now_);
  if (arrivals.empty()) ++counters_.messages_lost;
  if (arrivals.size() > 1) ++counters_.messages_doubled;
  const bool vote = message.has_vote_response() && message.vote_response().granted();
  if (random_.Chance(swarm_.crash_after_send)) crash_wanted_ = true;
  if (vote && random_.Chance(swarm_.crash_after_vote)) crash_wanted_ = true;
  const auto shared = std::make_shared<const v1::RaftMessage>(std::move(message));
  for (MonotonicTime at : arrivals) {
    Event event;
    event.at = at;
    event.kind = Kind::kDeliver;
    event.node = to;
    event.message = shared;
    Push(std::move(event));
  }
}

void World::ArmTimer(SimNode& node) {
  const MonotonicTime deadline = node.core->NextDeadline();
  if (deadline >= node.timer_at) return;
  node.timer_at = deadline;
  Event event;
  event.at = deadline;
  event.kind = Kind::kTimer;
  event.node = node.number;
  event.incarnation = node.incarnation;
  Push(std::move(event));
}

// --- Invariants --------------------------------------------------------------------------------

void World::CheckState(SimNode& node) {
  const RaftCore& core = *node.core;
  if (auto broken = elections_.OnTerm(node.key(), core.term())) Break(*std::move(broken));
  if (core.role() != Role::kLeader || node.led == core.term()) return;
  node.led = core.term();
  if (on_new_leader_) on_new_leader_(node.number);
  if (auto broken = elections_.OnLeader(node.key(), core.term())) Break(*std::move(broken));
  if (auto broken = commits_.OnLeader(node.key(), core.term(), core.log())) {
    Break(*std::move(broken));
  }
}

void World::CheckWrite(const SimNode& node, const Write& write) {
  if (write.entries.empty()) return;
  Term previous = *node.core->log().TermAt(write.entries.front().index - 1);
  for (const Entry& entry : write.entries) {
    if (auto broken = logs_.OnAppend(entry, previous)) Break(*std::move(broken));
    previous = entry.term;
  }
}

void World::CheckCommitted(const SimNode& node, const Entry& entry) {
  auto broken = commits_.OnCommitted(
      node.key(), node.core->term(), entry, node.core->log().voters(),
      [this](const ReplicaKey& key, LogPosition position) { return OnDisk(key, position); });
  if (broken) Break(*std::move(broken));
}

bool World::OnDisk(const ReplicaKey& key, LogPosition position) const {
  // An acknowledgement that was true when it was given stays counted, whatever befalls the disk.
  for (const auto& [wiped, disk] : wiped_) {
    if (wiped == key) return disk.Holds(position);
  }
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const SimNode& node) {
    return node.key() == key && node.disk.Holds(position);
  });
}

// --- What can be done to it --------------------------------------------------------------------

void World::Start(int number) {
  SimNode& node = this->node(number);
  CHECK(!node.core);
  ++node.incarnation;
  auto core = RaftCore::Create(node.config, node.disk.durable(),
                               random_.Fork("start " + std::to_string(++starts_)), now_);
  CHECK(core.ok()) << core.status();
  node.core = *std::move(core);
  node.durable = WriteTicket();
  node.deferred.clear();
  node.timer_at = MonotonicTime::Never();
  node.disk_free_at = now_;
  node.led = Term();
  commits_.OnStart(node.key());
  if (trace_.wants_text()) Say(ToString(node.key().node) + " starts");
  Pump(node);
}

void World::Crash(int number) {
  SimNode& node = this->node(number);
  if (!node.core) return;
  Collect(*node.core);
  node.core.reset();
  node.deferred.clear();
  const size_t lost = node.disk.Crash(disk_random_);
  ++counters_.crashes;
  if (lost > 0) ++counters_.crashes_that_lost_writes;
  elections_.OnCrash(node.key());
  if (trace_.wants_text()) {
    Say(ToString(node.key().node) + " crashes, losing " + std::to_string(lost) + " writes");
  }
  for (int peer = 0; peer < nodes(); ++peer) {
    if (peer == number || !random_.Chance(swarm_.stream_reset_on_crash)) continue;
    const ReplicaKey key = node.key();
    At(now_ + Duration::Microseconds(random_.Between(100, 20'000)), [this, peer, number, key] {
      if (this->node(number).key() == key) ResetStream(peer, number);
    });
  }
  At(now_ + Duration::Microseconds(
                random_.Between(500, std::max<int64_t>(501, swarm_.restart_max.microseconds()))),
     [this, number] {
       if (!IsUp(number)) Start(number);
     });
}

void World::Wipe(int number) {
  if (IsUp(number)) Crash(number);
  SimNode& node = this->node(number);
  wiped_.emplace_back(node.key(), std::exchange(node.disk, SimDisk()));
  if (options_.fault == DriverFault::kVoteForgotten) node.disk.ForgetVotes();
  node.config.self = DrawKey(number, random_);
  ++counters_.wipes;
  Say(ToString(node.key().node) + " is wiped");
}

void World::ResetStream(int at, int from) {
  SimNode& node = this->node(at);
  if (!node.core || node.paused_until > now_) return;
  ++counters_.stream_resets;
  if (trace_.wants_text()) {
    Say(ToString(node.key().node) + " loses its stream from " + std::to_string(from + 1));
  }
  node.core->PeerStreamReset(this->node(from).key(), now_);
  Pump(node);
}

void World::Propose(int number, std::string data) {
  SimNode& node = this->node(number);
  if (!node.core || node.paused_until > now_) return;
  if (node.core->Propose(std::move(data), now_).ok()) Pump(node);
}

void World::Read(int number) {
  SimNode& node = this->node(number);
  if (!node.core || node.paused_until > now_) return;
  const ReadContext context(++reads_);
  commits_.OnReadAsked(context);
  if (node.core->ReadIndex(context, now_).ok()) Pump(node);
}

void World::HealAll() {
  network_.BecomePerfect();
  swarm_.sync_slow = swarm_.crash_after_send = swarm_.crash_after_vote = 0;
  swarm_.sync_max = swarm_.sync_min + Duration::Milliseconds(2);
  crash_wanted_ = false;
  for (SimNode& node : nodes_) {
    node.paused_until = node.stalled_until = now_;
    if (!node.core) Start(node.number);
  }
  Say("all is healed");
}

int World::Leader() {
  int leader = -1;
  for (SimNode& candidate : nodes_) {
    if (!candidate.core || candidate.core->role() != Role::kLeader) continue;
    if (leader < 0 || candidate.core->term() > node(leader).core->term()) {
      leader = candidate.number;
    }
  }
  return leader;
}

void World::Collect(const RaftCore& core) {
  const Counters& c = core.counters();
  counters_.elections_won += c.elections_won;
  counters_.truncations += c.truncations;
  counters_.pre_votes_refused += c.pre_votes_refused;
  counters_.quorum_resignations += c.quorum_resignations;
  counters_.stall_resignations += c.stall_resignations;
}

}  // namespace conclave::raft::sim
