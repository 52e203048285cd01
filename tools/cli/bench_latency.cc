#include "tools/cli/bench_latency.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/bench_arrivals.h"
#include "tools/cli/bench_run.h"
#include "tools/cli/data_options.h"
#include "tools/cli/data_session.h"
#include "tools/cli/option_checks.h"
#include "tools/measure/histogram.h"
#include "tools/measure/pacer.h"

namespace conclave::tools {
namespace {

struct LatencyArguments : BenchArguments {
  double rate = 0;
  uint64_t in_flight = 1;
  std::optional<uint64_t> warm_up;
  std::optional<int32_t> partition;
  bool end_to_end = false;

  uint64_t warm_up_count() const { return warm_up ? *warm_up : count() / 10; }
  uint64_t total() const { return count() + warm_up_count(); }
};

// Sends records one by one, in turn to the partitions, and times their acknowledgements.
class LatencyRun {
 public:
  LatencyRun(DataSession& session, const LatencyArguments& arguments, DueTimes& due,
             std::vector<PartitionIndex> partitions)
      : session_(session),
        arguments_(arguments),
        records_(arguments.seed, arguments.record_size),
        partitions_(std::move(partitions)),
        due_(due),
        places_(arguments.total()) {}

  // Latencies count from when a send was due. The first error ends it.
  absl::Status Run() {
    const MonotonicTime begun = session_.clock().Now();
    if (arguments_.rate > 0) {
      RunPaced(session_.clock(), SystemSleep(), Schedule(begun, arguments_.rate),
               arguments_.total(), [this](uint64_t number, MonotonicTime due) {
                 if (failed_ || failing_.load(std::memory_order_relaxed)) return false;
                 const Duration late = session_.clock().Now() - due;
                 if (number >= arguments_.warm_up_count()) {
                   late_.Add(static_cast<uint64_t>(late.nanoseconds()));
                 }
                 Send(number, due);
                 return true;
               });
    } else {
      // From within the acknowledgements, as an echo's next call is made from within its answer.
      session_.Run([this] {
        for (uint64_t i = 0; i < arguments_.in_flight; ++i) SendNext();
      });
      closed_.get_future().wait();
    }
    session_.FlushProducer();
    measured_.took = session_.clock().Now() - begun;
    session_.CloseProducer(Duration::Seconds(10));
    return error_;
  }

  // After Run.
  const Measured& measured() const { return measured_; }
  const std::vector<Place>& places() const { return places_; }
  // How late sends were made in an open loop, in nanoseconds: part of the latencies.
  const Histogram& late() const { return late_; }

 private:
  // On the executor.
  void SendNext() {
    if (next_ == arguments_.total() || failed_ || failing_) return;
    ++under_way_;
    Send(next_++, session_.clock().Now());
  }

  // From one thread: the pacer's, or the executor's in a closed loop.
  void Send(uint64_t number, MonotonicTime due) {
    due_.Set(number, due);
    ProducerRecord record;
    record.topic = arguments_.topic;
    record.partition = partitions_[number % partitions_.size()];
    record.value = records_.Make(number);
    DeliveryDone done = [this, number](const Delivery& delivery) { Delivered(number, delivery); };
    // Waiting for room is for the pacer alone: the executor, which makes room, must not wait for
    // it.
    const absl::Status taken = arguments_.rate > 0
                                   ? session_.Send(record, std::move(done))
                                   : session_.producer().Send(record, std::move(done));
    if (!taken.ok()) {
      // At once: no more are made that would be refused as well.
      failing_.store(true, std::memory_order_relaxed);
      Delivery refused;
      refused.status = taken;
      session_.executor().Post([this, number, refused] { Delivered(number, refused); });
    }
  }

  // On the executor.
  void Delivered(uint64_t number, const Delivery& delivery) {
    const MonotonicTime now = session_.clock().Now();
    if (delivery.status.ok()) {
      if (number >= arguments_.warm_up_count()) {
        measured_.latency.Add(static_cast<uint64_t>((now - due_.At(number)).nanoseconds()));
      }
      places_[number] = {delivery.partition.partition.value(), delivery.offset.value()};
      ++measured_.records;
      measured_.bytes += arguments_.record_size;
      measured_.hash.Add(records_.Make(number));
    } else if (!failed_.exchange(true)) {
      error_ = MakeError(ErrorCodeOf(delivery.status),
                         absl::StrCat("record ", number, " failed, and the measurement with it: ",
                                      std::string(delivery.status.message())));
    }
    if (arguments_.rate > 0) return;
    --under_way_;
    SendNext();
    if (under_way_ == 0) closed_.set_value();
  }

