#include "controller/core/producer_ids.h"

#include <cstdint>
#include <utility>

#include "common/error/error.h"
#include "controller/core/batch_builder.h"
#include "controller/core/broker_records.h"

namespace conclave::controller {

absl::StatusOr<Change<v1::AllocateProducerIdsResponse>> AllocateProducerIds(
    const MetadataImage& image, const v1::AllocateProducerIdsRequest& request, Now now) {
  const auto broker =
      FindIncarnation(image, BrokerId(request.broker_id()), BrokerEpoch(request.broker_epoch()));
  if (!broker.ok()) return broker.status();
  const int64_t first = image.next_producer_id().value();
  if (first > INT64_MAX - kProducerIdBlock) {
    return MakeError(v1::UNKNOWN_SERVER_ERROR,
                     "all producer ids have been handed out; nothing short of a new cluster helps");
  }
  Change<v1::AllocateProducerIdsResponse> change;
  change.response.set_first_producer_id(first);
  change.response.set_count(kProducerIdBlock);
  v1::MetadataRecord record;
  record.mutable_producer_ids()->set_broker_id(request.broker_id());
  record.mutable_producer_ids()->set_broker_epoch(request.broker_epoch());
  record.mutable_producer_ids()->set_next_producer_id(first + kProducerIdBlock);
  BatchBuilder builder(now.wall);
  builder.Add(std::move(record));
  change.batches = builder.Take();
  return change;
}

}  // namespace conclave::controller
