#include "tests/history/testing/model_clients.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/history/testing/generator.h"

namespace conclave::history {
namespace {

constexpr size_t kPollAtMost = 8;

template <class Kind>
Kind Begun(Name process, Time invoke) {
  Kind operation;
  operation.process = process;
  operation.invoke = invoke;
  return operation;
}

Name Numbered(History& history, const std::string& kind, int number) {
  return history.NameOf(kind + "-" + std::to_string(number));
}

// Up to some records from `from` on; moves it past them.
std::vector<Record> Take(ModelCluster& cluster, const ModelCluster::Log& log, int64_t& from) {
  std::vector<Record> records;
  const size_t most = 1 + cluster.random.Below(kPollAtMost);
  while (records.size() < most && from < log.end()) {
    records.push_back({from, log.values[static_cast<size_t>(from)]});
    ++from;
  }
  return records;
}

// The log's start as a consumer is told that fell behind it.
void TellStart(ModelCluster& cluster, Name process, const ModelCluster::Log& log) {
  auto start = Begun<LogStart>(process, cluster.agenda.now());
  start.complete = cluster.agenda.now();
  start.outcome = Outcome::kOk;
  start.key = log.key;
  start.offset = log.start;
  cluster.history.Add(start);
}

}  // namespace

// --- Producers

ModelProducer::ModelProducer(ModelCluster& cluster, int number, Time until)
    : cluster_(cluster),
      name_(Numbered(cluster.history, "producer", number)),
      until_(until),
      number_(number) {
  if (number % 3 == 2) {
    constexpr Acks kAny[] = {Acks::kNone, Acks::kLeader, Acks::kAll};
    acks_ = kAny[cluster.random.Below(3)];
    idempotent_ = acks_ == Acks::kLeader && cluster.random.Chance(0.5);
  }
  cluster_.agenda.At(cluster_.Soon(50), [this] { SendOne(); });
}

void ModelProducer::SendOne() {
  if (cluster_.agenda.now() > until_) return;
  auto send = Begun<Send>(name_, cluster_.agenda.now());
  const ModelCluster::Log& log = cluster_.AnyLog();
  send.key = log.key;
  send.value = "p" + std::to_string(number_) + "-" + std::to_string(++sent_);
  send.acks = acks_;
  send.idempotent = idempotent_;
  Time& last = last_effect_[log.key];
  last = std::max(last, cluster_.Soon(40)) + 1;
  const size_t place = cluster_.history.Add(send);
  cluster_.agenda.At(last, [this, place, at = last] { Settle(place, at); });
  cluster_.agenda.At(cluster_.Soon(30), [this] { SendOne(); });
}

void ModelProducer::Settle(size_t place, Time at) {
  Send& send = cluster_.history.Of<Send>()[place];
  ModelCluster::Log& log = cluster_.logs[static_cast<size_t>(send.key)];
  Random& random = cluster_.random;
  const bool refused = random.Chance(0.05);
  const bool unknown = random.Chance(0.1);
  send.outcome = refused ? Outcome::kFail : unknown ? Outcome::kInfo : Outcome::kOk;
  if (!unknown || random.Chance(0.5)) send.complete = at + random.Between(1, 30);
  // A leader that is deposed may lose what it alone acknowledged.
  const bool lost = (unknown && random.Chance(0.4)) || (acks_ != Acks::kAll && random.Chance(0.1));
  const bool told = send.outcome == Outcome::kOk && acks_ != Acks::kNone;
  if (told) send.offset = log.end();
  if (refused || lost) return;
  log.values.push_back(send.value);
  if (idempotent_ || !random.Chance(0.1)) return;
  // Sent again by a client that had lost the answer, and was told of the second copy.
  log.values.push_back(send.value);
  if (told) send.offset = log.end() - 1;
}

// --- Consumers

ModelConsumer::ModelConsumer(ModelCluster& cluster, int number, Time until)
    : cluster_(cluster), name_(Numbered(cluster.history, "consumer", number)), until_(until) {
  cluster_.agenda.At(cluster_.Soon(50), [this] {
    for (ModelCluster::Log& log : cluster_.logs) Put(log, 0, true);
    PollOne();
  });
}

void ModelConsumer::Put(ModelCluster::Log& log, int64_t from, bool known) {
  auto position = Begun<Position>(name_, cluster_.agenda.now());
  position.complete = cluster_.agenda.now();
  position.outcome = Outcome::kOk;
  position.key = log.key;
  position.from = known ? from : -1;
  cluster_.history.Add(position);
  positions_[log.key] = from;
}

void ModelConsumer::PollOne() {
  const Time invoke = cluster_.agenda.now();
  if (invoke > until_) return;
  ModelCluster::Log& log = cluster_.AnyLog();
  if (cluster_.random.Chance(0.02)) {
    Put(log, cluster_.random.Between(0, log.end()), cluster_.random.Chance(0.8));
  }
  cluster_.agenda.At(cluster_.Soon(20), [this, invoke, &log] {
    int64_t& position = positions_[log.key];
    if (position < log.start) {
      TellStart(cluster_, name_, log);
      position = log.start;
    }
    auto poll = Begun<history::Poll>(name_, invoke);
    poll.key = log.key;
    poll.outcome = Outcome::kOk;
    poll.records = Take(cluster_, log, position);
    poll.complete = cluster_.Soon(20);
    cluster_.agenda.At(poll.complete, [this] { PollOne(); });
    cluster_.history.Add(std::move(poll));
  });
}

// --- The group

ModelGroup::ModelGroup(ModelCluster& cluster, int members, Time until)
    : cluster_(cluster), group_(cluster.history.NameOf("group")), until_(until) {
  members_.resize(static_cast<size_t>(members));
  for (size_t i = 0; i < members_.size(); ++i) {
    Begin(members_[i], i);
    cluster_.agenda.At(cluster_.Soon(100), [this, i] { Step(i); });
  }
  Rebalance();
}

void ModelGroup::Begin(Member& member, size_t number) {
  const int life = member.life + 1;
  member = {};
  member.life = life;
  member.process = Numbered(cluster_.history, "member-" + std::to_string(number), life);
  member.name = Numbered(cluster_.history, "id-" + std::to_string(number), life);
  member.since = cluster_.agenda.now();
}

void ModelGroup::Rebalance() {
  ++epoch_;
  std::vector<const Member*> there;
  for (const Member& member : members_) {
    if (!member.out) there.push_back(&member);
  }
  auto epoch = Begun<GroupEpoch>(cluster_.history.NameOf("coordinator"), cluster_.agenda.now());
  epoch.complete = cluster_.agenda.now();
  epoch.outcome = Outcome::kOk;
  epoch.group = group_;
  epoch.epoch = epoch_;
  for (const Member* member : there) epoch.members.emplace_back(member->name, epoch_);
  size_t turn = cluster_.random.Below(members_.size());
  for (size_t i = kUngroupedLog + 1; i < cluster_.logs.size(); ++i) {
    ModelCluster::Log& log = cluster_.logs[i];
    log.owner = there.empty() ? Name::kNone : there[turn++ % there.size()]->name;
    epoch.keys.push_back(log.key);
  }
  cluster_.history.Add(std::move(epoch));
  if (cluster_.agenda.now() > until_) return;
  // Somebody leaves, dies, or comes back.
  cluster_.agenda.At(cluster_.Soon(2'000), [this] {
    const size_t number = cluster_.random.Below(members_.size());
    Member& member = members_[number];
    if (member.out) {
      Begin(member, number);
    } else if (!member.busy) {
      member.out = true;
    }
    Rebalance();
  });
}

std::vector<KeyIndex> ModelGroup::OwnedBy(const Member& member) const {
  std::vector<KeyIndex> keys;
  for (const ModelCluster::Log& log : cluster_.logs) {
    if (log.owner == member.name) keys.push_back(log.key);
  }
  return keys;
}

void ModelGroup::Step(size_t number) {
  if (cluster_.agenda.now() > until_) return;
  Member& member = members_[number];
  const Time again = cluster_.Soon(cluster_.random.Chance(0.02) ? 1'500 : 60);
  cluster_.agenda.At(again, [this, number] { Step(number); });
  if (member.busy || member.out) return;
  // One that stalls goes on with what was its own.
  if (member.epoch < epoch_ && cluster_.random.Chance(0.7)) {
    Learn(member);
  } else if (cluster_.random.Chance(0.3)) {
    Commit(member);
  } else {
    Poll(member);
  }
}

void ModelGroup::Learn(Member& member) {
  const std::vector<KeyIndex> owned = OwnedBy(member);
  auto assignment = Begun<Assignment>(member.process, member.since);
  assignment.complete = member.since = cluster_.agenda.now();
  assignment.outcome = Outcome::kOk;
  assignment.group = group_;
  assignment.member = member.name;
  assignment.epoch = member.epoch = epoch_;
  assignment.keys = owned;
  cluster_.history.Add(assignment);
  for (auto held = member.positions.begin(); held != member.positions.end();) {
    const bool kept = std::find(owned.begin(), owned.end(), held->first) != owned.end();
    held = kept ? std::next(held) : member.positions.erase(held);
  }
  for (const KeyIndex key : owned) {
    if (member.positions.count(key) > 0) continue;
    TakeUp(member, cluster_.logs[static_cast<size_t>(key)]);
  }
}

void ModelGroup::TakeUp(Member& member, ModelCluster::Log& log) {
  const Time now = cluster_.agenda.now();
  const auto found = log.committed.find(group_);
  auto read = Begun<CommittedRead>(member.process, now);
  read.complete = now;
  read.outcome = Outcome::kOk;
  read.group = group_;
  read.key = log.key;
  read.offset = found == log.committed.end() ? -1 : found->second;
  cluster_.history.Add(read);
  auto position = Begun<Position>(member.process, now);
  position.complete = now;
  position.outcome = Outcome::kOk;
  position.key = log.key;
  position.group = group_;
  position.from = std::max<int64_t>(read.offset, 0);
  cluster_.history.Add(position);
  member.positions[log.key] = position.from;
}

void ModelGroup::Poll(Member& member) {
  if (member.positions.empty()) return;
  auto held = member.positions.begin();
  std::advance(held, static_cast<int64_t>(cluster_.random.Below(member.positions.size())));
  ModelCluster::Log& log = cluster_.logs[static_cast<size_t>(held->first)];
  const Time invoke = cluster_.agenda.now();
  member.busy = true;
  cluster_.agenda.At(cluster_.Soon(15), [this, &member, &log, invoke] {
    member.busy = false;
    int64_t& position = member.positions[log.key];
    if (position < log.start) {
      TellStart(cluster_, member.process, log);
      position = log.start;
    }
    auto poll = Begun<history::Poll>(member.process, invoke);
    poll.complete = cluster_.agenda.now();
    poll.outcome = Outcome::kOk;
    poll.key = log.key;
    poll.group = group_;
    poll.records = Take(cluster_, log, position);
    cluster_.history.Add(std::move(poll));
  });
}

void ModelGroup::Commit(Member& member) {
  member.busy = true;
  std::vector<size_t> places;
  for (const auto& [key, position] : member.positions) {
    auto commit = Begun<history::Commit>(member.process, cluster_.agenda.now());
    commit.group = group_;
    commit.key = key;
    commit.offset = position;
    places.push_back(cluster_.history.Add(commit));
  }
  cluster_.agenda.At(cluster_.Soon(15), [this, &member, places, epoch = member.epoch] {
    member.busy = false;
    const bool unknown = cluster_.random.Chance(0.15);
    const bool done = !unknown || cluster_.random.Chance(0.5);
    for (const size_t place : places) {
      history::Commit& commit = cluster_.history.Of<history::Commit>()[place];
      // Fenced, should there be a newer epoch.
      const bool fenced = epoch != epoch_;
      commit.outcome = unknown ? Outcome::kInfo : fenced ? Outcome::kFail : Outcome::kOk;
      if (!unknown) commit.complete = cluster_.agenda.now();
      if (!fenced && done) {
        cluster_.logs[static_cast<size_t>(commit.key)].committed[group_] = commit.offset;
      }
    }
  });
}

// --- Offsets without members

ModelOffsets::ModelOffsets(ModelCluster& cluster, Time until)
    : cluster_(cluster),
      group_(cluster.history.NameOf("offsets")),
      committer_(cluster.history.NameOf("committer")),
      reader_(cluster.history.NameOf("reader")),
      until_(until) {
  CommitOne();
  ReadOne(group_, cluster_.logs[0].key);
  ReadOne(group_, cluster_.logs[0].key);
  for (const ModelCluster::Log& log : cluster_.logs) {
    ReadOne(cluster_.history.NameOf("group"), log.key);
  }
}

void ModelOffsets::CommitOne() {
  if (cluster_.agenda.now() > until_) return;
  auto commit = Begun<Commit>(committer_, cluster_.agenda.now());
  commit.group = group_;
  commit.key = cluster_.logs[0].key;
  // Mostly rising; an offset may be committed again later.
  commit.offset = cluster_.random.Chance(0.8) ? ++last_ : cluster_.random.Between(0, last_);
  const size_t place = cluster_.history.Add(commit);
  const bool unknown = cluster_.random.Chance(0.1);
  // What nobody knows of may take effect long after.
  const Time effect = cluster_.Soon(unknown ? 1'000 : 30);
  if (!unknown || cluster_.random.Chance(0.5)) {
    cluster_.agenda.At(
        effect, [this, offset = commit.offset] { cluster_.logs[0].committed[group_] = offset; });
  }
  if (!unknown) {
    history::Commit& added = cluster_.history.Of<Commit>()[place];
    added.outcome = Outcome::kOk;
    added.complete = effect + cluster_.random.Between(0, 10);
  }
  cluster_.agenda.At(cluster_.Soon(60), [this] { CommitOne(); });
}

void ModelOffsets::ReadOne(Name group, KeyIndex key) {
  const Time invoke = cluster_.agenda.now();
  if (invoke > until_) return;
  cluster_.agenda.At(cluster_.Soon(20), [this, group, key, invoke] {
    const auto& committed = cluster_.logs[static_cast<size_t>(key)].committed;
    const auto found = committed.find(group);
    auto read = Begun<CommittedRead>(reader_, invoke);
    read.complete = cluster_.Soon(10);
    read.outcome = cluster_.random.Chance(0.05) ? Outcome::kFail : Outcome::kOk;
    read.group = group;
    read.key = key;
    read.offset = found == committed.end() ? -1 : found->second;
    cluster_.history.Add(read);
    cluster_.agenda.At(cluster_.Soon(80), [this, group, key] { ReadOne(group, key); });
  });
}

}  // namespace conclave::history