  DataSession& session_;
  const LatencyArguments& arguments_;
  const BenchRecords records_;
  const std::vector<PartitionIndex> partitions_;
  DueTimes& due_;
  std::vector<Place> places_;
  Histogram late_;
  // A send was refused; its delivery, which tells why, is to come.
  std::atomic<bool> failing_{false};
  std::atomic<bool> failed_{false};
  // On the executor.
  Measured measured_;
  absl::Status error_;
  // Of a closed loop.
  uint64_t next_ = 0;
  uint64_t under_way_ = 0;
  std::promise<void> closed_;
};

void Show(const Globals& globals, const LatencyArguments& arguments, const LatencyRun& run,
          const Histogram* end_to_end) {
  const Measured& measured = run.measured();
  const double per_second = static_cast<double>(measured.records) / measured.took.seconds();
  if (globals.json()) {
    Json json = {{"bench", "latency"},
                 {"acks", arguments.acks},
                 {"rate", arguments.rate > 0 ? Json(arguments.rate) : Json(nullptr)},
                 {"in_flight", arguments.rate > 0 ? Json(nullptr) : Json(arguments.in_flight)},
                 {"records", measured.records},
                 {"warm_up_records", arguments.warm_up_count()},
                 {"seconds", measured.took.seconds()},
                 {"records_per_second", per_second},
                 {"ack_us", LatencyJson(measured.latency)}};
    if (arguments.rate > 0) json["late_us"] = LatencyJson(run.late());
    if (end_to_end != nullptr) json["end_to_end_us"] = LatencyJson(*end_to_end);
    json["content_hash"] = measured.hash.text();
    json["verified"] = !arguments.no_verify;
    PrintJson(json);
    return;
  }
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* what, const Histogram& latency) {
    std::vector<std::string> row = {what, std::to_string(latency.count())};
    for (const double percent : {50.0, 90.0, 99.0, 99.9}) {
      row.push_back(MillisecondsText(latency.Percentile(percent)));
    }
    row.push_back(MillisecondsText(latency.max()));
    row.push_back(arguments.no_verify ? "no" : "yes");
    rows.push_back(std::move(row));
  };
  add("due to acknowledged", measured.latency);
  if (end_to_end != nullptr) add("due to consumed", *end_to_end);
  if (arguments.rate > 0) add("due to sent", run.late());
  PrintTable({"WHAT", "RECORDS", "P50 MS", "P90 MS", "P99 MS", "P99.9 MS", "MAX MS", "VERIFIED"},
             rows);
}

int BenchLatency(const Globals& globals, const LatencyArguments& given) {
  return WithDataSession(globals, [&](DataSession& session) -> int {
    if (const absl::Status few = CheckCount(given.total()); !few.ok()) return Report(few);
    session.MakeConsumer(ResetPolicy::kNone);
    const auto from = EndsOf(session, given.topic);
    if (!from.ok()) return Report(from.status());
    std::vector<PartitionIndex> partitions;
    for (const auto& [partition, end] : *from) {
      if (!given.partition || *given.partition == partition.value())
        partitions.push_back(partition);
    }
    if (partitions.empty()) {
      return Report(MakeError(v1::UNKNOWN_TOPIC_OR_PARTITION,
                              absl::StrCat("topic ", given.topic, " has no partition ",
                                           *given.partition, ", but 0 to ", from->size() - 1)));
    }
    ProducerOptions options;
    options.acks = *AcksFromText(given.acks);
    BoundDelivery(Duration::Seconds(globals.timeout_seconds), options);
    session.MakeProducer(std::move(options));

    DueTimes due(given.total());
    std::optional<Arrivals> arrivals;
    if (given.end_to_end) {
      arrivals.emplace(session, BenchRecords(given.seed, given.record_size), due,
                       given.warm_up_count());
      arrivals->Start(given.topic, *from);
    }
    LatencyRun run(session, given, due, partitions);
    const absl::Status sent = run.Run();
    if (!sent.ok()) return Report(sent);
    if (arrivals) {
      const absl::Status arrived = arrivals->WaitForAll();
      if (!arrived.ok()) return Report(arrived);
    }
    if (!given.no_verify) {
      BenchArguments all = given;
      all.records = given.total();
      const absl::Status right = Verify(session, all, *from, run.places(), run.measured());
      if (!right.ok()) return Report(right);
    }
    Show(globals, given, run, arrivals ? &arrivals->latency() : nullptr);
    return kDone;
  });
}

}  // namespace

void AddBenchLatencyCommand(CLI::App* bench, const Globals& globals, Run& run) {
  auto arguments = std::make_shared<LatencyArguments>();
  CLI::App* command = AddBenchVerb(
      bench, "latency",
      "How long a record takes to be acknowledged, and consumed, counted from the moment its send "
      "was due: whoever stalls is charged for all that had to wait. Reads all back, as 'produce' "
      "does",
      *arguments);
  AddAcksOption(command, *arguments);
  command->add_option("--records", arguments->records, "How many are measured (default 100000)")
      ->check(CLI::Range(uint64_t{1}, kBenchRecordsMost));
  CLI::Option* rate =
      command->add_option("--rate", arguments->rate, "An open loop: so many a second")
          ->check(Number(0.001, 10e6));
  command
      ->add_option("--in-flight", arguments->in_flight,
                   "Without --rate, a closed loop: so many under way at a time")
      ->check(CLI::Range(uint64_t{1}, uint64_t{10'000}))
      ->capture_default_str()
      ->excludes(rate);
  command
      ->add_option("--warm-up", arguments->warm_up,
                   "Records sent before, which do not count (default: a tenth of --records)")
      ->check(CLI::Range(uint64_t{0}, kBenchRecordsMost));
  AddPartitionOption(command, arguments->partition);
  command->add_flag("--end-to-end", arguments->end_to_end,
                    "Consume at the same time, and measure that as well");
  command->add_flag("--no-verify", arguments->no_verify, "Do not read back");
  command->callback([&globals, &run, arguments] {
    run = [&globals, arguments] { return BenchLatency(globals, *arguments); };
  });
}

}  // namespace conclave::tools
