// Controllers and brokers in one process with the threads they have in production, over the memory
// network: what the thread sanitizer can see all of, since gRPC is not in it.
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/partition/sync_pool.h"
#include "broker/server/broker_node.h"
#include "client/admin/admin_client.h"
#include "client/consumer/consumer.h"
#include "client/producer/producer.h"
#include "common/clock/system_clock.h"
#include "common/executor/thread_executor.h"
#include "common/fs/sim_file_system.h"
#include "common/transport/memory_transport.h"
#include "controller/server/controller_node.h"
#include "raft/core/bootstrap.h"
#include "raft/core/voter_set.h"
#include "raft/storage/rocksdb_log_storage.h"

namespace conclave {
namespace {

const ClusterId kCluster = ClusterId::FromRandom(1, 1);

std::string ControllerEndpoint(int id) { return "controller-" + std::to_string(id) + ":7300"; }
std::string BrokerEndpoint(int id) { return "broker-" + std::to_string(id) + ":7400"; }

raft::VoterSet Voters() {
  std::vector<raft::VoterSet::Member> members;
  for (int id = 1; id <= 3; ++id) {
    members.push_back({{NodeId(id), DirectoryId::FromRandom(2, id)}, ControllerEndpoint(id)});
  }
  return *raft::VoterSet::Of(std::move(members));
}

class Controller {
 public:
  Controller(int id, const std::string& directory, MemoryNetwork& network, const Clock& clock)
      : name_("controller-" + std::to_string(id)),
        network_(network),
        transport_(network.Join(name_)),
        executor_(clock, {.name = "controller"}),
        storage_executor_(clock, {.name = "storage"}) {
    ControllerConfig config;
    config.node_id = NodeId(id);
    config.listener = *ParseEndpoint(ControllerEndpoint(id));
    config.heartbeat_interval = Duration::Milliseconds(200);
    config.election_timeout_min = Duration::Milliseconds(500);
    config.election_timeout_max = Duration::Milliseconds(1000);
    config.broker_session_timeout = Duration::Seconds(6);
    config.broker_session_grace = Duration::Milliseconds(200);
    auto log = raft::RocksDbLogStorage::Open(directory);
    CHECK(log.ok()) << log.status();
    auto state = (*log)->Load();
    CHECK(state.ok()) << state.status();
    auto node = controller::ControllerNode::Create(
        config,
        {NodeRole::kController, id, kCluster,
         DirectoryId::FromRandom(2, static_cast<uint64_t>(id))},
        *std::move(state), *std::move(log),
        {*transport_, executor_, storage_executor_, Random(static_cast<uint64_t>(id)),
         [](const absl::Status& why) { LOG(FATAL) << why; }});
    CHECK(node.ok()) << node.status();
    node_ = *std::move(node);
    MethodTable methods;
    node_->AddMethods(methods);
    auto server = transport_->Listen(ControllerEndpoint(id), methods.Take());
    CHECK(server.ok()) << server.status();
    server_ = *std::move(server);
    executor_.Post([this, id] { node_->Start(ControllerEndpoint(id)); });
  }

  // As kill -9. The object stays until every other node has stopped, for one may be sending to it.
  void Kill() {
    executor_.Stop();
    storage_executor_.Stop();
    network_.Kill(name_);
    server_.reset();
    node_.reset();
  }

  bool IsActive() {
    std::promise<bool> active;
    executor_.Post([&] { active.set_value(node_->IsActive()); });
    return active.get_future().get();
  }

 private:
  const std::string name_;
  MemoryNetwork& network_;
  const std::unique_ptr<Transport> transport_;
  ThreadExecutor executor_;
  ThreadExecutor storage_executor_;
  std::unique_ptr<controller::ControllerNode> node_;
  std::unique_ptr<Server> server_;
};

class BrokerProcess {
 public:
  BrokerProcess(int id, MemoryNetwork& network, const Clock& clock)
      : name_("broker-" + std::to_string(id)),
        network_(network),
        transport_(network.Join(name_)),
        executor_(clock, {.name = "broker"}),
        partitions_(clock, {.name = "partitions"}),
        background_(clock, {.name = "background"}),
        syncs_(2) {
    BrokerConfig config;
    config.broker_id = BrokerId(id);
    config.listener = *ParseEndpoint(BrokerEndpoint(id));
    for (int c = 1; c <= 3; ++c) {
      config.controllers.push_back(*ParseEndpoint(ControllerEndpoint(c)));
    }
    config.heartbeat_interval = Duration::Milliseconds(500);
    config.replica_lag_time_max = Duration::Seconds(10);
    config.data_dir = "data";
    CHECK(fs_.CreateDirectory(config.data_dir).ok());
    auto node = broker::BrokerNode::Create(
        config,
        Identity{NodeRole::kBroker, id, kCluster,
                 DirectoryId::FromRandom(3, static_cast<uint64_t>(id))},
        {*transport_, executor_, partitions_, background_, fs_, syncs_,
         Random(static_cast<uint64_t>(id)), [](const absl::Status& why) { LOG(FATAL) << why; },
         [](bool) {}});
    CHECK(node.ok()) << node.status();
    node_ = *std::move(node);
    MethodTable methods;
    node_->AddMethods(methods);
    auto server = transport_->Listen(BrokerEndpoint(id), methods.Take());
    CHECK(server.ok()) << server.status();
    server_ = *std::move(server);
    executor_.Post([this, id] { node_->Start(BrokerEndpoint(id)); });
  }

