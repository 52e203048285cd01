#include "client/producer/identity_source.h"

#include <glog/logging.h>

#include <string>
#include <utility>

#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/produce_methods.h"

namespace conclave {
namespace {

constexpr Duration kAttemptTimeout = Duration::Seconds(10);

}  // namespace

IdentitySource::IdentitySource(MetadataCache& metadata, Transport& transport, Executor& executor,
                               const Random& random, std::function<void()> changed)
    : metadata_(metadata),
      transport_(transport),
      executor_(executor),
      random_(random.Fork("identity")),
      changed_(std::move(changed)),
      pause_(Duration::Milliseconds(50), Duration::Seconds(1)) {}

IdentitySource::~IdentitySource() { executor_.Cancel(timer_); }

void IdentitySource::Ensure() {
  if (!current_.valid() && !asking_) Ask();
}

void IdentitySource::Replace(const ProducerIdentity& failed) {
  if (failed == current_ && !asking_) Ask();
}

void IdentitySource::Ask() {
  asking_ = true;
  v1::InitProducerIdRequest request;
  if (current_.valid()) {
    request.set_producer_id(current_.id.value());
    request.set_producer_epoch(current_.epoch.value());
  }
  const std::string endpoint = metadata_.endpoint();
  CallMethod<v1::InitProducerIdRequest, v1::InitProducerIdResponse>(
      transport_, endpoint, produce_methods::kInitProducerId, request,
      {.deadline = executor_.clock().Now() + kAttemptTimeout}, executor_,
      lifetime_.Guard([this, endpoint](absl::StatusOr<v1::InitProducerIdResponse> response) {
        Answered(endpoint, std::move(response));
      }));
}

void IdentitySource::Answered(const std::string& endpoint,
                              absl::StatusOr<v1::InitProducerIdResponse> response) {
  last_failure_ = response.status();
  if (response.ok()) {
    asking_ = false;
    pause_.Reset();
    const ProducerIdentity before = current_;
    current_ = {ProducerId(response->producer_id()),
                ProducerEpoch(static_cast<int16_t>(response->producer_epoch()))};
    if (before.valid()) {
      LOG(INFO) << "producer " << before.id << " goes on as " << current_.id << ", epoch "
                << current_.epoch << ": numbers of its epoch " << before.epoch
                << " are missing from a partition";
    }
  } else {
    VLOG(1) << "producer id from " << endpoint << ": " << Describe(last_failure_);
    metadata_.Failed(endpoint);
    timer_ = executor_.PostAfter(pause_.Next(random_), lifetime_.Guard([this] { Ask(); }));
  }
  changed_();
}

}  // namespace conclave
