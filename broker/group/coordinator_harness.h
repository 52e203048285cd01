#ifndef CONCLAVE_BROKER_GROUP_COORDINATOR_HARNESS_H_
#define CONCLAVE_BROKER_GROUP_COORDINATOR_HARNESS_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/group/group_coordinator.h"
#include "common/error/error.h"

namespace conclave::group {

// A driver for tests: a log in memory, and what came out for members and callers. Time moves when
// told.
class CoordinatorHarness {
 public:
  explicit CoordinatorHarness(CoordinatorConfig config = {}) : config_(config) {
    config_.self = BrokerId(1);
    StartCoordinator();
  }

  // --- The log

  // Batches are appended, and not committed until Commit.
  bool hold_commits = false;
  // Appends fail with this.
  absl::Status fail_appends;
  // Confirmations of leadership are not answered until Confirm.
  bool hold_rounds = false;

  struct Batch {
    std::vector<GroupRecord> records;
    Offset end;
  };
  const std::vector<Batch>& log() const { return log_; }
  size_t committed_batches() const { return committed_; }

  void Commit() { Commit(log_.size()); }
  void Commit(size_t batches) {
    committed_ = batches;
    coordinator->HighWatermark(batches == 0 ? Offset(0) : log_[batches - 1].end, now);
    Run();
  }
  void Confirm() {
    coordinator->LeadershipConfirmed(round_);
    Run();
  }

  // Another broker leads, with as many batches of the log, at least those that were committed; the
  // rest is lost.
  void FailOver(size_t batches) {
    coordinator->Resign({});
    Run();
    log_.resize(batches);
    StartCoordinator();
  }
  void FailOver() { FailOver(log_.size()); }

  // Loads what the log has; serving waits for Commit if commits are held.
  void StartCoordinator() {
    coordinator = std::make_unique<GroupCoordinator>(config_, Random(++seed_));
    std::vector<GroupCoordinator::TopicChange> topics;
    for (const auto& [name, topic] : topics_) topics.push_back({name, topic});
    coordinator->TopicsChanged(topics, deleted_, now);
    for (const Batch& batch : log_) {
      for (const GroupRecord& record : batch.records) {
        std::optional<std::string_view> value;
        if (record.value) value = *record.value;
        const absl::Status replayed = coordinator->Replay(record.key, value);
        ASSERT_TRUE(replayed.ok()) << replayed;
      }
    }
    coordinator->ReplayedTo(log_.empty() ? Offset(0) : log_.back().end, now);
    if (!hold_commits) Commit();
    Run();
  }

  // --- Topics

  TopicId SetTopic(const std::string& name, int32_t partitions, uint64_t incarnation = 1) {
    const TopicId id = TopicId::FromRandom(incarnation, std::hash<std::string>()(name));
    topics_[name] = {id, partitions};
    coordinator->TopicsChanged({{name, topics_[name]}}, {}, now);
    Run();
    return id;
  }
  void DeleteTopic(const std::string& name) {
    deleted_.push_back(topics_[name].id);
    topics_.erase(name);
    coordinator->TopicsChanged({{name, std::nullopt}}, {}, now);
    Run();
  }
  PartitionId P(const std::string& topic, int32_t index) {
    return {topics_.at(topic).id, PartitionIndex(index)};
  }

  // --- Members

  void Say(StreamId stream, const v1::MemberMessage& message) {
    coordinator->MemberSays(stream, message, now);
    Run();
  }
  void Break(StreamId stream) {
    coordinator->StreamClosed(stream, now);
    Run();
  }
  StreamId NewStream() { return StreamId(++last_stream_); }

  // What came on a stream, and how it ended.
  std::map<StreamId, std::vector<v1::CoordinatorMessage>> messages;
  std::map<StreamId, absl::Status> ended;
  v1::ErrorCode EndOf(StreamId stream) {
    EXPECT_TRUE(ended.contains(stream)) << "the stream goes on";
    return ended.contains(stream) ? ErrorCodeOf(ended[stream]) : v1::NONE;
  }

  // --- Calls

  RequestId NewRequest() { return RequestId(++last_request_); }
  std::map<RequestId, Reply> replies;
  const Reply* ReplyTo(RequestId request) const {
    const auto found = replies.find(request);
    return found == replies.end() ? nullptr : &found->second;
  }

