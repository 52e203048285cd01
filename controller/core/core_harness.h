#ifndef CONCLAVE_CONTROLLER_CORE_CORE_HARNESS_H_
#define CONCLAVE_CONTROLLER_CORE_CORE_HARNESS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/metadata/testing.h"
#include "controller/core/controller_core.h"

namespace conclave::controller {

// A core with the simplest driver there is: a log in memory and a clock that is told to move.
class CoreHarness {
 public:
  static constexpr uint64_t kSeed = 1;

  CoreHarness() : core(ControllerCore::Options(), Random(kSeed)) { Activate(); }

  void Activate() {
    term = term + 1;
    Append(core.Activate(term, now));
    Do(core.Bootstrap(cluster, now));
    Commit();
  }

  void Append(const Batches& batches) {
    for (const v1::MetadataBatch& batch : batches) {
      log.push_back({MetadataPosition{LogIndex(log.size() + 1), term}, batch});
      core.Appended(log.back().position, batch, now.time);
    }
  }

  // Everything appended so far is committed.
  void Commit() {
    for (; committed < log.size(); ++committed) {
      const auto status = core.Committed(log[committed].position, log[committed].batch);
      ASSERT_TRUE(status.ok()) << status;
    }
    if (core.active()) {
      EXPECT_TRUE(core.speculative() == core.committed());
    }
  }

  // Appends a change and gives its response.
  template <class Response>
  Response Do(absl::StatusOr<Change<Response>> change) {
    EXPECT_TRUE(change.ok()) << change.status();
    if (!change.ok()) return Response();
    Append(change->batches);
    CompleteResponse(LogIndex(log.size()), change->response);
    return change->response;
  }

  void Wait(int64_t ms) { now.time = now.time + Duration::Milliseconds(ms); }

  v1::RegisterBrokerRequest Registration(int broker, uint64_t incarnation = 1,
                                         uint64_t generation = 0) const {
    v1::RegisterBrokerRequest request;
    request.set_cluster_id(cluster.ToBytes());
    request.set_broker_id(broker);
    request.set_incarnation_id(
        IncarnationId::FromRandom(incarnation, static_cast<uint64_t>(broker)).ToBytes());
    request.set_endpoint("host" + std::to_string(broker) + ":7400");
    request.add_directory_ids(
        metadata_testing::DirectoryOf(BrokerId(broker), generation).ToBytes());
    return request;
  }

  v1::BrokerHeartbeat HeartbeatOf(int broker, bool ready = true) const {
    v1::BrokerHeartbeat heartbeat;
    heartbeat.set_cluster_id(cluster.ToBytes());
    heartbeat.set_broker_id(broker);
    heartbeat.set_broker_epoch(EpochOf(broker).value());
    heartbeat.set_metadata_index(log.size());
    heartbeat.set_ready(ready);
    return heartbeat;
  }

  v1::BrokerHeartbeatReply Beat(int broker) { return Beat(HeartbeatOf(broker)); }
  v1::BrokerHeartbeatReply Beat(const v1::BrokerHeartbeat& heartbeat) {
    auto reply = Do(core.Heartbeat(heartbeat, now));
    Commit();
    return reply;
  }

  BrokerEpoch EpochOf(int broker) const {
    return core.speculative().FindBroker(BrokerId(broker))->epoch;
  }

  void Open(int broker) {
    EXPECT_TRUE(core.StreamOpened(BrokerId(broker), EpochOf(broker), now).ok());
  }
  void Break(int broker) { core.StreamBroken(BrokerId(broker), EpochOf(broker), now); }
  void Tick() {
    Append(core.Tick(now));
    Commit();
  }

  // Registers, opens the stream, becomes ready.
  void Start(int broker, uint64_t incarnation = 1, uint64_t generation = 0) {
    Do(core.RegisterBroker(Registration(broker, incarnation, generation), now));
    Commit();
    Open(broker);
    Beat(broker);
  }

  // With the given brokers in order for each partition.
  TopicId Create(const std::string& name, const std::vector<std::vector<int>>& assignments,
                 const std::map<std::string, std::string>& configs = {}) {
    v1::CreateTopicsRequest request;
    v1::NewTopic& topic = *request.add_topics();
    topic.set_name(name);
    for (const auto& brokers : assignments) {
      v1::ReplicaAssignment& assignment = *topic.add_assignments();
      for (int broker : brokers) assignment.add_broker_ids(broker);
    }
    for (const auto& [key, value] : configs) (*topic.mutable_configs())[key] = value;
    const auto response = Do(core.CreateTopics(request, Requester::kUser, now));
    Commit();
    EXPECT_FALSE(response.topics(0).has_error()) << response.topics(0).error().message();
    return *TopicId::FromBytes(response.topics(0).topic_id());
  }

  const Partition& P(TopicId topic, int index = 0) const {
    return *core.committed().FindPartition({topic, PartitionIndex(index)});
  }

  // "leader/leader epoch [isr]", or "none/…".
  std::string Show(TopicId topic, int index = 0) const {
    const Partition& partition = P(topic, index);
    std::string text = partition.leader == kNoBroker ? "none" : ToString(partition.leader);
    text += "/" + ToString(partition.leader_epoch) + " [";
    for (BrokerId broker : partition.isr)
      text += (text.back() == '[' ? "" : " ") + ToString(broker);
    return text + "]";
  }

  struct Entry {
    MetadataPosition position;
    v1::MetadataBatch batch;
  };

  const ClusterId cluster = ClusterId::FromRandom(11, 12);
  Now now{MonotonicTime::FromNanoseconds(1'000'000'000),
          WallTime::FromUnixMillis(1'700'000'000'000)};
  Term term;
  std::vector<Entry> log;
  size_t committed = 0;
  ControllerCore core;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_CORE_HARNESS_H_
