#include "broker/server/group_host.h"

#include <glog/logging.h>

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/record/batch_builder.h"
#include "common/record/batch_check.h"
#include "common/record/batch_reader.h"

namespace conclave::broker {
namespace {

// Replayed in one task of the executor.
constexpr size_t kLoadBytes = size_t{1} << 20;

std::vector<group::GroupCoordinator::TopicChange> AllTopics(const MetadataImage& image) {
  std::vector<group::GroupCoordinator::TopicChange> topics;
  for (const auto& [id, topic] : image.topics()) {
    topics.push_back(
        {topic.name, group::TopicInfo{id, static_cast<int32_t>(topic.partitions.size())}});
  }
  return topics;
}

}  // namespace

GroupHost::GroupHost(PartitionId id, group::CoordinatorConfig config, const Random& random,
                     Outlets outlets, ReplicaSet& replicas, Executor& executor)
    : id_(id),
      outlets_(std::move(outlets)),
      replicas_(replicas),
      executor_(executor),
      coordinator_(config, random) {
  Replica& replica = *replicas_.Find(id_);
  epoch_ = replica.leader()->leader_epoch();
  epoch_start_ = replica.log().log_end();
  replayed_ = replica.log().log_start();
  watch_ = replica.Watch(this);
}

GroupHost::~GroupHost() {
  if (timer_) executor_.Cancel(*timer_);
  if (Replica* replica = replicas_.Find(id_)) replica->Unwatch(watch_);
}

group::Now GroupHost::Now() const { return {executor_.clock().Now(), executor_.clock().WallNow()}; }

Replica* GroupHost::Led() const {
  Replica* replica = replicas_.Find(id_);
  if (replica == nullptr || replica->leader() == nullptr ||
      replica->leader()->leader_epoch() != epoch_) {
    return nullptr;
  }
  return replica;
}

// --- Loading

void GroupHost::Start() {
  const auto& deleted = replicas_.image().deleted_topics().in_order();
  coordinator_.TopicsChanged(AllTopics(replicas_.image()), {deleted.begin(), deleted.end()}, Now());
  LoadNext();
}

void GroupHost::LoadNext() {
  Replica* replica = Led();
  if (replica == nullptr) return;  // Another host loads it anew, or another broker.
  if (replayed_ < epoch_start_) {
    const auto read = replica->Read(replayed_, kLoadBytes, epoch_start_);
    absl::Status replayed = read.status();
    if (read.ok()) replayed = Replay(read->batches);
    if (!replayed.ok()) {
      const absl::Status failure = MakeError(
          ErrorCodeOf(replayed),
          absl::StrCat("the groups of ", replica->name(),
                       " cannot be coordinated by this broker: ", std::string(replayed.message())));
      LOG(ERROR) << Describe(failure);
      coordinator_.LoadFailed(failure);
      return;
    }
    replayed_ = read->next_offset;
    executor_.Post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->LoadNext();
    });
    return;
  }
  loaded_ = true;
  coordinator_.ReplayedTo(epoch_start_, Now());
  coordinator_.HighWatermark(replica->high_watermark(), Now());
  Run();
}

absl::Status GroupHost::Replay(const Buffer& batches) {
  const auto run = CheckBatchRun(batches);
  if (!run.ok()) return run.status();
  for (const PlacedBatch& placed : *run) {
    auto reader = BatchReader::Open(
        batches.Sub(placed.position, static_cast<size_t>(placed.header.size_bytes())));
    if (!reader.ok()) return reader.status();
    RecordView record;
    for (auto next = reader->Next(record);; next = reader->Next(record)) {
      if (!next.ok()) return next.status();
      if (!*next) break;
      const std::string_view key = record.key.value_or(std::string_view());
      if (!group::GroupCoordinator::IsKnownKey(key)) {
        LOG(ERROR) << "passes over the record at offset " << record.offset << " of partition "
                   << ToString(id_) << ", of a kind that this version does not know";
        continue;
      }
      if (absl::Status replayed = coordinator_.Replay(key, record.value); !replayed.ok()) {
        return MakeError(ErrorCodeOf(replayed),
                         absl::StrCat("at offset ", record.offset.value(), ": ",
                                      std::string(replayed.message())));
      }
    }
  }
  return absl::OkStatus();
}

