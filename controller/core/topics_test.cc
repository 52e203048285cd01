#include <gtest/gtest.h>

#include "common/error/error.h"
#include "controller/core/core_harness.h"
#include "controller/core/describe.h"

namespace conclave::controller {
namespace {

class TopicsTest : public ::testing::Test, protected CoreHarness {
 protected:
  void SetUp() override {
    for (int broker : {1, 2, 3}) Start(broker);
  }

  static v1::NewTopic Named(const std::string& name) {
    v1::NewTopic topic;
    topic.set_name(name);
    return topic;
  }
  static v1::NewTopic WithCounts(const std::string& name, int32_t partitions, int32_t replicas) {
    v1::NewTopic topic = Named(name);
    topic.set_partitions(partitions);
    topic.set_replication_factor(replicas);
    return topic;
  }

  v1::CreateTopicsResponse Send(const std::vector<v1::NewTopic>& topics,
                                Requester requester = Requester::kUser) {
    v1::CreateTopicsRequest request;
    for (const auto& topic : topics) *request.add_topics() = topic;
    auto response = Do(core.CreateTopics(request, requester, now));
    Commit();
    return response;
  }

  // Whatever is refused leaves nothing behind.
  v1::ErrorCode CodeOf(const v1::NewTopic& topic, Requester requester = Requester::kUser) {
    const size_t before = log.size();
    const auto response = Send({topic}, requester);
    const v1::CreateTopicResult& result = response.topics(0);
    EXPECT_EQ(result.name(), topic.name());
    if (result.error().code() != v1::NONE) {
      EXPECT_EQ(log.size(), before);
      EXPECT_EQ(result.topic_id(), "");
      EXPECT_FALSE(result.error().message().empty());
    }
    return result.error().code();
  }

  v1::ErrorCode Alter(const std::string& name, const std::map<std::string, std::string>& set,
                      const std::vector<std::string>& unset = {}) {
    v1::AlterConfigsRequest request;
    request.set_resource(v1::CONFIG_RESOURCE_TOPIC);
    request.set_name(name);
    for (const auto& [key, value] : set) (*request.mutable_set())[key] = value;
    for (const auto& key : unset) request.add_unset(key);
    const auto change = core.AlterConfigs(request, now);
    if (!change.ok()) return ErrorCodeOf(change.status());
    Append(change->batches);
    Commit();
    return v1::NONE;
  }

