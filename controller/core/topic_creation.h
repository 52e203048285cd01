#ifndef CONCLAVE_CONTROLLER_CORE_TOPIC_CREATION_H_
#define CONCLAVE_CONTROLLER_CORE_TOPIC_CREATION_H_

#include <cstddef>
#include <cstdint>

#include "common/metadata/image.h"
#include "common/random/random.h"
#include "conclave/v1/admin.pb.h"
#include "controller/core/change.h"

namespace conclave::controller {

inline constexpr int32_t kMaxPartitionsPerRequest = 10'000;
inline constexpr size_t kMaxPartitionsPerCluster = 200'000;
// Of the records of one request: topics are created whole, so their batch cannot be split.
inline constexpr size_t kMaxCreationBytes = 2 * 1024 * 1024;

// Who asks. Names that start with "__" are the cluster's own: only brokers create and delete such.
enum class Requester { kUser, kCluster };

// Creates what can be created and answers each topic by itself, in the request's order. Everything
// is in one batch, so all topics without an error are there at once.
Change<v1::CreateTopicsResponse> CreateTopics(const MetadataImage& image,
                                              const v1::CreateTopicsRequest& request,
                                              Requester requester, Random& random, Now now);

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_TOPIC_CREATION_H_
