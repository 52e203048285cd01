#include "client/producer/producer.h"

#include <algorithm>
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

// --- Inbox

absl::Status Producer::Inbox::Put(Entry entry, bool& wake) {
  wake = false;
  std::lock_guard lock(mutex_);
  if (closed_) {
    return MakeError(v1::NOT_READY, "the producer is closed; make another to send more");
  }
  if (entry.bytes > capacity_) {
    return MakeError(v1::MESSAGE_TOO_LARGE, absl::StrCat("the record takes ", entry.bytes,
                                                         " bytes and the producer's "
                                                         "whole buffer has ",
                                                         capacity_));
  }
  if (used_ + entry.bytes > capacity_) {
    return MakeError(v1::OVERLOADED,
                     absl::StrCat("the producer's buffer is full (", used_, " of ", capacity_,
                                  " bytes); wait for room, and send the record again"));
  }
  used_ += entry.bytes;
  entries_.push_back(std::move(entry));
  wake = !std::exchange(told_, true);
  return absl::OkStatus();
}

std::vector<Producer::Inbox::Entry> Producer::Inbox::Take() {
  std::lock_guard lock(mutex_);
  told_ = false;
  return std::exchange(entries_, {});
}

void Producer::Inbox::Free(size_t bytes) {
  std::unique_lock lock(mutex_);
  used_ -= bytes;
  LetGo(lock);
}

void Producer::Inbox::WhenRoom(size_t bytes, absl::AnyInvocable<void()> room) {
  std::unique_lock lock(mutex_);
  waiters_.push_back({std::min(bytes, capacity_), std::move(room)});
  LetGo(lock);
}

void Producer::Inbox::LetGo(std::unique_lock<std::mutex>& lock) {
  std::vector<absl::AnyInvocable<void()>> free;
  while (!waiters_.empty() && (closed_ || used_ + waiters_.front().bytes <= capacity_)) {
    free.push_back(std::move(waiters_.front().room));
    waiters_.pop_front();
  }
  lock.unlock();
  for (auto& room : free) executor_.Post(std::move(room));
}

void Producer::Inbox::Close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  LetGo(lock);
}

size_t Producer::Inbox::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

// --- Producer

Producer::Producer(ProducerOptions options, Transport& transport, Executor& executor,
                   const Random& random)
    : inbox_(std::make_shared<Inbox>(options.buffer_bytes, executor)),
      core_(std::make_shared<Core>(std::move(options), transport, executor, random, inbox_)) {}

Producer::~Producer() = default;

absl::Status Producer::Send(ProducerRecord record, DeliveryDone done) {
  if (absl::Status status = Check(record); !status.ok()) return status;
  Inbox::Entry entry;
  entry.bytes = BufferBytes(record);
  entry.record = std::move(record);
  entry.done = std::move(done);
  return core_->Accept(std::move(entry));
}

void Producer::WhenRoom(size_t bytes, absl::AnyInvocable<void()> room) {
  inbox_->WhenRoom(bytes, std::move(room));
}

void Producer::Flush(absl::AnyInvocable<void()> done) { core_->Flush(std::move(done)); }

void Producer::Close(Duration timeout, absl::AnyInvocable<void()> done) {
  core_->Close(timeout, std::move(done));
}

size_t Producer::buffered_bytes() const { return inbox_->used(); }

}  // namespace conclave