  const ConfigMap& ConfigsOf(const std::string& name) {
    return core.committed().FindTopic(name)->configs;
  }
};

TEST_F(TopicsTest, DefaultsAreOnePartitionAndThreeReplicas) {
  const auto result = Send({Named("t")}).topics(0);
  EXPECT_EQ(result.partitions(), 1);
  EXPECT_EQ(result.replication_factor(), 3);
  const TopicId id = *TopicId::FromBytes(result.topic_id());
  EXPECT_EQ(core.committed().FindTopic("t")->id, id);
  EXPECT_EQ(P(id).isr.size(), 3u);
  EXPECT_EQ(P(id).leader, P(id).replicas[0].broker);
  EXPECT_EQ(P(id).leader_epoch, LeaderEpoch(0));
  EXPECT_EQ(P(id).partition_epoch, PartitionEpoch(0));
}

TEST_F(TopicsTest, WithFewerLiveBrokersAsManyReplicas) {
  Break(3);
  Wait(200);
  Tick();
  EXPECT_EQ(Send({Named("t")}).topics(0).replication_factor(), 2);
}

TEST_F(TopicsTest, R38Names) {
  for (const std::string& name : {std::string(), std::string("."), std::string(".."),
                                  std::string(250, 'x'), std::string("a/b"), std::string("a\0b", 3),
                                  std::string("größe"), std::string("__consumer_offsets")}) {
    EXPECT_EQ(CodeOf(Named(name)), v1::INVALID_TOPIC) << name;
  }
  EXPECT_EQ(CodeOf(Named(std::string(249, 'x'))), v1::NONE);
  EXPECT_EQ(CodeOf(Named("a.b")), v1::NONE);
  EXPECT_EQ(CodeOf(Named("a_b")), v1::INVALID_TOPIC);
  EXPECT_EQ(CodeOf(Named("a.b")), v1::TOPIC_ALREADY_EXISTS);
  EXPECT_EQ(CodeOf(Named("__consumer_offsets"), Requester::kCluster), v1::NONE);
  EXPECT_EQ(CodeOf(Named("__consumer_offsets"), Requester::kCluster), v1::TOPIC_ALREADY_EXISTS);
}

TEST_F(TopicsTest, R38NamesThatCollideInOneRequestAreBothNamed) {
  const auto response = Send({Named("x.y"), Named("x_y")});
  EXPECT_EQ(response.topics(0).error().code(), v1::NONE);
  EXPECT_EQ(response.topics(1).error().code(), v1::INVALID_TOPIC);
  EXPECT_NE(response.topics(1).error().message().find("x_y collides with topic x.y of the same"),
            std::string::npos)
      << response.topics(1).error().message();
}

TEST_F(TopicsTest, R38PartitionCounts) {
  EXPECT_EQ(CodeOf(WithCounts("t", 0, 1)), v1::INVALID_PARTITIONS);
  EXPECT_EQ(CodeOf(WithCounts("t", -1, 1)), v1::INVALID_PARTITIONS);
  EXPECT_EQ(CodeOf(WithCounts("t", INT32_MAX, 1)), v1::INVALID_PARTITIONS);
  EXPECT_EQ(CodeOf(WithCounts("t", kMaxPartitionsPerRequest + 1, 1)), v1::INVALID_PARTITIONS);
  EXPECT_EQ(CodeOf(WithCounts("t", kMaxPartitionsPerRequest, 3)), v1::NONE);
}

TEST_F(TopicsTest, R38ReplicationFactors) {
  EXPECT_EQ(CodeOf(WithCounts("t", 1, 0)), v1::INVALID_REPLICATION_FACTOR);
  EXPECT_EQ(CodeOf(WithCounts("t", 1, -1)), v1::INVALID_REPLICATION_FACTOR);
  EXPECT_EQ(CodeOf(WithCounts("t", 1, 4)), v1::INVALID_REPLICATION_FACTOR);
  EXPECT_EQ(CodeOf(WithCounts("t", 1, INT32_MAX)), v1::INVALID_REPLICATION_FACTOR);
  EXPECT_EQ(CodeOf(WithCounts("t", 1, 3)), v1::NONE);
  for (int broker : {1, 2, 3}) {
    Break(broker);
    Wait(1000);
    Tick();
  }
  EXPECT_EQ(CodeOf(Named("u")), v1::INVALID_REPLICATION_FACTOR);
}

TEST_F(TopicsTest, TheClustersLimitHolds) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(CodeOf(WithCounts("t" + std::to_string(i), kMaxPartitionsPerRequest, 1)), v1::NONE);
  }
  EXPECT_EQ(core.committed().partition_count(), kMaxPartitionsPerCluster);
  EXPECT_EQ(CodeOf(WithCounts("more", 1, 1)), v1::INVALID_PARTITIONS);
}

