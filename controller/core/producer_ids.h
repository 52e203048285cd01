#ifndef CONCLAVE_CONTROLLER_CORE_PRODUCER_IDS_H_
#define CONCLAVE_CONTROLLER_CORE_PRODUCER_IDS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/metadata/image.h"
#include "conclave/v1/controller.pb.h"
#include "controller/core/change.h"

namespace conclave::controller {

inline constexpr int32_t kProducerIdBlock = 1000;

// A block of ids for a broker to hand out. No id is ever handed out twice; unused ones are lost.
absl::StatusOr<Change<v1::AllocateProducerIdsResponse>> AllocateProducerIds(
    const MetadataImage& image, const v1::AllocateProducerIdsRequest& request, Now now);

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_PRODUCER_IDS_H_
