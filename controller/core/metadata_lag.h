#ifndef CONCLAVE_CONTROLLER_CORE_METADATA_LAG_H_
#define CONCLAVE_CONTROLLER_CORE_METADATA_LAG_H_

#include <map>

#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave::controller {

// Which brokers' images are a session behind: they live, and act on what is no longer so.
//
// A broker is set the commit index of one heartbeat as a mark and has `limit` to pass it; then the
// next mark is set.
class MetadataLag {
 public:
  explicit MetadataLag(Duration limit) : limit_(limit) {}

  // A heartbeat said `at`. Returns whether the broker is `limit` or more behind.
  bool Observe(BrokerId broker, LogIndex at, LogIndex committed, MonotonicTime now);
  void Forget(BrokerId broker) { marks_.erase(broker); }
  void Clear() { marks_.clear(); }

 private:
  struct Mark {
    LogIndex index;
    MonotonicTime since;
  };

  const Duration limit_;
  // Of brokers that are behind, by however little.
  std::map<BrokerId, Mark> marks_;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_METADATA_LAG_H_