  RequestId Commit(const std::string& group, const std::string& member, int32_t epoch,
                   const PartitionId& partition, int64_t offset, const std::string& note = "") {
    v1::CommitOffsetsRequest commit;
    commit.set_group(group);
    commit.set_member_id(member);
    commit.set_member_epoch(epoch);
    v1::OffsetCommit& out = *commit.add_offsets();
    out.set_topic_id(partition.topic.ToBytes());
    out.set_partition(partition.index.value());
    out.set_offset(offset);
    out.set_leader_epoch(4);
    out.set_metadata(note);
    const RequestId request = NewRequest();
    coordinator->CommitOffsets(request, commit, now);
    Run();
    return request;
  }
  // NONE; the call's error; else that of its one offset.
  v1::ErrorCode CommitResult(RequestId request) const {
    const Reply* reply = ReplyTo(request);
    EXPECT_NE(reply, nullptr) << "not answered";
    if (reply == nullptr) return v1::UNKNOWN_SERVER_ERROR;
    if (!reply->status.ok()) return ErrorCodeOf(reply->status);
    return std::get<v1::CommitOffsetsResponse>(reply->response).offsets(0).error().code();
  }
  RequestId Fetch(const std::string& group, const std::vector<PartitionId>& partitions = {}) {
    v1::FetchOffsetsRequest fetch;
    fetch.set_group(group);
    for (const PartitionId& partition : partitions) {
      v1::GroupTopicPartitions& topic = *fetch.add_topics();
      topic.set_topic_id(partition.topic.ToBytes());
      topic.add_partitions(partition.index.value());
    }
    const RequestId request = NewRequest();
    coordinator->FetchOffsets(request, fetch, now);
    Run();
    return request;
  }
  // Of the one partition that was asked for; nullopt: none is committed.
  std::optional<int64_t> Fetched(RequestId request) const {
    const Reply* reply = ReplyTo(request);
    EXPECT_NE(reply, nullptr) << "not answered";
    if (reply == nullptr) return std::nullopt;
    EXPECT_TRUE(reply->status.ok()) << reply->status;
    const auto& response = std::get<v1::FetchOffsetsResponse>(reply->response);
    if (response.offsets_size() != 1 || !response.offsets(0).has_offset()) return std::nullopt;
    return response.offsets(0).offset();
  }

  // --- Time

  Now now{MonotonicTime::FromNanoseconds(1'000'000'000),
          WallTime::FromUnixMillis(1'700'000'000'000)};
  void Wait(Duration duration) {
    now.mono = now.mono + duration;
    now.wall = WallTime::FromUnixMillis(now.wall.unix_millis() + duration.milliseconds());
    coordinator->Tick(now);
    Run();
  }

  // Does what the coordinator asks for.
  void Run() {
    for (auto actions = coordinator->TakeActions(); !actions.empty();
         actions = coordinator->TakeActions()) {
      bool failed = false;
      for (Action& action : actions) {
        if (auto* append = std::get_if<Append>(&action)) {
          if (failed) continue;
          if (!fail_appends.ok()) {
            failed = true;
            coordinator->AppendFailed(append->ticket, fail_appends, now);
            continue;
          }
          const Offset start = log_.empty() ? Offset(0) : log_.back().end;
          log_.push_back({append->records, start + static_cast<int64_t>(append->records.size())});
          coordinator->Appended(append->ticket, log_.back().end);
        } else if (auto* send = std::get_if<Send>(&action)) {
          EXPECT_FALSE(ended.contains(send->stream)) << "a message after the end";
          messages[send->stream].push_back(std::move(send->message));
        } else if (auto* end = std::get_if<EndStream>(&action)) {
          EXPECT_TRUE(ended.emplace(end->stream, end->status).second) << "ended twice";
        } else if (auto* reply = std::get_if<Reply>(&action)) {
          const RequestId request = reply->request;
          EXPECT_TRUE(replies.emplace(request, std::move(*reply)).second) << "answered twice";
        } else if (const auto* confirm = std::get_if<ConfirmLeadership>(&action)) {
          round_ = confirm->round;
          if (!hold_rounds) coordinator->LeadershipConfirmed(round_);
        } else {
          notes.push_back(std::get<Note>(action).text);
        }
      }
      if (!hold_commits && !log_.empty()) {
        committed_ = log_.size();
        coordinator->HighWatermark(log_.back().end, now);
      }
    }
  }

  std::unique_ptr<GroupCoordinator> coordinator;
  std::vector<std::string> notes;

 private:
  CoordinatorConfig config_;
  std::vector<Batch> log_;
  size_t committed_ = 0;
  ReadRound round_;
  std::map<std::string, TopicInfo> topics_;
  std::vector<TopicId> deleted_;
  uint64_t seed_ = 0;
  uint64_t last_stream_ = 0;
  uint64_t last_request_ = 0;
};

// A well-behaved member, one step at a time.
class TestMember {
 public:
  TestMember(CoordinatorHarness& harness, std::string group, std::string id = "",
             std::string instance = "")
      : harness_(harness),
        group_(std::move(group)),
        id_(std::move(id)),
        instance_(std::move(instance)) {}

