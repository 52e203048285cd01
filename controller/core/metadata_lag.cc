#include "controller/core/metadata_lag.h"

namespace conclave::controller {

bool MetadataLag::Observe(BrokerId broker, LogIndex at, LogIndex committed, MonotonicTime now) {
  const auto found = marks_.find(broker);
  if (found != marks_.end() && at < found->second.index) {
    return now - found->second.since >= limit_;
  }
  if (found != marks_.end()) marks_.erase(found);
  if (at < committed) marks_.emplace(broker, Mark{committed, now});
  return false;
}

}  // namespace conclave::controller
