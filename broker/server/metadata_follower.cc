#include "broker/server/metadata_follower.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "broker/partition/metadata_update.h"
#include "common/error/error.h"
#include "common/rpc/controller_methods.h"

namespace conclave::broker {
namespace {

constexpr Duration kFirstPause = Duration::Milliseconds(20);
constexpr Duration kLongestPause = Duration::Milliseconds(500);
constexpr Duration kCheckInterval = Duration::Milliseconds(500);

}  // namespace

MetadataFollower::MetadataFollower(ClusterId cluster_id, BrokerId broker_id,
                                   std::vector<std::string> controllers, Events events,
                                   Transport& transport, Executor& executor)
    : cluster_id_(cluster_id),
      broker_id_(broker_id),
      events_(std::move(events)),
      transport_(transport),
      executor_(executor),
      controllers_(std::move(controllers)),
      pause_(kFirstPause) {}

MetadataFollower::~MetadataFollower() = default;

void MetadataFollower::Start() {
  Open();
  OnTimer();
}

void MetadataFollower::ActiveCommitIndex(LogIndex index) {
  active_commit_index_ = std::max(active_commit_index_, index);
  if (image_.position().index >= active_commit_index_) {
    behind_since_ = MonotonicTime::Never();
  } else if (behind_since_ == MonotonicTime::Never()) {
    behind_since_ = executor_.clock().Now();
  }
}

void MetadataFollower::Open() {
  endpoint_ = controllers_.current();
  last_heard_ = executor_.clock().Now();
  MessageHandler<v1::WatchMetadataResponse>* const handler = this;
  stream_ = std::make_unique<Stream>(transport_, endpoint_, controller_methods::kWatchMetadata,
                                     CallOptions{}, executor_, handler);
  v1::WatchMetadataRequest request;
  request.set_cluster_id(cluster_id_.ToBytes());
  request.set_broker_id(broker_id_.value());
  request.mutable_position()->set_index(image_.position().index.value());
  request.mutable_position()->set_term(image_.position().term.value());
  stream_->Send(request);
  stream_->HalfClose();
}

void MetadataFollower::OnMessage(v1::WatchMetadataResponse response) {
  last_heard_ = executor_.clock().Now();
  pause_ = kFirstPause;
  MetadataDelta delta;
  const LogIndex before = image_.position().index;
  if (absl::Status taken = ApplyUpdate(response, image_, delta); !taken.ok()) {
    if (IsRetriable(taken)) return Leave(taken);
    return events_.on_corrupt(taken);
  }
  ActiveCommitIndex(LogIndex());
  if (image_.position().index != before) events_.on_change(response);
}

void MetadataFollower::OnClosed(absl::Status status) { Leave(status); }

void MetadataFollower::Leave(const absl::Status& why) {
  VLOG(1) << "the metadata watch on " << endpoint_ << " ended: " << Describe(why);
  stream_.reset();
  behind_since_ = MonotonicTime::Never();
  controllers_.Failed(endpoint_, why);
  executor_.PostAfter(pause_, [this] { Open(); });
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void MetadataFollower::OnTimer() {
  const MonotonicTime now = executor_.clock().Now();
  if (stream_ != nullptr) {
    if (now - last_heard_ >= kSilence) {
      Leave(absl::DeadlineExceededError("silent for too long"));
    } else if (behind_since_ != MonotonicTime::Never() && now - behind_since_ >= kMayBeBehind) {
      Leave(absl::UnavailableError("behind the active controller"));
    }
  }
  executor_.PostAfter(kCheckInterval, [this] { OnTimer(); });
}

}  // namespace conclave::broker
