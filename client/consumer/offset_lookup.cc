#include "client/consumer/offset_lookup.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/fetch_methods.h"

namespace conclave {
namespace {

constexpr Duration kAttemptTimeout = Duration::Seconds(5);

}  // namespace

OffsetLookup::OffsetLookup(MetadataCache& metadata, Transport& transport, Executor& executor,
                           const Random& random)
    : metadata_(metadata),
      transport_(transport),
      executor_(executor),
      random_(random.Fork("offset lookup")) {}

OffsetLookup::~OffsetLookup() { executor_.Cancel(timer_); }

void OffsetLookup::Ask(OffsetQuery query, MonotonicTime deadline, Done done) {
  pending_.push_back({std::move(query), deadline, std::move(done), false, MonotonicTime(),
                      Backoff(Duration::Milliseconds(50), Duration::Seconds(1)), absl::OkStatus()});
  Wake();
}

void OffsetLookup::Wake() {
  if (pending_.empty() || std::exchange(step_posted_, true)) return;
  executor_.Post(lifetime_.Guard([this] {
    step_posted_ = false;
    Step();
  }));
}

void OffsetLookup::Step() {
  const MonotonicTime now = executor_.clock().Now();
  struct Group {
    v1::ListOffsetsRequest request;
    std::vector<Entry> entries;
  };
  std::map<std::string, Group> groups;
  MonotonicTime wake = MonotonicTime::Never();
  for (auto it = pending_.begin(); it != pending_.end();) {
    const Entry entry = it++;
    if (entry->asking) continue;
    metadata_.Watch(entry->query.partition.topic);
    const MetadataCache::Topic* topic = metadata_.Find(entry->query.partition.topic);
    if (topic != nullptr && !topic->status.ok()) entry->last_error = topic->status;
    if (entry->deadline <= now || (!entry->last_error.ok() && !IsRetriable(entry->last_error))) {
      const absl::Status why =
          entry->last_error.ok()
              ? MakeError(v1::REQUEST_TIMED_OUT,
                          absl::StrCat("the leader of ", ToString(entry->query.partition),
                                       " was not found, or did not tell its offsets, in time"))
              : entry->last_error;
      Finish(entry, why);
      continue;
    }
    wake = std::min(wake, entry->deadline);
    if (entry->not_before > now) {
      wake = std::min(wake, entry->not_before);
      continue;
    }
    const auto leader = metadata_.LeaderOf(entry->query.partition);
    if (!leader) {
      metadata_.Refresh();
      continue;
    }
    Group& group = groups[leader->endpoint];
    v1::ListOffsetsPartition* asked = group.request.add_partitions();
    asked->set_topic(entry->query.partition.topic);
    if (!topic->id.IsNone()) asked->set_topic_id(topic->id.ToBytes());
    asked->set_partition(entry->query.partition.partition.value());
    asked->set_spec(entry->query.spec);
    asked->set_timestamp_ms(entry->query.timestamp_ms);
    asked->set_leader_epoch(leader->epoch.value());
    entry->asking = true;
    group.entries.push_back(entry);
  }
  for (auto& [endpoint, group] : groups) {
    CallMethod<v1::ListOffsetsRequest, v1::ListOffsetsResponse>(
        transport_, endpoint, fetch_methods::kListOffsets, group.request,
        {.deadline = now + kAttemptTimeout}, executor_,
        lifetime_.Guard([this, entries = std::move(group.entries)](
                            absl::StatusOr<v1::ListOffsetsResponse> answer) {
          Answered(entries, std::move(answer));
        }));
  }
  executor_.Cancel(timer_);
  if (wake != MonotonicTime::Never()) {
    timer_ = executor_.PostAt(wake, lifetime_.Guard([this] { Step(); }));
  }
}

void OffsetLookup::Answered(const std::vector<Entry>& entries,
                            absl::StatusOr<v1::ListOffsetsResponse> answer) {
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry entry = entries[i];
    entry->asking = false;
    if (!answer.ok()) {
      Refused(entry, answer.status());
      continue;
    }
    if (static_cast<int>(i) >= answer->partitions_size()) {
      Refused(entry, MakeError(v1::NETWORK_EXCEPTION, "the leader did not answer for it"));
      continue;
    }
    const v1::ListOffsetsResult& result = answer->partitions(static_cast<int>(i));
    if (result.error().code() != v1::NONE) {
      Refused(entry, StatusFromError(result.error()));
      continue;
    }
    Finish(entry,
           OffsetAnswer{Offset(result.offset()), result.timestamp_ms(),
                        Offset(result.log_start_offset()), Offset(result.high_watermark()),
                        Offset(result.log_end_offset()), LeaderEpoch(result.leader_epoch())});
  }
  Wake();
}

void OffsetLookup::Refused(Entry entry, const absl::Status& status) {
  entry->last_error = status;
  if (metadata_.Learn(entry->query.partition, ErrorFromStatus(status).hint())) return;
  metadata_.Refresh();
  entry->not_before = executor_.clock().Now() + entry->pause.Next(random_);
}

void OffsetLookup::Finish(Entry entry, absl::StatusOr<OffsetAnswer> answer) {
  // It may ask again from within.
  Done done = std::move(entry->done);
  pending_.erase(entry);
  done(std::move(answer));
}

}  // namespace conclave
