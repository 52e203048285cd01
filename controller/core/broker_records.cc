#include "controller/core/broker_records.h"

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::controller {

absl::StatusOr<const Broker*> FindIncarnation(const MetadataImage& image, BrokerId id,
                                              BrokerEpoch epoch) {
  const Broker* broker = image.FindBroker(id);
  if (broker == nullptr) {
    return MakeError(v1::BROKER_ID_NOT_REGISTERED,
                     absl::StrCat("broker ", id.value(), " is not registered; register first"));
  }
  if (broker->epoch != epoch) {
    return MakeError(v1::STALE_BROKER_EPOCH,
                     absl::StrCat("broker epoch ", epoch.value(), " of broker ", id.value(),
                                  " is not its newest, ", broker->epoch.value(),
                                  ": another process registered with this id, or the registration "
                                  "was never committed; register again"));
  }
  return broker;
}

absl::Status CheckClusterId(const MetadataImage& image, std::string_view bytes) {
  if (image.cluster_id().IsNone()) {
    return MakeError(v1::NOT_READY, "the cluster has no id yet; try again in a moment");
  }
  const auto id = ClusterId::FromBytes(bytes);
  if (id && *id == image.cluster_id()) return absl::OkStatus();
  return MakeError(
      v1::INCONSISTENT_CLUSTER_ID,
      absl::StrCat("the caller belongs to cluster ",
                   id ? id->ToString() : absl::StrCat("(", bytes.size(), " bytes, no id)"),
                   ", these controllers to cluster ", image.cluster_id().ToString(),
                   "; check the controllers' addresses, or the directory it was started on"));
}

v1::MetadataRecord FencedRecord(const Broker& broker, bool fenced) {
  v1::MetadataRecord record;
  v1::BrokerChangeRecord& change = *record.mutable_broker_change();
  change.set_broker_id(broker.id.value());
  change.set_broker_epoch(broker.epoch.value());
  change.set_fenced(fenced);
  return record;
}

v1::MetadataRecord StoppingRecord(const Broker& broker) {
  v1::MetadataRecord record;
  v1::BrokerChangeRecord& change = *record.mutable_broker_change();
  change.set_broker_id(broker.id.value());
  change.set_broker_epoch(broker.epoch.value());
  change.set_stopping(true);
  return record;
}

}  // namespace conclave::controller