// --- Driving

void GroupHost::OnReplicaChanged(const PartitionId&) {
  const Replica* replica = Led();
  if (replica == nullptr || !loaded_) return;
  coordinator_.HighWatermark(replica->high_watermark(), Now());
  Run();
}

void GroupHost::Run() {
  for (auto actions = coordinator_.TakeActions(); !actions.empty();
       actions = coordinator_.TakeActions()) {
    bool failed = false;
    for (group::Action& action : actions) {
      if (const auto* append = std::get_if<group::Append>(&action)) {
        // What was to follow a failed one is not asked for any more.
        if (!failed) failed = !Append(*append);
      } else if (const auto* send = std::get_if<group::Send>(&action)) {
        outlets_.send(send->stream, send->message);
      } else if (const auto* end = std::get_if<group::EndStream>(&action)) {
        outlets_.end(end->stream, end->status);
      } else if (auto* reply = std::get_if<group::Reply>(&action)) {
        outlets_.reply(std::move(*reply));
      } else if (const auto* confirm = std::get_if<group::ConfirmLeadership>(&action)) {
        ConfirmLeadership(confirm->round);
      } else {
        LOG(INFO) << std::get<group::Note>(action).text;
      }
    }
  }
  ArmTimer();
}

bool GroupHost::Append(const group::Append& append) {
  const absl::Status appended = TryAppend(append);
  if (!appended.ok()) coordinator_.AppendFailed(append.ticket, appended, Now());
  return appended.ok();
}

absl::Status GroupHost::TryAppend(const group::Append& append) {
  Replica* replica = Led();
  if (replica == nullptr) {
    return MakeError(v1::NOT_COORDINATOR, "this broker does not coordinate the group any more");
  }
  if (absl::Status enough = replica->leader()->CheckAppendToAll(); !enough.ok()) return enough;
  BatchBuilder builder;
  for (const group::GroupRecord& record : append.records) {
    RecordView view;
    view.timestamp_ms = executor_.clock().WallNow().unix_millis();
    view.key = record.key;
    if (record.value) view.value = *record.value;
    builder.Add(view);
  }
  const auto batch = builder.Finish();
  if (!batch.ok()) return batch.status();
  const auto header = CheckBatch(*batch);
  if (!header.ok()) return header.status();
  const auto appended = replica->Append(*batch, *header);
  // A new segment may have begun all the same.
  replicas_.Touch(*replica);
  if (!appended.ok()) return appended.status();
  replica->AwaitCommit(appended->next_offset,
                       [weak = weak_from_this()](const absl::Status& status) {
                         const auto self = weak.lock();
                         if (self == nullptr || status.ok()) return;
                         self->coordinator_.OutcomeUnknown(status);
                         self->Run();
                       });
  coordinator_.Appended(append.ticket, appended->next_offset);
  return absl::OkStatus();
}

void GroupHost::ConfirmLeadership(group::ReadRound round) {
  Replica* replica = Led();
  if (replica == nullptr) {
    return coordinator_.LeadershipNotConfirmed(
        round,
        MakeError(v1::NOT_COORDINATOR, "this broker does not coordinate the group any more"));
  }
  replica->ConfirmLeadership([weak = weak_from_this(), round](const absl::Status& status) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    if (status.ok()) {
      self->coordinator_.LeadershipConfirmed(round);
    } else if (ErrorCodeOf(status) == v1::NOT_ENOUGH_REPLICAS) {
      self->coordinator_.LeadershipNotConfirmed(round, status);
    } else {
      self->coordinator_.LeadershipNotConfirmed(
          round, MakeError(v1::NOT_COORDINATOR, std::string(status.message())));
    }
    self->Run();
  });
  replicas_.Touch(*replica);
}

void GroupHost::ArmTimer() {
  const MonotonicTime at = coordinator_.NextDeadline();
  if (timer_ && timer_at_ <= at) return;  // It fires early enough, and is armed anew then.
  if (timer_) executor_.Cancel(*timer_);
  timer_.reset();
  if (at == MonotonicTime::Never()) return;
  timer_at_ = at;
  timer_ = executor_.PostAt(at, [this] {
    timer_.reset();
    coordinator_.Tick(Now());
    Run();
  });
}

}  // namespace conclave::broker
