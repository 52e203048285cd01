#include "tests/simulation/cluster/cluster.h"

#include <optional>
#include <utility>

#include "broker/log/segment.h"
#include "common/config/topic_config.h"
#include "common/error/error.h"
#include "common/record/batch_check.h"
#include "common/record/batch_header.h"
#include "common/record/record_conversion.h"
#include "common/rpc/client.h"
#include "common/rpc/produce_methods.h"

namespace conclave::cluster_sim {

using control_sim::ControlPlane;

namespace {

constexpr size_t kTailThatHidesNoSegment = 512;

}  // namespace

Cluster::Cluster(uint64_t seed, const ControlPlane::Options& options)
    : random_(seed),
      plane_(random_, options),
      invariants_(plane_),
      clock_(plane_.scheduler()),
      executor_(plane_.scheduler(), clock_),
      transport_(plane_.network().Join("client")) {
  AdminClient::Options admin;
  admin.bootstrap = plane_.BrokerEndpoints();
  admin.timeout = Duration::Seconds(30);
  admin.attempt_timeout = Duration::Seconds(3);
  admin_ = std::make_unique<AdminClient>(admin, *transport_, executor_, random_.Fork("client"));
}

Cluster::~Cluster() { executor_.Stop(); }

bool Cluster::RunUntil(Duration limit, const std::function<bool()>& done) {
  const MonotonicTime end = scheduler().now() + limit;
  // An event of its own at the end, so that time gets there; it may come long after this returned.
  const auto over = std::make_shared<bool>(false);
  scheduler().At(end, [over] { *over = true; });
  while (violation().empty()) {
    if (done()) return true;
    if (*over || !scheduler().RunOne()) return false;
    plane_.CheckAll();
    const std::string broken = invariants_.Check();
    if (!broken.empty()) Break(broken);
  }
  return false;
}

const MetadataImage* Cluster::ActiveImage() const {
  const int active = plane_.Active();
  return active < 0 ? nullptr : &plane_.ImageOf(active);
}

std::string Cluster::CreateTopic(const std::string& name, int partitions, int replicas,
                                 const std::map<std::string, std::string>& configs) {
  const bool ready = RunUntil(Duration::Seconds(60), [this] {
    for (int node = ControlPlane::kControllers; node < plane_.nodes(); ++node) {
      if (!plane_.IsServing(node)) return false;
    }
    return true;
  });
  if (!ready) return "the brokers do not take part";
  v1::CreateTopicsRequest request;
  v1::NewTopic* topic = request.add_topics();
  topic->set_name(name);
  topic->set_partitions(partitions);
  topic->set_replication_factor(replicas);
  for (const auto& [key, value] : configs) (*topic->mutable_configs())[key] = value;
  std::optional<absl::Status> created;
  admin_->CreateTopics(request, [&created](absl::StatusOr<v1::CreateTopicsResponse> response) {
    created = response.ok() ? StatusFromError(response->topics(0).error()) : response.status();
  });
  if (!RunUntil(Duration::Seconds(60), [&created] { return created.has_value(); })) {
    return "no answer to the creation";
  }
  if (!created->ok()) return Describe(*created);
  const bool led = RunUntil(Duration::Seconds(30), [&] {
    for (int i = 0; i < partitions; ++i) {
      if (LeaderOf(name, i) < 0) return false;
    }
    return true;
  });
  return led ? "" : "not every partition has a leader: " + violation();
}

std::string Cluster::DeleteTopic(const std::string& name) {
  v1::DeleteTopicsRequest request;
  request.add_names(name);
  std::optional<absl::Status> deleted;
  admin_->DeleteTopics(request, [&deleted](absl::StatusOr<v1::DeleteTopicsResponse> response) {
    deleted = response.ok() ? StatusFromError(response->topics(0).error()) : response.status();
  });
  if (!RunUntil(Duration::Seconds(60), [&deleted] { return deleted.has_value(); })) {
    return "no answer to the deletion";
  }
  return deleted->ok() ? "" : Describe(*deleted);
}

std::string Cluster::Alter(const std::string& topic,
                           const std::map<std::string, std::string>& configs) {
  v1::AlterConfigsRequest request;
  request.set_resource(v1::CONFIG_RESOURCE_TOPIC);
  request.set_name(topic);
  for (const auto& [key, value] : configs) (*request.mutable_set())[key] = value;
  std::optional<absl::Status> altered;
  admin_->AlterConfigs(request, [&altered](absl::StatusOr<v1::AlterConfigsResponse> response) {
    altered = response.status();
  });
  if (!RunUntil(Duration::Seconds(60), [&altered] { return altered.has_value(); })) {
    return "no answer to the change of settings";
  }
  return altered->ok() ? "" : Describe(*altered);
}

void Cluster::AlterLater(const std::string& topic,
                         const std::map<std::string, std::string>& configs) {
  v1::AlterConfigsRequest request;
  request.set_resource(v1::CONFIG_RESOURCE_TOPIC);
  request.set_name(topic);
  for (const auto& [key, value] : configs) (*request.mutable_set())[key] = value;
  admin_->AlterConfigs(request, [](const absl::StatusOr<v1::AlterConfigsResponse>&) {});
}

std::string Cluster::ElectUncleanly(const std::string& topic, int partition) {
  v1::ElectLeadersRequest request;
  request.set_type(v1::ELECTION_TYPE_UNCLEAN);
  request.set_topic(topic);
  request.add_partitions(partition);
  std::optional<absl::Status> elected;
  admin_->ElectLeaders(request, [&elected](absl::StatusOr<v1::ElectLeadersResponse> response) {
    elected = response.ok() ? StatusFromError(response->partitions(0).error()) : response.status();
  });
  if (!RunUntil(Duration::Seconds(60), [&elected] { return elected.has_value(); })) {
    return "no answer to the election";
  }
  return elected->ok() ? "" : Describe(*elected);
}

void Cluster::DeleteRecords(
    const std::string& topic, int partition, Offset before,
    std::function<void(const absl::Status&, const v1::DeleteRecordsResult&)> done) {
  v1::DeleteRecordsRequest request;
  v1::DeleteRecordsPartition* asked = request.add_partitions();
  asked->set_topic(topic);
  asked->set_partition(partition);
  asked->set_before_offset(before.value());
  admin_->DeleteRecords(
      request, [done = std::move(done)](absl::StatusOr<v1::DeleteRecordsResponse> response) {
        if (!response.ok()) return done(response.status(), {});
        const v1::DeleteRecordsResult& result = response->partitions(0);
        done(StatusFromError(result.error()), result);
      });
}

const Topic* Cluster::FindTopic(const std::string& topic) const {
  for (int node = 0; node < plane_.nodes(); ++node) {
    if (!plane_.IsUp(node)) continue;
    const Topic* found = plane_.ImageOf(node).FindTopic(std::string_view(topic));
    if (found != nullptr) return found;
  }
  return nullptr;
}

PartitionId Cluster::IdOf(const std::string& topic, int partition) const {
  const Topic* found = FindTopic(topic);
  if (found == nullptr) return {};
  return {found->id, PartitionIndex(partition)};
}

const Partition* Cluster::StateOf(const std::string& topic, int partition) const {
  const MetadataImage* image = ActiveImage();
  return image == nullptr ? nullptr : image->FindPartition(IdOf(topic, partition));
}

int Cluster::LeaderOf(const std::string& topic, int partition) {
  const Partition* state = StateOf(topic, partition);
  if (state == nullptr || state->leader == kNoBroker) return -1;
  const int node = state->leader.value();
  if (!plane_.IsUp(node)) return -1;
  broker::Replica* replica = plane_.BrokerAt(node).replicas().Find(IdOf(topic, partition));
  if (replica == nullptr || replica->leader() == nullptr) return -1;
  return replica->leader()->leader_epoch() == state->leader_epoch ? node : -1;
}

std::string Cluster::WhyNotWhole(const std::string& topic) {
  if (const std::string why = plane_.WhyNotWhole(); !why.empty()) return why;
  const Topic* found = ActiveImage()->FindTopic(std::string_view(topic));
  if (found == nullptr) return topic + " is not there";
  for (size_t i = 0; i < found->partitions.size(); ++i) {
    const int index = static_cast<int>(i);
    if (LeaderOf(topic, index) < 0) return topic + "-" + std::to_string(i) + " is not led";
    for (const PartitionReplica& member : found->partitions[i].replicas) {
      const broker::Replica* replica =
          plane_.BrokerAt(member.broker.value()).replicas().Find(IdOf(topic, index));
      if (replica != nullptr && !replica->damage() && found->partitions[i].InIsr(member.broker)) {
        continue;
      }
      return DescribeReplicas(topic, index);
    }
  }
  return "";
}

std::string Cluster::DescribeReplicas(const std::string& topic, int partition) {
  std::string text = topic + "-" + std::to_string(partition);
  const Partition* state = StateOf(topic, partition);
  if (state == nullptr) return text + " is not known";
  for (const PartitionReplica& member : state->replicas) {
    text += "; broker " + ToString(member.broker);
    if (state->leader == member.broker) text += ", leader";
    if (!state->InIsr(member.broker)) text += ", not in sync";
    const int node = member.broker.value();
    const broker::Replica* replica =
        plane_.IsUp(node) ? plane_.BrokerAt(node).replicas().Find(IdOf(topic, partition)) : nullptr;
    if (replica == nullptr) {
      text += ": no log";
      continue;
    }
    const PartitionLog& log = replica->log();
    text += ": [" + ToString(log.log_start()) + ", " + ToString(log.log_end()) + "), durable to " +
            ToString(log.durable_offset()) + ", high watermark " +
            ToString(replica->high_watermark());
    if (replica->damage()) text += ", damaged";
  }
  return text;
}

std::optional<std::string> Cluster::FirstSegment(int node, broker::Replica& replica) {
  const auto entries = plane_.DiskOf(node).List(replica.log().directory());
  if (!entries.ok() || replica.log().segment_count() < 2) return std::nullopt;
  for (const DirectoryEntry& entry : *entries) {  // By name, so by offset.
    const auto base = ParseSegmentName(entry.name);
    if (base) return SegmentPath(replica.log().directory(), *base, ".log");
  }
  return std::nullopt;
}

bool Cluster::RotAtLeader(const std::string& topic, int partition) {
  // What is served from memory hides it, until the end, when nothing is to be damaged any more.
  if (plane_.options().tail_bytes > kTailThatHidesNoSegment) return false;
  const int node = LeaderOf(topic, partition);
  if (node < 0) return false;
  const PartitionId id = IdOf(topic, partition);
  broker::Replica& replica = *plane_.BrokerAt(node).replicas().Find(id);
  const auto path = FirstSegment(node, replica);
  // Behind the header of the first batch: found by its checksum alone.
  const uint64_t byte = kBatchHeaderBytes + random_.Below(8);
  if (!path || plane_.DiskOf(node).DurableSize(*path) <= byte) return false;
  plane_.Say("a bit of " + *path + " of " + ControlPlane::NameOf(node) + " rots");
  plane_.DiskOf(node).Rot(*path, byte);
  invariants_.ExpectDamage(node, id);
  rotten_.push_back({node, id});
  ReadRotten();
  return true;
}

void Cluster::ReadRotten() {
  std::erase_if(rotten_, [this](const Rotten& rotten) {
    if (!plane_.IsUp(rotten.node)) return false;
    broker::Replica* replica = plane_.BrokerAt(rotten.node).replicas().Find(rotten.id);
    if (replica == nullptr) return false;
    const Offset start = replica->log().log_start();
    return replica->Read(start, 1, replica->log().log_end()).ok();
  });
}

void Cluster::Produce(int broker, const std::string& topic, int partition,
                      const std::vector<std::string>& values, v1::Acks acks, Duration timeout,
                      Answer answer) {
  v1::ProduceRequest request;
  request.set_acks(acks);
  request.set_timeout_ms(static_cast<int32_t>(timeout.milliseconds()));
  v1::ProducePartition* part = request.add_partitions();
  part->set_topic(topic);
  part->set_partition(partition);
  for (const std::string& value : values) part->add_records()->set_value(value);
  CallMethod<v1::ProduceRequest, v1::ProduceResponse>(
      *transport_, ControlPlane::EndpointTextOf(broker), produce_methods::kProduce, request,
      {.deadline = scheduler().now() + timeout + Duration::Seconds(5)}, executor_,
      [this, topic, partition, acks,
       answer = std::move(answer)](absl::StatusOr<v1::ProduceResponse> response) {
        if (!response.ok()) return answer(response.status(), {});
        const v1::ProducePartitionResult& result = response->partitions(0);
        const absl::Status status = StatusFromError(result.error());
        if (status.ok() && acks == v1::ACKS_ALL) {
          Acknowledged(topic, partition, Offset(result.base_offset()));
        }
        answer(status, result);
      });
}

bool Cluster::IsFsyncEverywhere(const PartitionId& id) const {
  for (int node = 0; node < plane_.nodes(); ++node) {
    if (!plane_.IsUp(node)) continue;
    const Partition* state = plane_.ImageOf(node).FindPartition(id);
    if (state != nullptr && state->flush_policy != v1::FLUSH_POLICY_FSYNC) return false;
  }
  return true;
}

void Cluster::Acknowledged(const std::string& topic, int partition, Offset offset) {
  const Topic* found = FindTopic(topic);
  if (found != nullptr) acknowledged_in_[topic] = found->id;
  // Under way when all nodes were killed, and told before any has read its metadata again.
  if (!acknowledged_in_.contains(topic)) return Break("acknowledged in a topic that is not there");
  const PartitionId id{acknowledged_in_.at(topic), PartitionIndex(partition)};
  size_t synced = 0;
  if (found != nullptr && IsFsyncEverywhere(id)) {
    const size_t replicas = found->partitions.at(static_cast<size_t>(partition)).replicas.size();
    synced = EffectiveMinInsyncReplicas(found->configs, replicas);
  }
  const std::string broken = invariants_.Acknowledged(id, topic, offset, synced);
  if (!broken.empty()) Break(topic + "-" + std::to_string(partition) + ": " + broken);
}

std::optional<Offset> Cluster::EndOf(const std::string& topic, int partition) {
  const int leader = LeaderOf(topic, partition);
  if (leader < 0) return std::nullopt;
  return plane_.BrokerAt(leader).replicas().Find(IdOf(topic, partition))->high_watermark();
}

std::vector<std::optional<std::string>> Cluster::ReadAll(const std::string& topic, int partition) {
  std::vector<std::optional<std::string>> values;
  const int leader = LeaderOf(topic, partition);
  if (leader < 0) {
    Break("nobody leads " + topic);
    return values;
  }
  broker::Replica& replica = *plane_.BrokerAt(leader).replicas().Find(IdOf(topic, partition));
  Offset at = replica.log().log_start();
  values.resize(static_cast<size_t>(at.value()));
  while (at < replica.high_watermark()) {
    const auto read = replica.log().Read(at, size_t{1} << 20, replica.high_watermark());
    if (!read.ok() || read->batches.empty()) break;
    const auto run = CheckBatchRun(read->batches);
    for (const PlacedBatch& placed : *run) {
      google::protobuf::RepeatedPtrField<v1::Record> records;
      const absl::Status decoded = AppendRecords(
          read->batches.Sub(placed.position, static_cast<size_t>(placed.header.size_bytes())), at,
          records);
      if (!decoded.ok()) Break(Describe(decoded));
      for (const v1::Record& record : records) values.emplace_back(record.value());
    }
    at = read->next_offset;
  }
  return values;
}

}  // namespace conclave::cluster_sim