  void Kill() {
    executor_.Stop();
    partitions_.Stop();
    background_.Stop();
    network_.Kill(name_);
    server_.reset();
    node_.reset();
  }

 private:
  const std::string name_;
  MemoryNetwork& network_;
  const std::unique_ptr<Transport> transport_;
  SimFileSystem fs_;
  ThreadExecutor executor_;
  ThreadExecutor partitions_;
  ThreadExecutor background_;
  broker::SyncPool syncs_;
  std::unique_ptr<broker::BrokerNode> node_;
  std::unique_ptr<Server> server_;
};

class ControlPlaneTest : public ::testing::Test {
 protected:
  ControlPlaneTest() {
    std::string pattern = ::testing::TempDir() + "/control_plane.XXXXXX";
    base_ = mkdtemp(pattern.data());
    for (int id = 1; id <= 3; ++id) {
      CHECK(
          raft::RocksDbLogStorage::Create(Directory(id), raft::FormatInitialVoters(Voters())).ok());
      StartController(id);
    }
    for (int id = 1; id <= 3; ++id) {
      brokers_.push_back(std::make_unique<BrokerProcess>(id, network_, clock_));
    }
    admin_ = std::make_unique<AdminClient>(
        AdminClient::Options{.bootstrap = {BrokerEndpoint(1), BrokerEndpoint(2), BrokerEndpoint(3)},
                             .timeout = Duration::Seconds(60)},
        *admin_transport_, admin_executor_, Random(9));
  }

  ~ControlPlaneTest() override {
    admin_executor_.Stop();
    for (size_t i = 0; i < brokers_.size(); ++i) KillBroker(i);
    for (size_t id = 0; id < controllers_.size(); ++id) KillController(id);
    dead_brokers_.clear();
    dead_controllers_.clear();
    admin_transport_.reset();
  }

  void KillBroker(size_t i) {
    if (brokers_[i] == nullptr) return;
    brokers_[i]->Kill();
    dead_brokers_.push_back(std::move(brokers_[i]));
  }
  void KillController(size_t id) {
    if (controllers_[id] == nullptr) return;
    controllers_[id]->Kill();
    dead_controllers_.push_back(std::move(controllers_[id]));
  }

  std::string Directory(int id) const { return base_ + "/" + std::to_string(id); }
  void StartController(int id) {
    controllers_.resize(4);
    controllers_[id] = std::make_unique<Controller>(id, Directory(id), network_, clock_);
  }

  template <class Request, class Response>
  absl::StatusOr<Response> Ask(void (AdminClient::*method)(Request, AdminClient::Done<Response>),
                               Request request) {
    std::promise<absl::StatusOr<Response>> answer;
    ((*admin_).*method)(std::move(request),
                        [&](absl::StatusOr<Response> r) { answer.set_value(std::move(r)); });
    return answer.get_future().get();
  }

  int ActiveBrokers() {
    const auto cluster = Ask(&AdminClient::DescribeCluster, v1::DescribeClusterRequest());
    int active = 0;
    if (!cluster.ok()) return active;
    for (const auto& broker : cluster->brokers()) {
      active += broker.state() == v1::BROKER_LIFECYCLE_ACTIVE;
    }
    return active;
  }

  int ActiveController() {
    for (;;) {
      for (int id = 1; id <= 3; ++id) {
        if (controllers_[id] != nullptr && controllers_[id]->IsActive()) return id;
      }
    }
  }

  v1::ErrorCode Create(const std::string& name) {
    v1::CreateTopicsRequest request;
    request.add_topics()->set_name(name);
    const auto response = Ask(&AdminClient::CreateTopics, std::move(request));
    return response.ok() ? response->topics(0).error().code() : ErrorCodeOf(response.status());
  }

