#ifndef CONCLAVE_TOOLS_CLI_DATA_SESSION_H_
#define CONCLAVE_TOOLS_CLI_DATA_SESSION_H_

#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/consumer/consumer.h"
#include "client/group/group_consumer.h"
#include "client/producer/producer.h"
#include "common/clock/system_clock.h"
#include "common/executor/thread_executor.h"
#include "common/transport/grpc_transport.h"
#include "tools/cli/admin_session.h"
#include "tools/cli/cli.h"

namespace conclave::tools {

// A producer or a consumer, or both, with all they need, for a command that waits for each step on
// its own thread. Used from one thread.
class DataSession {
 public:
  // `timeout`: of each request made here.
  DataSession(std::vector<std::string> bootstrap, Duration timeout);
  ~DataSession();

  const std::vector<std::string>& bootstrap() const { return bootstrap_; }
  const Clock& clock() const { return clock_; }
  Duration timeout() const { return timeout_; }
  // Where callbacks of producer and consumer come.
  Executor& executor() { return executor_; }

  // Each once; `options` without bootstrap.
  Producer& MakeProducer(ProducerOptions options);
  Consumer& MakeConsumer(ResetPolicy reset);
  GroupConsumer& MakeGroupConsumer(GroupConsumerOptions options);
  // Made before; used on the executor.
  Consumer& consumer() { return *consumer_; }

  // Runs `task` on the executor, where consumers live, and returns what it returns.
  template <class Task>
  auto Run(Task task) {
    using Result = decltype(task());
    std::promise<Result> result;
    executor_.Post([&] {
      if constexpr (std::is_void_v<Result>) {
        task();
        result.set_value();
      } else {
        result.set_value(task());
      }
    });
    return result.get_future().get();
  }

  // Runs `start` on the executor with a callback, and returns what that is called with. With a
  // Result that is a status for calls that have no other answer.
  template <class Result, class Start>
  Result Await(Start start) {
    std::promise<Result> result;
    executor_.Post([&] { start([&result](Result value) { result.set_value(std::move(value)); }); });
    return result.get_future().get();
  }

  // --- Of the producer

  // Made before.
  Producer& producer() { return *producer_; }
  // Sends; waits for room in its buffer where there is none.
  absl::Status Send(const ProducerRecord& record, DeliveryDone done);
  // Returns when everything sent is done.
  void FlushProducer();
  // The same, with the connections closed.
  void CloseProducer(Duration timeout);

  // --- Of the consumer

  absl::StatusOr<std::vector<PartitionIndex>> Partitions(const std::string& topic);
  // Of one topic's partitions, in their order.
  absl::StatusOr<std::vector<OffsetAnswer>> ListOffsets(const std::string& topic,
                                                        const std::vector<PartitionIndex>& of,
                                                        v1::OffsetSpec spec);
  Consumer::PollResult Poll(size_t max_records, Duration wait);

 private:
  const std::vector<std::string> bootstrap_;
  const Duration timeout_;
  SystemClock clock_;
  ThreadExecutor executor_;
  std::unique_ptr<GrpcTransport> transport_;
  size_t producer_buffer_ = 0;
  std::unique_ptr<Producer> producer_;
  std::unique_ptr<Consumer> consumer_;
  std::unique_ptr<GroupConsumer> group_consumer_;
};

// Runs `use` with a session, or reports that there is none.
template <class Use>
int WithDataSession(const Globals& globals, Use use) {
  auto bootstrap = FindBootstrap(globals);
  if (!bootstrap.ok()) return ReportNoBootstrap(bootstrap.status());
  DataSession session(*std::move(bootstrap), Duration::Seconds(globals.timeout_seconds));
  return use(session);
}

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_DATA_SESSION_H_
