#include "tests/simulation/raft/nemesis.h"

#include <algorithm>
#include <string>
#include <vector>

namespace conclave::raft::sim {

Nemesis::Nemesis(World& world, const Swarm& swarm, const Random& random)
    : world_(world), swarm_(swarm), random_(random.Fork("nemesis")), work_(random.Fork("work")) {}

void Nemesis::Start() {
  Every(swarm_.between_crashes, &Nemesis::CrashOne);
  Every(swarm_.between_partitions, &Nemesis::Partition);
  Every(swarm_.between_one_way_cuts, &Nemesis::OneWayCut);
  Every(swarm_.between_stream_resets, &Nemesis::ResetOne);
  Every(swarm_.between_stalls, &Nemesis::StallDisk);
  Every(swarm_.between_pauses, &Nemesis::PauseOne);
  if (swarm_.wipes > 0) Every(swarm_.safety_phase / 4, &Nemesis::WipeOne);
  if (swarm_.strike_new_leader > 0) {
    world_.OnNewLeader([this](int leader) { StrikeNewLeader(leader); });
  }
  Work();
}

void Nemesis::Every(Duration mean, Fault fault) {
  if (mean != Duration::Infinite()) Schedule(mean, fault);
}

void Nemesis::Schedule(Duration mean, Fault fault) {
  const Duration wait = Duration::Nanoseconds(random_.Between(0, 2 * mean.nanoseconds()));
  world_.At(world_.now() + wait, [this, mean, fault] {
    if (stopped_) return;
    (this->*fault)();
    Schedule(mean, fault);
  });
}

void Nemesis::Work() {
  const Duration wait =
      Duration::Nanoseconds(work_.Between(0, 2 * swarm_.between_proposals.nanoseconds()));
  world_.At(world_.now() + wait, [this] {
    // Mostly the leader is asked; now and then one that may think it still is.
    const int leader = world_.Leader();
    const int asked = leader >= 0 && work_.Chance(0.7)
                          ? leader
                          : static_cast<int>(work_.Below(static_cast<uint64_t>(world_.nodes())));
    ProposeTo(asked, swarm_.burst);
    if (work_.Chance(swarm_.reads)) world_.Read(asked);
    Work();
  });
}

void Nemesis::ProposeTo(int node, int count) {
  for (int i = 0; i < count; ++i) {
    std::string data = std::to_string(++proposals_);
    data.resize(std::max(swarm_.data_bytes, data.size()), '.');
    world_.Propose(node, std::move(data));
  }
}

int Nemesis::Target() {
  const int leader = world_.Leader();
  if (leader >= 0 && random_.Chance(swarm_.at_leader)) return leader;
  return static_cast<int>(random_.Below(static_cast<uint64_t>(world_.nodes())));
}

Duration Nemesis::HowLong() {
  return Duration::Nanoseconds(
      random_.Between(Duration::Milliseconds(20).nanoseconds(), swarm_.fault_max.nanoseconds()));
}

void Nemesis::CutFor(int from, int to, Duration time) {
  world_.network().Cut(from, to);
  world_.At(world_.now() + time, [this, from, to] {
    if (!stopped_) world_.network().Mend(from, to);  // else all is mended
  });
}

void Nemesis::StrikeNewLeader(int leader) {
  if (stopped_ || !random_.Chance(swarm_.strike_new_leader)) return;
  // At once, so that not even its first entry gets away, or within a while.
  const Duration within = random_.Chance(0.5) ? swarm_.strike_within / 10 : swarm_.strike_within;
  const Duration wait = Duration::Nanoseconds(random_.Between(0, within.nanoseconds()));
  const bool crash = !swarm_.rolling_strikes && random_.Chance(0.5);
  world_.At(world_.now() + wait, [this, leader, crash] {
    if (stopped_) return;
    if (crash) return world_.Crash(leader);
    world_.Say(std::to_string(leader + 1) + " is cut off");
    ++world_.counters().partitions;
    if (swarm_.rolling_strikes) {
      RollOn(leader);
    } else {
      // Back while the next leader is still new.
      CutOff(leader, std::min(HowLong(), Duration::Milliseconds(random_.Between(50, 1'200))));
    }
    ResetStreamsFrom(leader);
    // Its clients may still reach it.
    ProposeTo(leader, static_cast<int>(random_.Between(0, 20)));
  });
}

void Nemesis::CutOff(int node, Duration time) {
  for (int peer = 0; peer < world_.nodes(); ++peer) {
    if (peer == node) continue;
    CutFor(node, peer, time);
    CutFor(peer, node, time);
  }
}

void Nemesis::RollOn(int node) {
  if (rolled_ >= 0) SetCut(rolled_, false);
  rolled_ = node;
  SetCut(node, true);
}

void Nemesis::SetCut(int node, bool cut) {
  SimNetwork& network = world_.network();
  for (int peer = 0; peer < world_.nodes(); ++peer) {
    if (peer == node) continue;
    cut ? network.Cut(node, peer) : network.Mend(node, peer);
    cut ? network.Cut(peer, node) : network.Mend(peer, node);
  }
}

void Nemesis::ResetStreamsFrom(int node) {
  for (int peer = 0; peer < world_.nodes(); ++peer) {
    if (peer == node || !random_.Chance(swarm_.stream_reset_on_crash)) continue;
    world_.At(world_.now() + Duration::Microseconds(random_.Between(100, 20'000)),
              [this, peer, node] { world_.ResetStream(peer, node); });
  }
}

void Nemesis::CrashOne() { world_.Crash(Target()); }

void Nemesis::Partition() {
  // Either one node alone or any split in two.
  std::vector<bool> apart(static_cast<size_t>(world_.nodes()));
  if (random_.Chance(0.5)) {
    apart[static_cast<size_t>(Target())] = true;
  } else {
    for (size_t i = 0; i < apart.size(); ++i) apart[i] = random_.Chance(0.5);
  }
  const Duration time = HowLong();
  ++world_.counters().partitions;
  world_.Say("the network splits");
  for (int from = 0; from < world_.nodes(); ++from) {
    for (int to = 0; to < world_.nodes(); ++to) {
      if (apart[static_cast<size_t>(from)] != apart[static_cast<size_t>(to)]) {
        CutFor(from, to, time);
      }
    }
  }
}

void Nemesis::OneWayCut() {
  const int target = Target();
  const Duration time = HowLong();
  const uint64_t shape = random_.Below(3);  // deaf, mute, or one link
  const int other = static_cast<int>(random_.Below(static_cast<uint64_t>(world_.nodes())));
  ++world_.counters().one_way_cuts;
  world_.Say("a one-way cut at " + std::to_string(target + 1));
  for (int peer = 0; peer < world_.nodes(); ++peer) {
    if (peer == target) continue;
    if (shape == 0) CutFor(peer, target, time);
    if (shape == 1) CutFor(target, peer, time);
    if (shape == 2 && peer == other) CutFor(target, peer, time);
  }
}

void Nemesis::ResetOne() {
  const int from = Target();
  for (int at = 0; at < world_.nodes(); ++at) {
    if (at != from && random_.Chance(0.7)) world_.ResetStream(at, from);
  }
}

void Nemesis::StallDisk() {
  SimNode& node = world_.node(Target());
  ++world_.counters().disk_stalls;
  node.stalled_until = std::max(node.stalled_until, world_.now() + HowLong());
  world_.Say("the disk of " + std::to_string(node.number + 1) + " stalls");
}

void Nemesis::PauseOne() {
  SimNode& node = world_.node(Target());
  ++world_.counters().pauses;
  node.paused_until = std::max(node.paused_until, world_.now() + HowLong());
  world_.Say(std::to_string(node.number + 1) + " stands still");
}

void Nemesis::WipeOne() {
  // Never more than the quorum survives for good.
  if (wipes_ >= swarm_.wipes) return;
  world_.Wipe(wipes_++);
}

}  // namespace conclave::raft::sim
