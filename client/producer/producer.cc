#include "client/producer/producer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/producer/producer_core.h"
#include "common/error/error.h"

namespace conclave {
namespace {

absl::Status Check(const ProducerRecord& record) {
  if (record.topic.empty()) return MakeError(v1::INVALID_TOPIC, "the record names no topic");
  if (record.partition && record.partition->value() < 0) {
    return MakeError(v1::INVALID_PARTITIONS,
                     absl::StrCat("partition ", record.partition->value(), " of ", record.topic,
                                  " cannot be; partitions count from 0"));
  }
  if (record.timestamp_ms && *record.timestamp_ms < 0) {
    return MakeError(v1::INVALID_TIMESTAMP,
                     absl::StrCat("the record's timestamp is ", *record.timestamp_ms,
                                  "; it counts milliseconds since 1970"));
  }
  return absl::OkStatus();
}

}  // namespace

Producer::Producer(ProducerOptions options, Transport& transport, Executor& executor,
                   const Random& random)
    : core_(std::make_shared<Core>(std::move(options), transport, executor, random)) {}

Producer::~Producer() = default;

absl::Status Producer::Send(const ProducerRecord& record, DeliveryDone done) {
  if (absl::Status status = Check(record); !status.ok()) return status;
  return core_->Send(record, std::move(done));
}

void Producer::WhenRoom(size_t bytes, absl::AnyInvocable<void()> room) {
  core_->accumulator().WhenRoom(bytes, std::move(room));
}

void Producer::Flush(absl::AnyInvocable<void()> done) { core_->Flush(std::move(done)); }

void Producer::Close(Duration timeout, absl::AnyInvocable<void()> done) {
  core_->Close(timeout, std::move(done));
}

size_t Producer::buffered_bytes() const { return core_->accumulator().used(); }

}  // namespace conclave
