#ifndef CONCLAVE_COMMON_METADATA_POSITION_H_
#define CONCLAVE_COMMON_METADATA_POSITION_H_

#include <compare>

#include "common/types/ids.h"

namespace conclave {

// Where an image or a batch stands in the metadata log. Both are needed: an index alone may name an
// entry that another leader replaced.
struct MetadataPosition {
  LogIndex index;
  Term term;

  friend constexpr auto operator<=>(const MetadataPosition& a, const MetadataPosition& b) = default;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_METADATA_POSITION_H_
