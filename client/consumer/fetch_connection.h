#ifndef CONCLAVE_CLIENT_CONSUMER_FETCH_CONNECTION_H_
#define CONCLAVE_CLIENT_CONSUMER_FETCH_CONNECTION_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/base/backoff.h"
#include "client/base/lifetime.h"
#include "client/base/topic_partition.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/rpc/client.h"
#include "common/rpc/fetch_methods.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/fetch.pb.h"

namespace conclave {

// The FetchStream to one broker, for the partitions that it leads. Everything runs on the executor.
class FetchConnection : private MessageHandler<fetch_methods::FetchResponse> {
 public:
  // What a stream was opened for: it serves as long as this is what is wanted.
  struct Member {
    LeaderEpoch epoch;
    // Rises when the partition is to be fetched from elsewhere in its log.
    uint64_t generation = 0;

    friend bool operator==(const Member&, const Member&) = default;
  };
  using Members = std::map<TopicPartition, Member>;

  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnFetched(FetchConnection& from, fetch_methods::FetchResponse response) = 0;
    // The stream ended; may_open() is false for a while.
    virtual void OnEnded(FetchConnection& from, const absl::Status& status) = 0;
    // may_open() is true again.
    virtual void OnMayOpen() = 0;
  };

  // All outlive it.
  FetchConnection(std::string endpoint, Transport& transport, Executor& executor,
                  const Random& random, Owner& owner);
  ~FetchConnection() override;

  const std::string& endpoint() const { return endpoint_; }
  // Of the open stream; empty without one.
  const Members& members() const { return members_; }
  bool open() const { return stream_ != nullptr; }
  bool may_open() const { return !paused_; }

  // In place of the stream there is. `request` is of the members.
  void Open(const v1::FetchRequest& request, Members members);
  void Close();
  // Whether it reads on; true after Open.
  void SetReading(bool reading);

 private:
  using Stream = TypedClientStream<v1::FetchRequest, fetch_methods::FetchResponse>;

  void OnMessage(fetch_methods::FetchResponse response) override;
  void OnClosed(absl::Status status) override;

  const std::string endpoint_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  Owner& owner_;
  std::unique_ptr<Stream> stream_;
  Members members_;
  bool reading_ = true;
  bool paused_ = false;
  TimerId pause_timer_;
  Backoff pause_;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_CONSUMER_FETCH_CONNECTION_H_
