#ifndef CONCLAVE_CONTROLLER_SERVER_METADATA_WATCHES_H_
#define CONCLAVE_CONTROLLER_SERVER_METADATA_WATCHES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/metadata/image.h"
#include "common/metadata/position.h"
#include "common/rpc/server.h"
#include "common/types/time.h"
#include "conclave/v1/controller.pb.h"

namespace conclave::controller {

// The streams on which brokers follow committed metadata: the image first, or what is missing since
// the watcher's position, then each batch as it is committed. Not thread-safe; on the controller's
// executor.
class MetadataWatches {
 public:
  using Stream = TypedServerStream<v1::WatchMetadataRequest, v1::WatchMetadataResponse>;

  // How the watches see the controller's state.
  struct Source {
    std::function<const MetadataImage&()> image;
    // The committed batches after `position`, up to the image's own; nullopt where the log does not
    // hold that position, or too much has come since: the image is to be sent.
    std::function<std::optional<std::vector<v1::CommittedBatch>>(MetadataPosition)> since;
    std::function<LogIndex()> commit_index;
  };

  // A watcher that lets this much wait for it is closed, and comes back for the image.
  static constexpr size_t kMaxPendingBytes = 64 << 20;
  // Silence ends with a message that tells the commit index alone.
  static constexpr Duration kSignOfLife = Duration::Milliseconds(500);

  MetadataWatches(ClusterId cluster_id, Source source);
  ~MetadataWatches();

  void Accept(std::unique_ptr<Stream> stream);
  // The batches have just been applied to the image.
  void Committed(const std::vector<v1::CommittedBatch>& batches, MonotonicTime now);
  // To be called every kSignOfLife or so.
  void Tick(MonotonicTime now);
  // Ends all watches, for this controller cannot say what is current any more.
  void CloseAll(const absl::Status& why);

  size_t size() const { return watches_.size(); }

 private:
  class Watch;

  const ClusterId cluster_id_;
  const Source source_;
  // By number, in the order they came: what is sent to all is sent in an order that can be
  // repeated.
  std::map<uint64_t, std::unique_ptr<Watch>> watches_;
  uint64_t last_watch_ = 0;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_SERVER_METADATA_WATCHES_H_
