#include "broker/server/producer_ids.h"

#include <limits>
#include <utility>

#include "common/error/error.h"
#include "common/rpc/controller_methods.h"

namespace conclave::broker {
namespace {

constexpr Duration kTimeout = Duration::Seconds(10);
constexpr size_t kMaxWaiting = 10'000;

}  // namespace

ProducerIds::ProducerIds(BrokerId self, std::vector<std::string> controllers,
                         std::function<std::optional<BrokerEpoch>()> epoch, Transport& transport,
                         Executor& executor)
    : self_(self),
      epoch_(std::move(epoch)),
      executor_(executor),
      controllers_(transport, executor, std::move(controllers),
                   {.attempt_timeout = Duration::Seconds(2)}) {}

void ProducerIds::Init(const v1::InitProducerIdRequest& request,
                       Responder<v1::InitProducerIdResponse> respond) {
  if (!request.has_producer_id() && !request.has_producer_epoch()) {
    return GiveNew(std::move(respond));
  }
  constexpr int32_t kLastEpoch = std::numeric_limits<int16_t>::max();
  if (!request.has_producer_id() || !request.has_producer_epoch() || request.producer_id() < 0 ||
      request.producer_epoch() < 0 || request.producer_epoch() > kLastEpoch) {
    return respond(MakeError(v1::INVALID_REQUEST,
                             "a new epoch is asked for with both the producer's id and its epoch, "
                             "neither negative"));
  }
  // Epochs are used up: it goes on as another producer.
  if (request.producer_epoch() == kLastEpoch) return GiveNew(std::move(respond));
  v1::InitProducerIdResponse response;
  response.set_producer_id(request.producer_id());
  response.set_producer_epoch(request.producer_epoch() + 1);
  respond(std::move(response));
}

void ProducerIds::GiveNew(Responder<v1::InitProducerIdResponse> respond) {
  if (next_ < end_) {
    v1::InitProducerIdResponse response;
    response.set_producer_id(next_++);
    return respond(std::move(response));
  }
  if (waiting_.size() >= kMaxWaiting) {
    return respond(MakeError(v1::OVERLOADED, "too many producers wait for an id; try again"));
  }
  waiting_.push_back(std::move(respond));
  FetchBlock();
}

void ProducerIds::FetchBlock() {
  if (fetching_) return;
  const auto epoch = epoch_();
  if (!epoch) {
    for (auto& respond : std::exchange(waiting_, {})) {
      respond(MakeError(v1::NOT_READY, "this broker is not registered yet; try again"));
    }
    return;
  }
  fetching_ = true;
  v1::AllocateProducerIdsRequest request;
  request.set_broker_id(self_.value());
  request.set_broker_epoch(epoch->value());
  // A block that is lost with its answer costs nothing but numbers.
  controllers_.Call<v1::AllocateProducerIdsRequest, v1::AllocateProducerIdsResponse>(
      controller_methods::kAllocateProducerIds, request, Repeatable::kYes,
      executor_.clock().Now() + kTimeout,
      [this](absl::StatusOr<v1::AllocateProducerIdsResponse> block) { OnBlock(std::move(block)); });
}

void ProducerIds::OnBlock(absl::StatusOr<v1::AllocateProducerIdsResponse> block) {
  fetching_ = false;
  auto waiting = std::exchange(waiting_, {});
  if (!block.ok()) {
    // Whatever the controller made of it, asking for an id again is safe.
    const bool retriable = IsRetriable(block.status()) ||
                           ErrorCodeOf(block.status()) == v1::STALE_BROKER_EPOCH ||
                           ErrorCodeOf(block.status()) == v1::BROKER_ID_NOT_REGISTERED;
    for (auto& respond : waiting) {
      respond(retriable ? MakeError(v1::NOT_READY,
                                    "no producer ids could be had: " + Describe(block.status()))
                        : block.status());
    }
    return;
  }
  next_ = block->first_producer_id();
  end_ = next_ + block->count();
  for (auto& respond : waiting) GiveNew(std::move(respond));
}

}  // namespace conclave::broker