  SystemClock clock_;
  MemoryNetwork network_;
  std::string base_;
  std::vector<std::unique_ptr<Controller>> controllers_;
  std::vector<std::unique_ptr<BrokerProcess>> brokers_;
  std::vector<std::unique_ptr<Controller>> dead_controllers_;
  std::vector<std::unique_ptr<BrokerProcess>> dead_brokers_;
  ThreadExecutor admin_executor_{clock_, {.name = "admin"}};
  std::unique_ptr<Transport> admin_transport_ = network_.Join("admin");
  std::unique_ptr<AdminClient> admin_;
};

TEST_F(ControlPlaneTest, TopicsSurviveTheFailoverOfTheActiveController) {
  while (ActiveBrokers() < 3) {
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) {
      const std::string name = "topic-" + std::to_string(round) + "-" + std::to_string(i);
      EXPECT_EQ(Create(name), v1::NONE);
      EXPECT_EQ(Create(name), v1::TOPIC_ALREADY_EXISTS);
    }
    const int active = ActiveController();
    KillController(static_cast<size_t>(active));
    EXPECT_EQ(Create("after-" + std::to_string(round)), v1::NONE);
    StartController(active);
  }
  const auto topics = Ask(&AdminClient::DescribeTopics, v1::DescribeTopicsRequest());
  ASSERT_TRUE(topics.ok()) << topics.status();
  EXPECT_EQ(topics->topics_size(), 18);
}

TEST_F(ControlPlaneTest, ABrokerThatDiesIsFencedAndItsPartitionsAreLedByOthers) {
  while (ActiveBrokers() < 3) {
  }
  v1::CreateTopicsRequest request;
  request.add_topics()->set_name("led");
  request.mutable_topics(0)->set_partitions(6);
  ASSERT_TRUE(Ask(&AdminClient::CreateTopics, std::move(request)).ok());
  KillBroker(1);
  while (ActiveBrokers() > 2) {
  }
  v1::DescribeTopicsRequest describe;
  describe.add_names("led");
  const auto topics = Ask(&AdminClient::DescribeTopics, std::move(describe));
  ASSERT_TRUE(topics.ok()) << topics.status();
  for (const auto& partition : topics->topics(0).partitions()) {
    EXPECT_NE(partition.leader(), 2);
    EXPECT_GE(partition.leader(), 1);
    EXPECT_EQ(partition.isr_size(), 2);
  }
  brokers_[1] = std::make_unique<BrokerProcess>(2, network_, clock_);
  while (ActiveBrokers() < 3) {
  }
}

TEST_F(ControlPlaneTest, RecordsAreProducedReplicatedAndConsumedWhileABrokerDies) {
  constexpr int kRecords = 2'000;
  while (ActiveBrokers() < 3) {
  }
  v1::CreateTopicsRequest request;
  request.add_topics()->set_name("data");
  request.mutable_topics(0)->set_partitions(3);
  ASSERT_TRUE(Ask(&AdminClient::CreateTopics, std::move(request)).ok());

  const std::vector<std::string> bootstrap = {BrokerEndpoint(1), BrokerEndpoint(2),
                                              BrokerEndpoint(3)};
  ProducerOptions options;
  options.bootstrap = bootstrap;
  auto producer =
      std::make_unique<Producer>(options, *admin_transport_, admin_executor_, Random(10));
  std::atomic<int> acknowledged = 0;
  for (int i = 0; i < kRecords; ++i) {
    ProducerRecord record;
    record.topic = "data";
    record.key = std::to_string(i % 50);
    record.value = std::to_string(i);
    ASSERT_TRUE(producer
                    ->Send(record,
                           [&acknowledged](const Delivery& delivery) {
                             EXPECT_TRUE(delivery.status.ok()) << delivery.status;
                             ++acknowledged;
                           })
                    .ok());
    if (i == kRecords / 2) KillBroker(0);
  }
  while (acknowledged < kRecords) {
  }

  ConsumerOptions reading;
  reading.bootstrap = bootstrap;
  auto consumer =
      std::make_unique<Consumer>(reading, *admin_transport_, admin_executor_, Random(11));
  std::set<std::string> values;
  std::promise<void> all_read;
  std::function<void()> poll = [&] {
    consumer->Poll(500, clock_.Now() + Duration::Seconds(1), [&](Consumer::PollResult result) {
      ASSERT_TRUE(result.ok()) << result.status();
      for (const PartitionRecords& part : *result) {
        for (const RecordView& record : part.records) {
          EXPECT_TRUE(values.emplace(*record.value).second) << "twice: " << *record.value;
        }
      }
      if (values.size() == kRecords) return all_read.set_value();
      admin_executor_.Post([&] { poll(); });
    });
  };
  admin_executor_.Post([&] {
    consumer->Assign({{{"data", PartitionIndex(0)}, StartAt::Earliest()},
                      {{"data", PartitionIndex(1)}, StartAt::Earliest()},
                      {{"data", PartitionIndex(2)}, StartAt::Earliest()}});
    poll();
  });
  all_read.get_future().wait();
  admin_executor_.Stop();
}

}  // namespace
}  // namespace conclave
