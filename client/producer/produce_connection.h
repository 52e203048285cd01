#ifndef CONCLAVE_CLIENT_PRODUCER_PRODUCE_CONNECTION_H_
#define CONCLAVE_CLIENT_PRODUCER_PRODUCE_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "client/base/backoff.h"
#include "client/base/lifetime.h"
#include "client/base/topic_partition.h"
#include "client/producer/produce_batch.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/rpc/client.h"
#include "common/rpc/produce_methods.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/produce.pb.h"

namespace conclave {

// The ProduceStream to one broker. Opened when there is something to send; opened anew, after a
// pause, when it broke. Everything runs on the executor.
class ProduceConnection : private MessageHandler<v1::ProduceResponse> {
 public:
  struct Item {
    TopicPartition partition;
    TopicId topic_id;
    std::shared_ptr<ProduceBatch> batch;
  };

  struct Options {
    std::string endpoint;
    v1::Acks acks = v1::ACKS_ALL;
    // What brokers are given to wait for replicas; somewhat later the connection counts as broken.
    Duration request_timeout = Duration::Seconds(30);
    // Requests without an answer yet.
    size_t max_in_flight = 5;
  };

  // Told what came of each item, once. The calls may send again.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnAnswer(const ProduceConnection& from, const Item& item,
                          const v1::ProducePartitionResult& result) = 0;
    // No answer. `unknown`: the broker may have had the request.
    virtual void OnLost(const ProduceConnection& from, const Item& item, const absl::Status& status,
                        bool unknown) = 0;
    // HasRoom() is true again.
    virtual void OnRoom() = 0;
  };

  // All outlive it.
  ProduceConnection(Options options, Transport& transport, Executor& executor, const Random& random,
                    Owner& owner);
  ~ProduceConnection() override;

  const std::string& endpoint() const { return options_.endpoint; }
  bool HasRoom() const;
  // One request of them all; not empty, and HasRoom().
  void Send(std::vector<Item> items);
  bool idle() const { return requests_.empty(); }
  // Of the batches in requests without an answer.
  size_t bytes_in_flight() const { return bytes_in_flight_; }

  // Nothing is sent any more: `done` once the broker has taken in what was sent.
  void Finish(absl::AnyInvocable<void()> done);

 private:
  using Stream = TypedClientStream<produce_methods::ProduceRequest, v1::ProduceResponse>;

  struct Request {
    std::vector<Item> items;
    size_t bytes = 0;
    MonotonicTime overdue_at;
  };

  void OnMessage(v1::ProduceResponse response) override;
  void OnDrained() override;
  void OnClosed(absl::Status status) override;

  std::map<int64_t, Request> TakeRequests();
  void Break(const absl::Status& status, bool unknown);
  void ArmTimer();

  const Options options_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  Owner& owner_;
  std::unique_ptr<Stream> stream_;
  // By correlation id, which rises.
  std::map<int64_t, Request> requests_;
  size_t bytes_in_flight_ = 0;
  int64_t last_id_ = 0;
  TimerId timer_;
  bool timer_armed_ = false;
  bool paused_ = false;
  TimerId pause_timer_;
  Backoff pause_;
  absl::AnyInvocable<void()> finished_;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_PRODUCE_CONNECTION_H_
