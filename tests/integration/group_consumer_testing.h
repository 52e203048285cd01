#ifndef CONCLAVE_TESTS_INTEGRATION_GROUP_CONSUMER_TESTING_H_
#define CONCLAVE_TESTS_INTEGRATION_GROUP_CONSUMER_TESTING_H_

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/group/group_consumer.h"
#include "client/testing/fake_cluster.h"
#include "common/error/error.h"
#include "common/record/batch_builder.h"
#include "tests/integration/group_service_testing.h"

namespace conclave {

// Fake brokers with the real coordinator, and members of group "g", in one virtual world.
class GroupWorld {
 public:
  explicit GroupWorld(uint64_t seed = 1)
      : cluster(3, seed, [this](int broker, MethodTable& table, Executor& executor) {
          service().AddMethods(broker, table, executor);
        }) {}
  ~GroupWorld() {
    // Their executors stay for as long as the network knows of them.
    for (const auto& member : members) {
      member->consumer.reset();
      member->executor->Stop();
    }
    for (int broker = 1; broker <= 3; ++broker) {
      if (cluster.world().brokers.contains(broker)) cluster.Stop(broker);
    }
    service().DropStreams();
  }

  // A member, that polls for ever unless it is told not to.
  struct Member {
    GroupWorld* world = nullptr;
    std::unique_ptr<SimExecutor> executor;
    std::unique_ptr<GroupConsumer> consumer;
    std::map<int, std::vector<int64_t>> read;
    std::vector<GroupEvent> events;
    std::vector<absl::Status> failures;
    bool polling = false;
    bool stop = false;

    void PollOn(size_t max = 100) {
      stop = false;
      if (polling) return;
      polling = true;
      consumer->Poll(max, executor->clock().Now() + Duration::Milliseconds(100),
                     [this, max](Consumer::PollResult result) {
                       polling = false;
                       TakeIn(result);
                       if (!result.ok() || stop) return;
                       // Not from within the callback: an executor's turn lies between.
                       executor->Post([this, max] {
                         if (consumer != nullptr && !stop) PollOn(max);
                       });
                     });
    }
    void TakeIn(const Consumer::PollResult& result) {
      if (!result.ok()) return failures.push_back(result.status());
      for (const PartitionRecords& part : *result) {
        for (const RecordView& record : part.records) {
          const int partition = part.partition.partition.value();
          read[partition].push_back(record.offset.value());
          world->handed[partition].insert(record.offset.value());
        }
      }
    }
    size_t total() const {
      size_t sum = 0;
      for (const auto& [partition, offsets] : read) sum += offsets.size();
      return sum;
    }
    int Count(GroupEvent::Kind kind) const {
      int count = 0;
      for (const GroupEvent& event : events) count += event.kind == kind;
      return count;
    }
    std::vector<int> Owned() const {
      std::vector<int> owned;
      for (const TopicPartition& name : consumer->Owned()) owned.push_back(name.partition.value());
      return owned;
    }
  };

  GroupConsumerOptions Options() {
    GroupConsumerOptions options;
    options.consumer.bootstrap = cluster.bootstrap();
    options.consumer.reset = ResetPolicy::kEarliest;
    options.group = "g";
    options.client_id = "test";
    return options;
  }
  Member& Join(GroupConsumerOptions options) {
    members.push_back(std::make_unique<Member>());
    Member& member = *members.back();
    member.world = this;
    member.executor = std::make_unique<SimExecutor>(cluster.scheduler(), cluster.clock());
    options.on_event = [&member](const GroupEvent& event) { member.events.push_back(event); };
    member.consumer = std::make_unique<GroupConsumer>(options, cluster.transport(),
                                                      *member.executor, Random(++last_member));
    member.consumer->Subscribe({"t"});
    return member;
  }
  Member& Join() { return Join(Options()); }

  // Polls once, and waits for it.
  absl::Status PollOnce(Member& member, size_t max = 100, Duration wait = Duration::Seconds(1)) {
    std::optional<absl::Status> status;
    member.consumer->Poll(max, cluster.clock().Now() + wait, [&](Consumer::PollResult result) {
      member.TakeIn(result);
      status = result.status();
    });
    cluster.RunUntil([&] { return status.has_value(); });
    return status.value_or(absl::InternalError("the poll did not end"));
  }
  absl::Status Commit(Member& member) {
    std::optional<absl::Status> status;
    member.consumer->Commit([&](absl::Status committed) { status = std::move(committed); });
    cluster.RunUntil([&] { return status.has_value(); });
    return status.value_or(absl::InternalError("the commit did not end"));
  }
  absl::Status Close(Member& member) {
    member.stop = true;
    std::optional<absl::Status> status;
    member.consumer->Close([&](absl::Status closed) { status = std::move(closed); });
    cluster.RunUntil([&] { return status.has_value(); });
    return status.value_or(absl::InternalError("the close did not end"));
  }
  // As a process that is killed: its streams break, and it says nothing.
  void Kill(Member& member) {
    member.stop = true;
    member.consumer.reset();
  }

  void CreateTopic(int partitions) {
    cluster.world().CreateTopic("t", partitions);
    if (service().broker() != 0) service().TellTopics();
  }
  void Append(int count, int partition = 0) {
    auto& log = cluster.world().At("t", partition);
    for (int i = 0; i < count; ++i) {
      BatchBuilder builder;
      RecordView record;
      record.value = "v";
      builder.Add(record);
      v1::ProducePartitionResult result;
      log.Append(*builder.Finish(), result);
      CHECK_EQ(result.error().code(), v1::NONE);
    }
    cluster.world().Wake();
  }
  bool Until(const std::function<bool()>& condition, Duration limit = Duration::Seconds(60)) {
    return cluster.RunUntil(condition, limit);
  }
  std::optional<int64_t> Committed(int partition) {
    return service().Committed("g", "t", partition);
  }

  // Made by the first broker that starts, while the cluster is being made.
  TestGroupService& service() {
    if (service_ == nullptr) {
      service_ = std::make_unique<TestGroupService>(cluster.world(), cluster.executor());
    }
    return *service_;
  }

 private:
  std::unique_ptr<TestGroupService> service_;

 public:
  client_testing::FakeCluster cluster;
  std::map<int, std::set<int64_t>> handed;
  std::vector<std::unique_ptr<Member>> members;
  uint64_t last_member = 0;
};

}  // namespace conclave

#endif  // CONCLAVE_TESTS_INTEGRATION_GROUP_CONSUMER_TESTING_H_
