// Anything that parses as a RaftMessage may come: nothing of it crashes a core.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/random/random.h"
#include "raft/core/test_cluster.h"

namespace conclave::raft {
namespace {

uint64_t OddNumber(Random& random) {
  switch (random.Below(5)) {
    case 0:
      return 0;
    case 1:
      return ~uint64_t{0};
    case 2:
      return random.Next();
    case 3:
      return uint64_t{1} << random.Below(64);
    default:
      return random.Below(12);
  }
}

// Turns a few bits or bytes of the wire form over; keeps what still parses.
v1::RaftMessage Mutate(const v1::RaftMessage& message, Random& random) {
  std::string bytes = message.SerializeAsString();
  for (uint64_t i = 1 + random.Below(4); i > 0 && !bytes.empty(); --i) {
    bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
  }
  v1::RaftMessage mutated;
  return mutated.ParseFromString(bytes) ? mutated : message;
}

// Keeps the address, so that it gets past the door, and fills in anything.
v1::RaftMessage Invent(const v1::RaftMessage& address, Random& random) {
  v1::RaftMessage m = address;
  m.set_term(random.Chance(0.7) ? random.Below(12) : OddNumber(random));
  const auto odd = [&] { return OddNumber(random); };
  switch (random.Below(7)) {
    case 0: {
      auto* body = m.mutable_append_request();
      const uint64_t prev = random.Below(8);
      body->set_prev_index(random.Chance(0.8) ? prev : odd());
      body->set_prev_term(prev == 0 ? 0 : 1 + random.Below(4));
      body->set_commit_index(odd());
      body->set_round(odd());
      for (uint64_t i = 1; i <= random.Below(5); ++i) {
        auto* entry = body->add_entries();
        entry->set_index(random.Chance(0.9) ? prev + i : odd());
        entry->set_term(random.Chance(0.8) ? m.term() : odd());
        entry->set_kind(static_cast<v1::RaftEntryKind>(random.Chance(0.8) ? 3 : random.Below(6)));
      }
      break;
    }
    case 1: {
      auto* body = m.mutable_append_response();
      body->set_accepted(random.Chance(0.5));
      body->set_match_index(odd());
      body->set_received_index(std::max(body->match_index(), odd()));
      body->set_rejected_index(odd());
      body->set_conflict_term(odd());
      body->set_conflict_index(odd());
      body->set_round(odd());
      body->set_attempt(random.Below(6));
      break;
    }
    case 2:
      m.mutable_vote_request()->set_last_term(odd());
      m.mutable_vote_request()->set_last_index(odd());
      break;
    case 3:
      m.mutable_vote_response()->set_granted(random.Chance(0.5));
      break;
    case 4:
      m.mutable_pre_vote_request()->set_last_term(odd());
      m.mutable_pre_vote_request()->set_last_index(odd());
      break;
    case 5:
      m.mutable_pre_vote_response()->set_granted(random.Chance(0.5));
      m.mutable_pre_vote_response()->set_round(random.Below(4));
      break;
    case 6:
      m.mutable_observer_announcement()->set_endpoint("x");
      break;
  }
  return m;
}

class RaftGarbage : public testing::TestWithParam<int> {};

// Real traffic, of which some is spoiled or invented, to replicas in every role.
TEST_P(RaftGarbage, NoMessageCrashesACore) {
  Random random(static_cast<uint64_t>(GetParam()));
  for (int round = 0; round < 20; ++round) {
    TestCluster c(3, 1);
    std::vector<v1::RaftMessage> seen;
    c.OnlyIf([&](const v1::RaftMessage& m) {
      if (seen.size() < 500) seen.push_back(m);
      return true;
    });
    c.Elect(1);
    c.Propose(1, "a");
    c.Advance(Duration::Milliseconds(700));
    uint64_t rejected = 0;
    for (int step = 0; step < 500; ++step) {
      v1::RaftMessage m = seen[random.Below(seen.size())];
      const int to = m.to().node_id();
      m = random.Chance(0.5) ? Mutate(m, random) : Invent(m, random);
      c.core(to).Receive(m, c.now());
      if (step % 10 == 0) c.Advance(Duration::Milliseconds(random.Between(0, 400)));
      if (random.Chance(0.02)) c.core(to).Propose("b", c.now()).status().IgnoreError();
    }
    for (int id = 1; id <= 4; ++id) {
      for (uint64_t count : c.core(id).counters().rejections) rejected += count;
      EXPECT_LE(c.core(id).commit_index(), c.core(id).log().last_index());
    }
    EXPECT_GT(rejected, 50u);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RaftGarbage, testing::Range(1, 9));

}  // namespace
}  // namespace conclave::raft
