#ifndef CONCLAVE_BROKER_SERVER_METADATA_FOLLOWER_H_
#define CONCLAVE_BROKER_SERVER_METADATA_FOLLOWER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/executor/executor.h"
#include "common/metadata/image.h"
#include "common/rpc/client.h"
#include "common/rpc/failover_caller.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "conclave/v1/controller.pb.h"

namespace conclave::broker {

// Follows the cluster's metadata: a watch on any controller gives the image, then each committed
// batch. The image never goes backwards: a new watch goes on where the last one ended, and a
// controller that is behind that refuses.
//
// Not thread-safe; on `executor`. What is passed by reference outlives it; destroyed after the
// executor has stopped.
class MetadataFollower : private MessageHandler<v1::WatchMetadataResponse> {
 public:
  struct Events {
    // The image has changed by this.
    std::function<void(const v1::WatchMetadataResponse&)> on_change;
    // What was received contradicts the image: the process is to end.
    std::function<void(const absl::Status&)> on_corrupt;
  };

  // Silence of a controller after which another one is watched. Signs of life come every 250 ms.
  static constexpr Duration kSilence = Duration::Seconds(2);
  // A controller this far behind the active one's commit index is left for another.
  static constexpr Duration kMayBeBehind = Duration::Seconds(1);

  MetadataFollower(ClusterId cluster_id, BrokerId broker_id, std::vector<std::string> controllers,
                   Events events, Transport& transport, Executor& executor);
  ~MetadataFollower() override;

  void Start();
  const MetadataImage& image() const { return image_; }
  // What the active controller says is committed, from heartbeats.
  void ActiveCommitIndex(LogIndex index);

 private:
  using Stream = TypedClientStream<v1::WatchMetadataRequest, v1::WatchMetadataResponse>;

  void Open();
  void OnMessage(v1::WatchMetadataResponse response) override;
  void OnClosed(absl::Status status) override;
  // Leaves this controller for the next.
  void Leave(const absl::Status& why);
  void OnTimer();

  const ClusterId cluster_id_;
  const BrokerId broker_id_;
  const Events events_;
  Transport& transport_;
  Executor& executor_;
  EndpointChooser controllers_;

  MetadataImage image_;
  std::string endpoint_;
  std::unique_ptr<Stream> stream_;
  MonotonicTime last_heard_;
  Duration pause_;
  LogIndex active_commit_index_;
  // Since when the image is behind that.
  MonotonicTime behind_since_ = MonotonicTime::Never();
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_METADATA_FOLLOWER_H_
