#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/consumer/consumer.h"
#include "common/error/error.h"

// The part of Consumer that opens streams and takes in what they bring.
namespace conclave {
namespace {

TopicPartition NameOf(const v1::FetchPartitionResult& result) {
  return {result.topic(), PartitionIndex(result.partition())};
}

}  // namespace

void Consumer::Stream() {
  const MonotonicTime now = executor_.clock().Now();
  std::map<std::string, FetchConnection::Members> wanted;
  std::map<std::string, Check> checks;
  for (auto& [name, partition] : partitions_) {
    if (partition.state != Partition::State::kFetching || partition.paused) continue;
    const auto leader = metadata_.LeaderOf(name);
    const MetadataCache::Topic* topic = metadata_.Find(name.topic);
    if (!leader || topic->id != partition.topic_id) {
      metadata_.Refresh();
      continue;
    }
    if (partition.not_before > now || partition.checking) continue;
    if (partition.epoch && *partition.epoch > leader->epoch) {
      // The position is known by a later leader: this one was deposed and may not know, and what it
      // says of its log's end would pass for the position being out of range.
      metadata_.Refresh();
      continue;
    }
    if (partition.epoch && *partition.epoch < leader->epoch) {
      AddCheck(name, partition, leader->epoch, checks[leader->endpoint]);
      continue;
    }
    wanted[leader->endpoint][name] = {leader->epoch, partition.generation};
  }
  for (auto& [endpoint, check] : checks) SendCheck(endpoint, std::move(check));
  for (auto& [endpoint, members] : wanted) {
    std::unique_ptr<FetchConnection>& connection = connections_[endpoint];
    if (connection == nullptr) {
      connection =
          std::make_unique<FetchConnection>(endpoint, transport_, executor_, random_.Fork(endpoint),
                                            static_cast<FetchConnection::Owner&>(*this));
    }
    if (!connection->may_open() || (connection->open() && connection->members() == members)) {
      continue;
    }
    OpenStream(*connection, members);
  }
  for (auto it = connections_.begin(); it != connections_.end();) {
    it = wanted.count(it->first) > 0 || !it->second->may_open() ? std::next(it)
                                                                : connections_.erase(it);
  }
}

void Consumer::OpenStream(FetchConnection& connection, const FetchConnection::Members& members) {
  v1::FetchRequest request;
  request.set_max_bytes(static_cast<int32_t>(options_.fetch_bytes));
  for (const auto& [name, member] : members) {
    const Partition& partition = *Find(name);
    v1::FetchPartition* asked = request.add_partitions();
    asked->set_topic(name.topic);
    if (!partition.topic_id.IsNone()) asked->set_topic_id(partition.topic_id.ToBytes());
    asked->set_partition(name.partition.value());
    asked->set_offset(partition.buffer.fetch_offset().value());
    asked->set_leader_epoch(member.epoch.value());
    asked->set_max_bytes(static_cast<int32_t>(options_.partition_fetch_bytes));
  }
  connection.Open(request, members);
  Throttle(connection);
}

void Consumer::Throttle(FetchConnection& connection) {
  size_t buffered = 0;
  for (const auto& [name, member] : connection.members()) {
    const Partition* partition = Find(name);
    if (partition != nullptr && !partition->paused) buffered += partition->buffer.bytes();
  }
  if (buffered >= options_.prefetch_bytes) connection.SetReading(false);
  if (buffered <= options_.prefetch_bytes / 2) connection.SetReading(true);
}

void Consumer::OnFetched(FetchConnection& from, fetch_methods::FetchResponse response) {
  for (int i = 0; i < response.message.partitions_size(); ++i) {
    TakeIn(from, response.message.partitions(i), response.payloads[static_cast<size_t>(i)]);
  }
  Throttle(from);
  Wake();
}

void Consumer::TakeIn(FetchConnection& from, const v1::FetchPartitionResult& result,
                      const Buffer& batches) {
  const TopicPartition name = NameOf(result);
  Partition* partition = Find(name);
  const auto member = from.members().find(name);
  // Taken away, or fetched from elsewhere meanwhile.
  if (partition == nullptr || member == from.members().end() ||
      member->second.generation != partition->generation) {
    return;
  }
  if (result.error().code() != v1::NONE) {
    return Refused(name, *partition, StatusFromError(result.error()));
  }
  const Offset high_watermark(result.high_watermark());
  if (!partition->high_watermark || high_watermark > *partition->high_watermark) {
    partition->high_watermark = high_watermark;
  }
  const Offset next(std::min(result.next_offset(), result.high_watermark()));
  if (absl::Status status = partition->buffer.Append(batches, next); !status.ok()) {
    Refused(name, *partition,
            MakeError(ErrorCodeOf(status),
                      absl::StrCat(
                          "what ", from.endpoint(), " sent of ", ToString(name),
                          " is damaged, and is fetched again: ", std::string(status.message()))));
    return;
  }
  partition->epoch = member->second.epoch;
  partition->pause.Reset();
  partition->refused_since.reset();
}

void Consumer::Refused(const TopicPartition& name, Partition& partition,
                       const absl::Status& status) {
  VLOG(1) << ToString(name) << " at " << partition.buffer.fetch_offset() << ": "
          << Describe(status);
  const v1::ErrorCode code = ErrorCodeOf(status);
  // The stream does not go on with it.
  partition.generation = ++last_generation_;
  if (code == v1::OFFSET_OUT_OF_RANGE) {
    // What was fetched before is good, and is handed out first.
    if (partition.buffer.empty()) return Reset(name, partition, status);
    partition.not_before = executor_.clock().Now() + partition.pause.Next(random_);
    return;
  }
  if (metadata_.Learn(name, ErrorFromStatus(status).hint())) return;
  metadata_.Refresh();
  const MonotonicTime now = executor_.clock().Now();
  partition.not_before = now + partition.pause.Next(random_);
  if (IsRetriable(code)) return;
  if (!partition.refused_since) partition.refused_since = now;
  // What was fetched before is good, and is handed out first.
  if (now >= *partition.refused_since + options_.final_error_timeout && partition.buffer.empty()) {
    return Fail(name, partition, status);
  }
  LOG(WARNING) << "fetching " << ToString(name) << " is tried again after " << Describe(status);
  Tell({ConsumerEvent::Kind::kTrouble, name, partition.buffer.fetch_offset(), Offset(-1), status});
}

void Consumer::OnEnded(FetchConnection& from, const absl::Status& status) {
  // Of several partitions the status does not tell which one's leader has moved.
  const bool told = from.members().size() == 1 &&
                    metadata_.Learn(from.members().begin()->first, ErrorFromStatus(status).hint());
  if (!told) metadata_.Refresh();
  Wake();
}

}  // namespace conclave
