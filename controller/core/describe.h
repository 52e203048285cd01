#ifndef CONCLAVE_CONTROLLER_CORE_DESCRIBE_H_
#define CONCLAVE_CONTROLLER_CORE_DESCRIBE_H_

#include "common/metadata/image.h"
#include "conclave/v1/admin.pb.h"

namespace conclave::controller {

// What an image says, for people and tools: topics by name, as asked or all in order. Offsets are
// absent: leaders alone know them.
v1::DescribeTopicsResponse DescribeTopics(const MetadataImage& image,
                                          const v1::DescribeTopicsRequest& request);
v1::DescribeClusterResponse DescribeCluster(const MetadataImage& image);

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_DESCRIBE_H_
