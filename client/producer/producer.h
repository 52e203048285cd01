#ifndef CONCLAVE_CLIENT_PRODUCER_PRODUCER_H_
#define CONCLAVE_CLIENT_PRODUCER_PRODUCER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "client/producer/producer_record.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/record/batch_header.h"
#include "common/transport/transport.h"
#include "common/types/time.h"
#include "conclave/v1/produce.pb.h"

namespace conclave {

// What a producer does; names in brackets are Kafka's.
struct ProducerOptions {
  // host:port of brokers; at least one. The others are learnt.
  std::vector<std::string> bootstrap;
  // When a record counts as stored (acks).
  v1::Acks acks = v1::ACKS_ALL;
  // Retries never store a record twice or out of order (enable.idempotence, KIP-98). Has no meaning
  // under acks none, where nothing uncertain is sent again. Without it one batch a partition is
  // under way at a time, which keeps the order, and a retry may store a record twice.
  bool idempotent = true;
  // none, lz4 or zstd (compression.type).
  Compression compression = Compression::kNone;
  // Bytes of a batch before compression (batch.size); a record that is larger has its own.
  size_t batch_bytes = size_t{512} << 10;
  // How long a batch waits for more records (linger.ms). 0: it goes as soon as a request may, and
  // records gather while requests are under way.
  Duration linger;
  // What becomes of a record is told within this time of Send, somewhat later at most
  // (delivery.timeout.ms, KIP-91).
  Duration delivery_timeout = Duration::Seconds(120);
  // What errors call the delivery timeout: the name under which the program's user sets it.
  std::string delivery_timeout_name = "delivery.timeout.ms";
  // What brokers are given to have a batch replicated (request.timeout.ms). Five seconds later a
  // connection without an answer is given up, so it should be well below the delivery timeout.
  Duration request_timeout = Duration::Seconds(30);
  // Of batches a partition, and of requests a broker (max.in.flight.requests.per.connection). 1 to
  // 5 with idempotence.
  size_t max_in_flight = 5;
  // Of records that were taken and are not done (buffer.memory).
  size_t buffer_bytes = size_t{32} << 20;
  // Batches gathered into one request: it is closed once it has this many bytes. While a broker has
  // twice as many to answer, only full batches follow, and the others gather on: so a buffer that
  // is spread over many partitions still makes batches worth sending.
  size_t request_bytes = size_t{1} << 20;
  // How long a topic may be unknown to the cluster before its records fail.
  Duration unknown_topic_timeout = Duration::Seconds(5);
  // Pauses between tries of a batch (retry.backoff.ms, retry.backoff.max.ms).
  Duration retry_pause = Duration::Milliseconds(50);
  Duration retry_pause_max = Duration::Seconds(1);
};

// Sends records to topics.
//
// Records of a partition are stored in the order of Send, whatever fails in between, and their
// callbacks come in that order. A record with a key goes to the partition that Kafka's Java client
// would choose; one without to a partition that changes after each batch's bytes (KIP-794).
//
// What cannot be sent is tried again, at the leader there is then, until the delivery timeout. The
// error that a record fails with tells whether it may be stored all the same; see Delivery.
//
// Send and WhenRoom may be called from any thread, also from callbacks. Everything else happens on
// the executor: callbacks come there, Flush and Close are called there, and there the producer is
// destroyed (or after the executor has stopped); callbacks still to come are then dropped.
// Transport and executor outlive it.
//
//   Producer producer(options, transport, executor, random);
//   ProducerRecord record;
//   record.topic = "t";
//   record.value = "v";
//   absl::Status taken = producer.Send(record, [](const Delivery& d) {
//     if (!d.status.ok()) LOG(ERROR) << Describe(d.status);
//   });
class Producer {
 public:
  Producer(ProducerOptions options, Transport& transport, Executor& executor, const Random& random);
  ~Producer();

  // OK: `done` will be told, once, what became of it. Otherwise the record was not taken:
  //   OVERLOADED         the buffer is full; see WhenRoom
  //   MESSAGE_TOO_LARGE  larger than the whole buffer
  //   NOT_READY          Close was called
  //   INVALID_TOPIC, INVALID_PARTITIONS, INVALID_TIMESTAMP  what the record says cannot be
  // The record is copied; it may be used for the next one.
  absl::Status Send(const ProducerRecord& record, DeliveryDone done);

  // Calls `room` on the executor once this many bytes of the buffer are free (BufferBytes tells
  // what a record takes; more than there are count as all of them). In the order of the calls;
  // nothing is reserved.
  void WhenRoom(size_t bytes, absl::AnyInvocable<void()> room);

  // What was taken before this call goes at once; `done` is called when all of it is done, well or
  // not.
  void Flush(absl::AnyInvocable<void()> done);

  // Takes no more, flushes, and closes the connections. What is not done after `timeout` is given
  // up. `done` is called once all is over.
  void Close(Duration timeout, absl::AnyInvocable<void()> done);

  // Bytes of the buffer in use.
  size_t buffered_bytes() const;

 private:
  class Core;

  const std::shared_ptr<Core> core_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_PRODUCER_H_
