#ifndef CONCLAVE_CONTROLLER_CORE_BROKER_RECORDS_H_
#define CONCLAVE_CONTROLLER_CORE_BROKER_RECORDS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/metadata/image.h"
#include "common/types/ids.h"
#include "conclave/v1/metadata_records.pb.h"

namespace conclave::controller {

// The broker, if `epoch` is its newest incarnation's: else BROKER_ID_NOT_REGISTERED or
// STALE_BROKER_EPOCH. Valid until the image changes.
absl::StatusOr<const Broker*> FindIncarnation(const MetadataImage& image, BrokerId id,
                                              BrokerEpoch epoch);

// INCONSISTENT_CLUSTER_ID unless `bytes` is the image's cluster id; NOT_READY if it has none yet.
absl::Status CheckClusterId(const MetadataImage& image, std::string_view bytes);

v1::MetadataRecord FencedRecord(const Broker& broker, bool fenced);
v1::MetadataRecord StoppingRecord(const Broker& broker);

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_BROKER_RECORDS_H_
