#include "tools/cli/bench_arrivals.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::tools {
namespace {

// How often an end without records is looked for.
constexpr Duration kPollWait = Duration::Milliseconds(200);

}  // namespace

Arrivals::Arrivals(const DataSession& beside, BenchRecords records, const DueTimes& due,
                   uint64_t warm_up)
    : records_(std::move(records)),
      due_(due),
      warm_up_(warm_up),
      seen_(due.count()),
      session_(beside.bootstrap(), beside.timeout()) {
  session_.MakeConsumer(ResetPolicy::kNone);
}

void Arrivals::Start(const std::string& topic, const PartitionOffsets& from) {
  std::vector<Consumer::Assignment> assignment;
  for (const auto& [partition, offset] : from) {
    assignment.push_back({{topic, partition}, StartAt::At(offset)});
  }
  session_.Run([&] {
    session_.consumer().Assign(assignment);
    Poll();
  });
}

absl::Status Arrivals::WaitForAll() {
  session_.Run([this] {
    all_sent_ = true;
    progressed_ = session_.clock().Now();
    if (arrived_ == seen_.size()) End(absl::OkStatus());
  });
  return end_.get_future().get();
}

void Arrivals::Poll() {
  session_.consumer().Poll(kBenchPollRecords, session_.clock().Now() + kPollWait,
                           [this](Consumer::PollResult result) { Take(std::move(result)); });
}

void Arrivals::Take(Consumer::PollResult result) {
  if (ended_) return;
  if (!result.ok()) {
    End(result.status());
    return;
  }
  const MonotonicTime now = session_.clock().Now();
  for (const PartitionRecords& part : *result) {
    for (const RecordView& record : part.records) {
      const auto number = records_.Check(record.value.value_or(std::string_view()));
      // Others' records between them.
      if (!number || *number >= seen_.size()) continue;
      if (seen_[*number]) {
        End(WrongData(absl::StrCat("record ", *number, " came twice; again in ",
                                   ToString(part.partition), " at offset ",
                                   record.offset.value())));
        return;
      }
      seen_[*number] = true;
      ++arrived_;
      progressed_ = now;
      if (*number >= warm_up_) {
        latency_.Add(static_cast<uint64_t>((now - due_.At(*number)).nanoseconds()));
      }
    }
  }
  if (arrived_ == seen_.size()) {
    End(absl::OkStatus());
  } else if (all_sent_ && now - progressed_ > session_.timeout()) {
    End(MakeError(
        v1::REQUEST_TIMED_OUT,
        absl::StrCat("nothing was consumed for ", session_.timeout().seconds(), " s, and ",
                     arrived_, " of ", seen_.size(), " acknowledged records before")));
  } else {
    Poll();
  }
}

void Arrivals::End(absl::Status status) {
  if (ended_) return;
  ended_ = true;
  end_.set_value(std::move(status));
}

}  // namespace conclave::tools