TEST_F(TopicsTest, AssignmentsAreChecked) {
  const auto assigned = [](const std::vector<std::vector<int>>& assignments) {
    v1::NewTopic topic = Named("t");
    for (const auto& brokers : assignments) {
      auto& assignment = *topic.add_assignments();
      for (int broker : brokers) assignment.add_broker_ids(broker);
    }
    return topic;
  };
  EXPECT_EQ(CodeOf(assigned({{}})), v1::INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(CodeOf(assigned({{1, 1}})), v1::INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(CodeOf(assigned({{1, 9}})), v1::INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(CodeOf(assigned({{1, 2}, {1}})), v1::INVALID_REPLICA_ASSIGNMENT);
  v1::NewTopic both = assigned({{1}});
  both.set_partitions(1);
  EXPECT_EQ(CodeOf(both), v1::INVALID_REQUEST);
  Break(1);
  Wait(200);
  Tick();
  EXPECT_EQ(CodeOf(assigned({{1}})), v1::INVALID_REPLICA_ASSIGNMENT);
  const TopicId topic = Create("t", {{1, 2}});
  EXPECT_EQ(Show(topic), "2/0 [2]") << "only those that live are in sync";
}

TEST_F(TopicsTest, SettingsAreChecked) {
  v1::NewTopic topic = Named("t");
  (*topic.mutable_configs())["retention.mss"] = "1";
  EXPECT_EQ(CodeOf(topic), v1::INVALID_CONFIG);
  topic.clear_configs();
  (*topic.mutable_configs())["flush.policy"] = "memory";
  EXPECT_EQ(CodeOf(topic), v1::INVALID_CONFIG);
  topic.clear_configs();
  (*topic.mutable_configs())["retention.ms"] = "0099";
  EXPECT_EQ(CodeOf(topic), v1::NONE);
  EXPECT_EQ(ConfigsOf("t"), (ConfigMap{{"retention.ms", "99"}}));
}

TEST_F(TopicsTest, EachTopicIsAnsweredByItselfAndTheGoodOnesAreCreated) {
  const auto response = Send({Named("a"), Named("."), Named("b"), Named("b"), Named("c.d"),
                              Named("c_d"), WithCounts("e", 9000, 1), WithCounts("f", 1001, 1)});
  std::vector<v1::ErrorCode> codes;
  for (const auto& result : response.topics()) codes.push_back(result.error().code());
  EXPECT_EQ(codes, (std::vector<v1::ErrorCode>{v1::NONE, v1::INVALID_TOPIC, v1::INVALID_REQUEST,
                                               v1::INVALID_REQUEST, v1::NONE, v1::INVALID_TOPIC,
                                               v1::NONE, v1::INVALID_PARTITIONS}));
  EXPECT_EQ(core.committed().topics().size(), 3u);
}

TEST_F(TopicsTest, ValidateOnlyChangesNothing) {
  v1::CreateTopicsRequest request;
  *request.add_topics() = WithCounts("t", 4, 2);
  *request.add_topics() = Named(".");
  request.set_validate_only(true);
  const size_t before = log.size();
  const auto response = Do(core.CreateTopics(request, Requester::kUser, now));
  EXPECT_EQ(log.size(), before);
  EXPECT_EQ(response.topics(0).partitions(), 4);
  EXPECT_EQ(response.topics(0).topic_id(), "");
  EXPECT_EQ(response.topics(1).error().code(), v1::INVALID_TOPIC);
}

TEST_F(TopicsTest, ACreationSentAgainUnderItsIdIsAnsweredAsCreated) {
  v1::NewTopic topic = WithCounts("again", 2, 3);
  topic.set_topic_id(TopicId::FromRandom(7, 8).ToBytes());
  const auto first = Send({topic});
  EXPECT_EQ(first.topics(0).topic_id(), topic.topic_id());
  const size_t before = log.size();
  EXPECT_EQ(Send({topic}).SerializeAsString(), first.SerializeAsString());
  EXPECT_EQ(log.size(), before);

  v1::NewTopic other = topic;
  other.set_topic_id(TopicId::FromRandom(9, 9).ToBytes());
  EXPECT_EQ(CodeOf(other), v1::TOPIC_ALREADY_EXISTS);
  other = topic;
  other.set_name("other");
  EXPECT_EQ(CodeOf(other), v1::INVALID_REQUEST);
  v1::NewTopic twin = Named("twin");
  twin.set_topic_id(TopicId::FromRandom(3, 3).ToBytes());
  v1::NewTopic sibling = Named("sibling");
  sibling.set_topic_id(twin.topic_id());
  const auto twins = Send({twin, sibling});
  for (const auto& result : twins.topics()) {
    EXPECT_EQ(result.error().code(), v1::INVALID_REQUEST);
  }
  for (const std::string& bad : {std::string("short"), std::string(16, '\0')}) {
    other = Named("bad");
    other.set_topic_id(bad);
    EXPECT_EQ(CodeOf(other), v1::INVALID_REQUEST);
  }
}

TEST_F(TopicsTest, ACreationRepeatedLateDoesNotBringADeletedTopicBack) {
  v1::NewTopic topic = WithCounts("gone", 2, 3);
  topic.set_topic_id(TopicId::FromRandom(7, 8).ToBytes());
  Send({topic});
  v1::DeleteTopicsRequest request;
  request.add_names("gone");
  Do(core.DeleteTopics(request, Requester::kUser, now));
  // Also before the deletion is committed.
  EXPECT_EQ(CodeOf(topic), v1::TOPIC_DELETED);
  Commit();
  EXPECT_EQ(CodeOf(topic), v1::TOPIC_DELETED);
  v1::NewTopic other = topic;
  other.set_name("other");
  EXPECT_EQ(CodeOf(other), v1::TOPIC_DELETED);
  EXPECT_FALSE(IsRetriable(v1::TOPIC_DELETED));
  EXPECT_TRUE(HasNoEffect(v1::TOPIC_DELETED));
  topic.set_topic_id(TopicId::FromRandom(7, 9).ToBytes());
  EXPECT_EQ(CodeOf(topic), v1::NONE);
}

TEST_F(TopicsTest, DeletionIsOneCommitAlsoWithABrokerAway) {
  Create("t", {{1, 2, 3}});
  Send({Named("__consumer_offsets")}, Requester::kCluster);
  Break(3);
  Wait(200);
  Tick();
  v1::DeleteTopicsRequest request;
  for (const char* name : {"t", "nope", "t", "__consumer_offsets"}) request.add_names(name);
  const size_t before = log.size();
  const auto response = Do(core.DeleteTopics(request, Requester::kUser, now));
  Commit();
  EXPECT_EQ(log.size(), before + 1);
  EXPECT_EQ(response.topics(0).error().code(), v1::NONE);
  EXPECT_EQ(response.topics(0).topic_id().size(), 16u);
  EXPECT_EQ(response.topics(1).error().code(), v1::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(response.topics(2).error().code(), v1::INVALID_REQUEST);
  EXPECT_EQ(response.topics(3).error().code(), v1::INVALID_TOPIC);
  EXPECT_EQ(core.committed().FindTopic("t"), nullptr);
}

TEST_F(TopicsTest, AlterConfigsIsAllOrNothing) {
  Create("t", {{1}}, {{"retention.ms", "5"}});
  EXPECT_EQ(Alter("nope", {{"retention.ms", "1"}}), v1::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(Alter("t", {{"retention.ms", "1"}, {"segment.bytes", "x"}}), v1::INVALID_CONFIG);
  EXPECT_EQ(Alter("t", {{"retention.ms", "1"}}, {"retention.ms"}), v1::INVALID_CONFIG);
  EXPECT_EQ(Alter("t", {}, {"retention.m"}), v1::INVALID_CONFIG);
  EXPECT_EQ(ConfigsOf("t"), (ConfigMap{{"retention.ms", "5"}}));
  EXPECT_EQ(Alter("t", {{"retention.bytes", "7"}}, {"retention.ms", "segment.ms"}), v1::NONE);
  EXPECT_EQ(ConfigsOf("t"), (ConfigMap{{"retention.bytes", "7"}}));
  const size_t before = log.size();
  EXPECT_EQ(Alter("t", {{"retention.bytes", "7"}}), v1::NONE);
  EXPECT_EQ(log.size(), before);
  v1::AlterConfigsRequest broker;
  broker.set_resource(v1::CONFIG_RESOURCE_BROKER);
  EXPECT_EQ(ErrorCodeOf(core.AlterConfigs(broker, now).status()), v1::INVALID_REQUEST);
}

TEST_F(TopicsTest, Describe) {
  Create("t", {{1, 2}}, {{"retention.ms", "5"}});
  v1::DescribeTopicsRequest request;
  request.add_names("t");
  request.add_names("nope");
  const auto topics = DescribeTopics(core.committed(), request);
  EXPECT_EQ(topics.topics(0).partitions(0).leader(), 1);
  EXPECT_EQ(topics.topics(0).partitions(0).replicas_size(), 2);
  EXPECT_FALSE(topics.topics(0).partitions(0).has_high_watermark());
  int own = 0;
  for (const auto& entry : topics.topics(0).configs()) {
    own += entry.origin() == v1::CONFIG_ORIGIN_TOPIC ? 1 : 0;
  }
  EXPECT_EQ(own, 1);
  EXPECT_EQ(topics.topics(1).error().code(), v1::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(DescribeTopics(core.committed(), {}).topics_size(), 1);
  const auto cluster_response = DescribeCluster(core.committed());
  EXPECT_EQ(cluster_response.brokers_size(), 3);
  EXPECT_EQ(cluster_response.brokers(0).leads(), 1);
  EXPECT_EQ(cluster_response.brokers(0).state(), v1::BROKER_LIFECYCLE_ACTIVE);
  EXPECT_EQ(cluster_response.position().index(), log.size());
}

}  // namespace
}  // namespace conclave::controller