  std::vector<std::string> topics = {"t"};
  std::string assignor;
  int32_t session_timeout_ms = 0;

  // Opens a stream and joins, or comes back if it is a member.
  void Connect() {
    stream_ = harness_.NewStream();
    v1::MemberMessage message;
    message.set_group(group_);
    message.set_member_id(id_);
    message.set_member_epoch(epoch_);
    message.set_instance_id(instance_);
    for (const std::string& topic : topics) message.mutable_subscription()->add_topics(topic);
    message.mutable_subscription()->set_assignor(assignor);
    message.mutable_subscription()->set_session_timeout_ms(session_timeout_ms);
    if (epoch_ > 0) FillOwned(*message.mutable_owned());
    read_ = 0;
    harness_.Say(stream_, message);
    Read();
  }
  // Takes in what has come. True if it was told something new to hold.
  bool Read() {
    bool told = false;
    auto& messages = harness_.messages[stream_];
    for (; read_ < messages.size(); ++read_) {
      const v1::CoordinatorMessage& message = messages[read_];
      id_ = message.member_id();
      EXPECT_TRUE(message.member_epoch() < 0 || message.member_epoch() >= epoch_);
      epoch_ = message.member_epoch();
      if (!message.has_assignment()) continue;
      told = true;
      assigned_.clear();
      for (const auto& topic : message.assignment().topics()) {
        for (const int32_t partition : topic.partitions()) {
          assigned_.insert({*TopicId::FromBytes(topic.topic_id()), PartitionIndex(partition)});
        }
      }
    }
    return told;
  }
  // Gives up what it is not to hold, takes up what it is, and says so.
  void Obey() {
    Read();
    owned_ = assigned_;
    SayOwned();
  }
  void SayOwned() {
    v1::MemberMessage message;
    message.set_member_epoch(epoch_);
    FillOwned(*message.mutable_owned());
    harness_.Say(stream_, message);
    Read();
  }
  void Heartbeat() {
    v1::MemberMessage message;
    message.set_member_epoch(epoch_);
    harness_.Say(stream_, message);
    Read();
  }
  void Subscribe(std::vector<std::string> to) {
    topics = std::move(to);
    v1::MemberMessage message;
    message.set_member_epoch(epoch_);
    for (const std::string& topic : topics) message.mutable_subscription()->add_topics(topic);
    message.mutable_subscription()->set_assignor(assignor);
    message.mutable_subscription()->set_session_timeout_ms(session_timeout_ms);
    harness_.Say(stream_, message);
    Read();
  }
  void Leave(int32_t how = -1) {
    v1::MemberMessage message;
    message.set_member_epoch(how);
    harness_.Say(stream_, message);
  }
  void Break() { harness_.Break(stream_); }
  // Gives up what it is not to hold, and takes nothing up yet.
  void GiveUp() {
    Read();
    std::erase_if(owned_, [this](const PartitionId& p) { return !assigned_.contains(p); });
    SayOwned();
  }
  // As a client does that was told it is no member: it owns nothing and begins anew. An id that it
  // chose itself it may keep.
  void Forget(bool keep_id = false) {
    if (!keep_id) id_.clear();
    epoch_ = 0;
    owned_.clear();
    assigned_.clear();
  }
  v1::ErrorCode Commit(const PartitionId& partition, int64_t offset) {
    return harness_.CommitResult(harness_.Commit(group_, id_, epoch_, partition, offset));
  }

  StreamId stream() const { return stream_; }
  const std::string& id() const { return id_; }
  int32_t epoch() const { return epoch_; }
  const PartitionSet& owned() const { return owned_; }
  const PartitionSet& assigned() const { return assigned_; }
  bool has_stream() const { return stream_ != StreamId(0) && !is_ended(); }
  bool is_ended() const { return harness_.ended.contains(stream_); }
  const std::string& reason() const { return harness_.messages[stream_].back().reason(); }
  size_t messages() const { return harness_.messages[stream_].size(); }

 private:
  void FillOwned(v1::OwnedPartitions& out) const {
    for (const PartitionId& partition : owned_) {
      v1::GroupTopicPartitions& topic = *out.add_topics();
      topic.set_topic_id(partition.topic.ToBytes());
      topic.add_partitions(partition.index.value());
    }
  }

  CoordinatorHarness& harness_;
  const std::string group_;
  std::string id_;
  const std::string instance_;
  int32_t epoch_ = 0;
  StreamId stream_;
  size_t read_ = 0;
  PartitionSet owned_;
  PartitionSet assigned_;
};

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_COORDINATOR_HARNESS_H_
