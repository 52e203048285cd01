#include "tools/cli/data_session.h"

#include "common/random/entropy.h"

namespace conclave::tools {

DataSession::DataSession(std::vector<std::string> bootstrap, Duration timeout)
    : bootstrap_(std::move(bootstrap)),
      timeout_(timeout),
      executor_(clock_, {.name = "data", .takes_lent_threads = true}),
      transport_(std::make_unique<GrpcTransport>()) {}

DataSession::~DataSession() {
  Run([this] {
    producer_.reset();
    consumer_.reset();
    group_consumer_.reset();
  });
  // Executors outlive the transport, which waits for gRPC to let go.
  transport_.reset();
  executor_.Stop();
}

Producer& DataSession::MakeProducer(ProducerOptions options) {
  options.bootstrap = bootstrap_;
  producer_buffer_ = options.buffer_bytes;
  producer_ =
      std::make_unique<Producer>(std::move(options), *transport_, executor_, Random(EntropySeed()));
  return *producer_;
}

Consumer& DataSession::MakeConsumer(ResetPolicy reset) {
  ConsumerOptions options;
  options.reset = reset;
  // A topic that was made just now may not be known to every broker yet.
  options.unknown_topic_timeout = Duration::Seconds(2);
  options.bootstrap = bootstrap_;
  consumer_ =
      std::make_unique<Consumer>(std::move(options), *transport_, executor_, Random(EntropySeed()));
  return *consumer_;
}

GroupConsumer& DataSession::MakeGroupConsumer(GroupConsumerOptions options) {
  options.consumer.bootstrap = bootstrap_;
  options.consumer.unknown_topic_timeout = Duration::Seconds(2);
  Run([&] {
    group_consumer_ = std::make_unique<GroupConsumer>(std::move(options), *transport_, executor_,
                                                      Random(EntropySeed()));
  });
  return *group_consumer_;
}

absl::Status DataSession::Send(const ProducerRecord& record, DeliveryDone done) {
  // Nobody else sends, so what is free stays free.
  const size_t bytes = BufferBytes(record);
  if (producer_->buffered_bytes() + bytes > producer_buffer_) {
    std::promise<void> room;
    producer_->WhenRoom(bytes, [&room] { room.set_value(); });
    room.get_future().wait();
  }
  return producer_->Send(record, std::move(done));
}

void DataSession::FlushProducer() {
  std::promise<void> flushed;
  executor_.Post([&] { producer_->Flush([&flushed] { flushed.set_value(); }); });
  flushed.get_future().wait();
}

void DataSession::CloseProducer(Duration timeout) {
  std::promise<void> closed;
  executor_.Post([&] { producer_->Close(timeout, [&closed] { closed.set_value(); }); });
  closed.get_future().wait();
}

absl::StatusOr<std::vector<PartitionIndex>> DataSession::Partitions(const std::string& topic) {
  std::promise<absl::StatusOr<std::vector<PartitionIndex>>> answer;
  executor_.Post([&] {
    consumer_->Partitions(topic, clock_.Now() + timeout_,
                          [&answer](absl::StatusOr<std::vector<PartitionIndex>> partitions) {
                            answer.set_value(std::move(partitions));
                          });
  });
  return answer.get_future().get();
}

absl::StatusOr<std::vector<OffsetAnswer>> DataSession::ListOffsets(
    const std::string& topic, const std::vector<PartitionIndex>& of, v1::OffsetSpec spec) {
  std::vector<std::promise<absl::StatusOr<OffsetAnswer>>> answers(of.size());
  executor_.Post([&] {
    for (size_t i = 0; i < of.size(); ++i) {
      consumer_->ListOffsets({{topic, of[i]}, spec, 0}, clock_.Now() + timeout_,
                             [&answers, i](absl::StatusOr<OffsetAnswer> answer) {
                               answers[i].set_value(std::move(answer));
                             });
    }
  });
  std::vector<OffsetAnswer> all;
  absl::Status failed;
  for (auto& answer : answers) {
    auto one = answer.get_future().get();
    if (one.ok()) {
      all.push_back(*one);
    } else if (failed.ok()) {
      failed = one.status();
    }
  }
  if (!failed.ok()) return failed;
  return all;
}

Consumer::PollResult DataSession::Poll(size_t max_records, Duration wait) {
  std::promise<Consumer::PollResult> result;
  executor_.Post([&] {
    consumer_->Poll(max_records, clock_.Now() + wait, [&result](Consumer::PollResult records) {
      result.set_value(std::move(records));
    });
  });
  return result.get_future().get();
}

}  // namespace conclave::tools
