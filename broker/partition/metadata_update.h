#ifndef CONCLAVE_BROKER_PARTITION_METADATA_UPDATE_H_
#define CONCLAVE_BROKER_PARTITION_METADATA_UPDATE_H_

#include "absl/status/status.h"
#include "common/metadata/delta.h"
#include "common/metadata/image.h"
#include "conclave/v1/controller.pb.h"

namespace conclave::broker {

// Takes what a watch of the metadata brought into `image`, and adds what changed to `delta`.
// METADATA_BEHIND for an image older than the one there is; CORRUPT_MESSAGE and the like for what
// contradicts it: then the image is not to be used any more.
absl::Status ApplyUpdate(const v1::WatchMetadataResponse& update, MetadataImage& image,
                         MetadataDelta& delta);

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_METADATA_UPDATE_H_
