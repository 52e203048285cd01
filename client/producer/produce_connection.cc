#include "client/producer/produce_connection.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/rpc/failover_caller.h"

namespace conclave {
namespace {

// What may wait for the network; more only fills memory.
constexpr size_t kMaxPendingBytes = size_t{4} << 20;

// After the broker's own time is over.
constexpr Duration kAnswerGrace = Duration::Seconds(5);

}  // namespace

ProduceConnection::ProduceConnection(Options options, Transport& transport, Executor& executor,
                                     const Random& random, Owner& owner)
    : options_(std::move(options)),
      transport_(transport),
      executor_(executor),
      random_(random),
      owner_(owner),
      pause_(Duration::Milliseconds(20), Duration::Seconds(1)) {}

ProduceConnection::~ProduceConnection() {
  executor_.Cancel(timer_);
  executor_.Cancel(pause_timer_);
}

bool ProduceConnection::HasRoom() const {
  return !paused_ && !finished_ && requests_.size() < options_.max_in_flight &&
         (stream_ == nullptr || stream_->pending_bytes() < kMaxPendingBytes);
}

void ProduceConnection::Send(std::vector<Item> items) {
  CHECK(HasRoom() && !items.empty());
  if (stream_ == nullptr) {
    stream_ = std::make_unique<Stream>(
        transport_, options_.endpoint, produce_methods::kProduceStreamWithPayloads, CallOptions{},
        executor_, static_cast<MessageHandler<v1::ProduceResponse>*>(this));
  }
  produce_methods::ProduceRequest request;
  request.message.set_correlation_id(++last_id_);
  request.message.set_acks(options_.acks);
  request.message.set_timeout_ms(static_cast<int32_t>(options_.request_timeout.milliseconds()));
  size_t bytes = 0;
  for (const Item& item : items) {
    v1::ProducePartition* partition = request.message.add_partitions();
    partition->set_topic(item.partition.topic);
    if (!item.topic_id.IsNone()) partition->set_topic_id(item.topic_id.ToBytes());
    partition->set_partition(item.partition.partition.value());
    request.payloads.push_back(item.batch->encoded());
    bytes += item.batch->encoded().size();
  }
  const MonotonicTime overdue = executor_.clock().Now() + options_.request_timeout + kAnswerGrace;
  requests_[last_id_] = {std::move(items), bytes, overdue};
  bytes_in_flight_ += bytes;
  ArmTimer();
  stream_->Send(request);
  if (options_.acks == v1::ACKS_NONE && stream_->pending_bytes() == 0) {
    // It has gone already, and nothing might tell.
    executor_.Post(lifetime_.Guard([this] { OnDrained(); }));
  }
}

void ProduceConnection::OnMessage(v1::ProduceResponse response) {
  const auto found = requests_.find(response.correlation_id());
  if (found == requests_.end() || options_.acks == v1::ACKS_NONE) {
    return Break(
        MakeError(v1::INVALID_REQUEST,
                  absl::StrCat(options_.endpoint, " answered a request (",
                               response.correlation_id(), ") that nobody made on this stream")),
        true);
  }
  const std::vector<Item> items = std::move(found->second.items);
  bytes_in_flight_ -= found->second.bytes;
  requests_.erase(found);
  pause_.Reset();
  for (size_t i = 0; i < items.size(); ++i) {
    if (static_cast<int>(i) < response.partitions_size()) {
      owner_.OnAnswer(*this, items[i], response.partitions(static_cast<int>(i)));
    } else {
      owner_.OnLost(
          *this, items[i],
          MakeError(v1::NETWORK_EXCEPTION, absl::StrCat(options_.endpoint, " did not answer for ",
                                                        ToString(items[i].partition))),
          true);
    }
  }
  owner_.OnRoom();
}

void ProduceConnection::OnDrained() {
  if (options_.acks == v1::ACKS_NONE && stream_ != nullptr && stream_->pending_bytes() == 0) {
    const auto requests = TakeRequests();
    v1::ProducePartitionResult sent;
    sent.set_base_offset(-1);
    for (const auto& [id, request] : requests) {
      for (const Item& item : request.items) owner_.OnAnswer(*this, item, sent);
    }
    if (!requests.empty()) pause_.Reset();
  }
  owner_.OnRoom();
}

void ProduceConnection::OnClosed(absl::Status status) {
  const bool unknown = !NeverArrived(status);
  if (status.ok()) {
    status = MakeError(v1::NETWORK_EXCEPTION,
                       absl::StrCat(options_.endpoint, " ended the stream; it may be stopping"));
  }
  Break(status, unknown);
}

std::map<int64_t, ProduceConnection::Request> ProduceConnection::TakeRequests() {
  bytes_in_flight_ = 0;
  return std::exchange(requests_, {});
}

void ProduceConnection::Break(const absl::Status& status, bool unknown) {
  VLOG(1) << "produce stream to " << options_.endpoint << ": " << Describe(status);
  stream_.reset();
  if (finished_) {
    auto finished = std::move(finished_);
    finished_ = nullptr;
    return finished();
  }
  paused_ = true;
  pause_timer_ = executor_.PostAfter(pause_.Next(random_), lifetime_.Guard([this] {
    paused_ = false;
    owner_.OnRoom();
  }));
  const auto requests = TakeRequests();
  for (const auto& [id, request] : requests) {
    for (const Item& item : request.items) owner_.OnLost(*this, item, status, unknown);
  }
}

// One timer, set for the oldest request; those answered by then are passed over.
void ProduceConnection::ArmTimer() {
  if (timer_armed_ || requests_.empty()) return;
  timer_armed_ = true;
  timer_ = executor_.PostAt(requests_.begin()->second.overdue_at, lifetime_.Guard([this] {
    timer_armed_ = false;
    if (requests_.empty() || requests_.begin()->second.overdue_at > executor_.clock().Now()) {
      return ArmTimer();
    }
    Break(MakeError(v1::REQUEST_TIMED_OUT,
                    absl::StrCat(options_.endpoint, " did not answer within ",
                                 (options_.request_timeout + kAnswerGrace).milliseconds(), " ms")),
          true);
  }));
}

void ProduceConnection::Finish(absl::AnyInvocable<void()> done) {
  if (stream_ == nullptr) return done();
  finished_ = std::move(done);
  TakeRequests();
  stream_->HalfClose();
}

}  // namespace conclave
