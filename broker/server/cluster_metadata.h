#ifndef CONCLAVE_BROKER_SERVER_CLUSTER_METADATA_H_
#define CONCLAVE_BROKER_SERVER_CLUSTER_METADATA_H_

#include "common/metadata/image.h"
#include "conclave/v1/metadata.pb.h"

namespace conclave::broker {

// What clients need to know of an image: unfenced brokers, and the partitions of the topics asked
// for, each topic that does not exist with an error of its own.
v1::GetMetadataResponse ClusterMetadata(const MetadataImage& image,
                                        const v1::GetMetadataRequest& request);

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_CLUSTER_METADATA_H_
