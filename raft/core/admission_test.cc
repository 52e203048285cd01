#include "raft/core/admission.h"

#include <gtest/gtest.h>

#include <functional>

namespace conclave::raft {
namespace {

Config Ours() {
  Config config;
  config.cluster_id = ClusterId::FromRandom(7, 7);
  config.self = {NodeId(1), DirectoryId::FromRandom(1, 1)};
  return config;
}

// An append of one entry from node 2 that nothing is wrong with.
v1::RaftMessage Good() {
  v1::RaftMessage m;
  m.set_cluster_id(Ours().cluster_id.ToBytes());
  m.mutable_from()->set_node_id(2);
  m.mutable_from()->set_directory_id(DirectoryId::FromRandom(2, 1).ToBytes());
  m.mutable_to()->set_node_id(1);
  m.mutable_to()->set_directory_id(Ours().self.directory.ToBytes());
  m.set_term(5);
  m.mutable_append_request()->set_prev_index(3);
  m.mutable_append_request()->set_prev_term(2);
  v1::RaftEntry* entry = m.mutable_append_request()->add_entries();
  entry->set_index(4);
  entry->set_term(5);
  entry->set_kind(v1::RAFT_ENTRY_KIND_DATA);
  return m;
}

std::optional<RejectionReason> ReasonAfter(const std::function<void(v1::RaftMessage&)>& spoil) {
  v1::RaftMessage m = Good();
  spoil(m);
  const AdmissionResult result = Admit(Ours(), m);
  EXPECT_NE(result.admitted.has_value(), result.rejection.has_value());
  if (!result.rejection) return std::nullopt;
  EXPECT_FALSE(result.rejection->detail.empty());
  return result.rejection->reason;
}

TEST(AdmissionTest, AdmitsWhatIsInOrder) {
  EXPECT_EQ(ReasonAfter([](auto&) {}), std::nullopt);
  const v1::RaftMessage good = Good();
  const AdmissionResult result = Admit(Ours(), good);
  EXPECT_EQ(result.admitted->term, Term(5));
  EXPECT_EQ(result.admitted->entries.size(), 1u);
}

TEST(AdmissionTest, RefusesWhatIsNotForUsByName) {
  using R = RejectionReason;
  EXPECT_EQ(ReasonAfter([](auto& m) { m.set_cluster_id(std::string(16, 'x')); }), R::kWrongCluster);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.clear_cluster_id(); }), R::kWrongCluster);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.mutable_to()->set_node_id(3); }), R::kWrongNode);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.clear_to(); }), R::kWrongNode);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.mutable_to()->set_directory_id(std::string(16, 'x')); }),
            R::kWrongDirectory);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.mutable_to()->set_directory_id("short"); }),
            R::kWrongDirectory);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.mutable_to()->clear_directory_id(); }), R::kWrongDirectory);
  EXPECT_EQ(ReasonAfter([](auto& m) { *m.mutable_from() = m.to(); }), R::kFromSelf);
}

TEST(AdmissionTest, RefusesWhatMakesNoSense) {
  const auto malformed = RejectionReason::kMalformed;
  const auto append = [](v1::RaftMessage& m) { return m.mutable_append_request(); };
  EXPECT_EQ(ReasonAfter([](auto& m) { m.clear_from(); }), malformed);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.mutable_from()->set_directory_id("short"); }), malformed);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.mutable_from()->set_node_id(-2); }), malformed);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.clear_body(); }), malformed);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.set_term(~uint64_t{0}); }), malformed);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.set_term(0); }), malformed);
  EXPECT_EQ(ReasonAfter([&](auto& m) { append(m)->set_prev_index(0); }), malformed);
  EXPECT_EQ(ReasonAfter([&](auto& m) { append(m)->set_prev_index(~uint64_t{0}); }), malformed);
  EXPECT_EQ(ReasonAfter([&](auto& m) { append(m)->set_prev_term(6); }), malformed);
  EXPECT_EQ(ReasonAfter([&](auto& m) { append(m)->set_commit_index(~uint64_t{0}); }), malformed);
  const auto entry = [&](v1::RaftMessage& m) { return append(m)->mutable_entries(0); };
  EXPECT_EQ(ReasonAfter([&](auto& m) { entry(m)->set_index(5); }), malformed) << "a gap";
  EXPECT_EQ(ReasonAfter([&](auto& m) { entry(m)->set_index(0); }), malformed);
  EXPECT_EQ(ReasonAfter([&](auto& m) { entry(m)->set_term(1); }), malformed) << "terms fall";
  EXPECT_EQ(ReasonAfter([&](auto& m) { entry(m)->set_term(6); }), malformed);
  EXPECT_EQ(ReasonAfter([&](auto& m) { entry(m)->set_kind(v1::RAFT_ENTRY_KIND_UNSPECIFIED); }),
            malformed);
  EXPECT_EQ(ReasonAfter([&](auto& m) { entry(m)->set_kind(v1::RAFT_ENTRY_KIND_VOTERS); }),
            malformed)
      << "no voters";
  EXPECT_EQ(ReasonAfter([](auto& m) { m.mutable_vote_request()->set_last_index(1); }), malformed);
  EXPECT_EQ(ReasonAfter([](auto& m) { m.mutable_append_response()->set_match_index(9); }),
            malformed)
      << "durable, yet not received";
}

TEST(AdmissionTest, AnAnnouncementMayNotKnowOurDirectory) {
  EXPECT_EQ(ReasonAfter([](auto& m) {
              m.mutable_observer_announcement();
              m.mutable_to()->clear_directory_id();
            }),
            std::nullopt);
}

}  // namespace
}  // namespace conclave::raft
