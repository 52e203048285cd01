#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/consumer/consumer.h"
#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/fetch_methods.h"

// The part of Consumer that finds out, after a change of leader, whether what was read is still in
// the log (KIP-320).
namespace conclave {
namespace {

constexpr Duration kAttemptTimeout = Duration::Seconds(5);

}  // namespace

void Consumer::AddCheck(const TopicPartition& name, Partition& partition, LeaderEpoch leader,
                        Check& check) {
  v1::EpochQuery* asked = check.request.add_partitions();
  asked->set_topic(name.topic);
  asked->set_topic_id(partition.topic_id.ToBytes());
  asked->set_partition(name.partition.value());
  asked->set_leader_epoch(partition.epoch->value());
  asked->set_current_leader_epoch(leader.value());
  // What the leader before sends still, nobody has checked.
  partition.generation = ++last_generation_;
  partition.checking = true;
  check.members[name] = {leader, partition.generation};
}

void Consumer::SendCheck(const std::string& endpoint, Check check) {
  CallMethod<v1::OffsetsForLeaderEpochRequest, v1::OffsetsForLeaderEpochResponse>(
      transport_, endpoint, fetch_methods::kOffsetsForLeaderEpoch, check.request,
      {.deadline = executor_.clock().Now() + kAttemptTimeout}, executor_,
      lifetime_.Guard([this, members = std::move(check.members)](
                          const absl::StatusOr<v1::OffsetsForLeaderEpochResponse>& answer) {
        Checked(members, answer);
      }));
}

// Members are in the order in which they were asked for.
void Consumer::Checked(const FetchConnection::Members& members,
                       const absl::StatusOr<v1::OffsetsForLeaderEpochResponse>& answer) {
  int index = 0;
  for (const auto& [name, member] : members) {
    const int i = index++;
    Partition* partition = Find(name);
    if (partition == nullptr || partition->generation != member.generation) continue;
    partition->checking = false;
    if (!answer.ok()) {
      Refused(name, *partition, answer.status());
    } else if (i >= answer->partitions_size()) {
      Refused(name, *partition,
              MakeError(v1::NETWORK_EXCEPTION, "the leader did not answer for it"));
    } else if (answer->partitions(i).error().code() != v1::NONE) {
      Refused(name, *partition, StatusFromError(answer->partitions(i).error()));
    } else {
      TakeIn(name, *partition, member.epoch, answer->partitions(i));
    }
  }
  Wake();
}

void Consumer::TakeIn(const TopicPartition& name, Partition& partition, LeaderEpoch leader,
                      const v1::EpochEnd& end) {
  const Offset same_up_to(end.end_offset());
  if (same_up_to >= partition.buffer.fetch_offset()) {
    partition.epoch = leader;
    return;
  }
  const Offset position = partition.buffer.position();
  if (same_up_to < position) return Truncated(name, partition, leader, same_up_to);
  LOG(WARNING) << ToString(name) << ": what was fetched of it and not handed out yet, from offset "
               << same_up_to << " on, is no longer in the log, and is dropped";
  Place(partition, position, leader);
}

void Consumer::Truncated(const TopicPartition& name, Partition& partition, LeaderEpoch leader,
                         Offset end) {
  const Offset position = partition.buffer.position();
  const absl::Status why = MakeError(
      v1::LOG_TRUNCATED,
      absl::StrCat(ToString(name), ": the position is ", position.value(),
                   ", and the leader of epoch ", leader.value(),
                   " has only what lies below offset ", end.value(),
                   " of the log that was read: the records from there on were lost "
                   "when a replica that was not in sync was elected. To go on with what is there "
                   "now, seek to offset ",
                   end.value()));
  if (options_.reset == ResetPolicy::kNone) return Fail(name, partition, why);
  LOG(WARNING) << "position of " << ToString(name) << " goes back from " << position << " to "
               << end << ": " << Describe(why);
  Place(partition, end, leader);
  Tell({ConsumerEvent::Kind::kTruncated, name, position, end, why});
}

}  // namespace conclave
