#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/bench_failover.h"
#include "tools/cli/bench_groups.h"
#include "tools/cli/bench_latency.h"
#include "tools/cli/bench_run.h"
#include "tools/cli/cli.h"
#include "tools/cli/data_options.h"
#include "tools/cli/data_session.h"
#include "tools/cli/progress.h"

namespace conclave::tools {
namespace {

double PerSecond(double amount, Duration took) {
  return took.nanoseconds() > 0 ? amount / took.seconds() : 0;
}

// `hash`: of the content; empty where that was not looked at.
void Show(const Globals& globals, const char* what, const Measured& measured,
          const std::string& hash, bool verified) {
  const Histogram& latency = measured.latency;
  const double megabytes = PerSecond(static_cast<double>(measured.bytes) / 1e6, measured.took);
  const double records = PerSecond(static_cast<double>(measured.records), measured.took);
  if (globals.json()) {
    PrintJson({{"bench", what},
               {"records", measured.records},
               {"bytes", measured.bytes},
               {"seconds", measured.took.seconds()},
               {"mb_per_second", megabytes},
               {"records_per_second", records},
               {"latency_us", LatencyJson(latency)},
               {"content_hash", hash.empty() ? Json(nullptr) : Json(hash)},
               {"verified", verified}});
    return;
  }
  PrintTable(
      {"RECORDS", "SECONDS", "MB/S", "RECORDS/S", "P50 MS", "P99 MS", "P99.9 MS", "MAX MS",
       "CONTENT HASH", "VERIFIED"},
      {{std::to_string(measured.records), Decimals(measured.took.seconds(), 3),
        Decimals(megabytes, 1), Decimals(records, 0), MillisecondsText(latency.Percentile(50)),
        MillisecondsText(latency.Percentile(99)), MillisecondsText(latency.Percentile(99.9)),
        MillisecondsText(latency.max()), hash.empty() ? "-" : hash, verified ? "yes" : "no"}});
}

// Sends all records as fast as the producer takes them.
class Sending {
 public:
  Sending(DataSession& session, const BenchArguments& arguments)
      : session_(session),
        arguments_(arguments),
        count_(arguments.count()),
        places_(count_),
        sent_(count_ / kLatencyEvery + 1) {}

  absl::StatusOr<Measured> Run() {
    const BenchRecords records(arguments_.seed, arguments_.record_size);
    const Progress progress(
        -1, [&] { return absl::StrCat(done_.load(), " of ", count_, " acknowledged"); });
    const MonotonicTime begun = session_.clock().Now();
    ProducerRecord record;
    record.topic = arguments_.topic;
    record.value.emplace();
    uint64_t sent = 0;
    for (uint64_t i = 0; i < count_; ++i) {
      // The first that fails ends it: it was tried for as long as any is.
      if (failed_.load(std::memory_order_relaxed) > 0) break;
      if (arguments_.keys > 0) record.key = arguments_.KeyOf(i);
      records.MakeIn(*record.value, i);
      if (i % kLatencyEvery == 0) sent_[i / kLatencyEvery] = session_.clock().Now();
      // No more than two words, which are kept without an allocation.
      const absl::Status taken =
          session_.Send(record, [this, i](const Delivery& delivery) { Delivered(i, delivery); });
      if (!taken.ok()) return taken;
      ++sent;
    }
    session_.FlushProducer();
    measured_.took = session_.clock().Now() - begun;
    session_.CloseProducer(Duration::Seconds(10));
    if (failed_ > 0) {
      return MakeError(
          ErrorCodeOf(first_error_),
          absl::StrCat(failed_.load(), " of ", sent, " records failed, and the run of ", count_,
                       " with them; the first: ", std::string(first_error_.message())));
    }
    // Not within the time that is measured.
    for (uint64_t i = 0; i < count_; ++i) {
      records.MakeIn(*record.value, i);
      measured_.hash.Add(*record.value);
    }
    measured_.records = count_;
    measured_.bytes = count_ * arguments_.record_size;
    return std::move(measured_);
  }

  const std::vector<Place>& places() const { return places_; }

 private:
  // A clock read for each record would be a tenth of what a small one costs.
  static constexpr uint64_t kLatencyEvery = 16;

  // On the executor, as the rest of what this writes.
  void Delivered(uint64_t i, const Delivery& delivery) {
    if (!delivery.status.ok()) {
      if (failed_.load(std::memory_order_relaxed) == 0) first_error_ = delivery.status;
      failed_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    done_.store(done_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (i % kLatencyEvery == 0) {
      const Duration took = session_.clock().Now() - sent_[i / kLatencyEvery];
      measured_.latency.Add(static_cast<uint64_t>(took.nanoseconds()));
    }
    places_[i] = {delivery.partition.partition.value(), delivery.offset.value()};
  }

  DataSession& session_;
  const BenchArguments& arguments_;
  const uint64_t count_;
  std::vector<Place> places_;
  std::vector<MonotonicTime> sent_;
  Measured measured_;
  absl::Status first_error_;
  std::atomic<uint64_t> failed_{0};
  std::atomic<uint64_t> done_{0};
};

int BenchProduce(const Globals& globals, const BenchArguments& arguments) {
  return WithDataSession(globals, [&](DataSession& session) -> int {
    if (const absl::Status few = CheckCount(arguments.count()); !few.ok()) return Report(few);
    session.MakeConsumer(ResetPolicy::kNone);
    const auto from = EndsOf(session, arguments.topic);
    if (!from.ok()) return Report(from.status());
    ProducerOptions options;
    options.acks = *AcksFromText(arguments.acks);
    options.compression = *CompressionFromText(arguments.compression);
    options.batch_bytes = arguments.batch_bytes;
    options.request_bytes = arguments.request_bytes;
    BoundDelivery(Duration::Seconds(globals.timeout_seconds), options);
    session.MakeProducer(std::move(options));
    Sending sending(session, arguments);
    const auto measured = sending.Run();
    if (!measured.ok()) return Report(measured.status());
    if (!arguments.no_verify) {
      if (*AcksFromText(arguments.acks) == v1::ACKS_NONE) {
        const absl::Status awaited =
            AwaitStored(session, arguments.topic, *from, measured->records);
        if (!awaited.ok()) return Report(awaited);
      }
      const absl::Status right = Verify(session, arguments, *from, sending.places(), *measured);
      if (!right.ok()) return Report(right);
    }
    Show(globals, "produce", *measured, measured->hash.text(), !arguments.no_verify);
    return kDone;
  });
}

int BenchConsume(const Globals& globals, const BenchArguments& arguments) {
  return WithDataSession(globals, [&](DataSession& session) -> int {
    if (const absl::Status few = CheckCount(arguments.count()); !few.ok()) return Report(few);
    session.MakeConsumer(ResetPolicy::kEarliest);
    const auto measured = ReadAll(session, arguments);
    if (!measured.ok()) return Report(measured.status());
    if (measured->records != arguments.count()) {
      return Report(WrongData(absl::StrCat("the topic ends after ", measured->records, " of ",
                                           arguments.count(),
                                           " records; give the --records and --seed of the bench "
                                           "produce that wrote them")));
    }
    Show(globals, "consume", *measured, arguments.no_verify ? "" : measured->hash.text(),
         !arguments.no_verify);
    return kDone;
  });
}

void AddCountOptions(CLI::App* command, BenchArguments& arguments) {
  CLI::Option* records =
      command->add_option("--records", arguments.records, "How many (default 100000)")
          ->check(CLI::Range(uint64_t{1}, kBenchRecordsMost));
  command->add_option("--bytes", arguments.bytes, "Instead: so much of values")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 42))
      ->excludes(records);
}

}  // namespace

void AddBenchCommands(CLI::App& app, const Globals& globals, Run& run) {
  CLI::App* bench = app.add_subcommand("bench", "How fast, and whether everything arrives");
  bench->require_subcommand(1)->fallthrough();

  auto produced = std::make_shared<BenchArguments>();
  CLI::App* produce =
      AddBenchVerb(bench, "produce",
                   "Send records made from a seed, and read them back: count, offsets "
                   "and content must be right. Latency: of every 16th, from Send to "
                   "acknowledgement",
                   *produced);
  AddCountOptions(produce, *produced);
  produce->add_option("--acks", produced->acks, "all, 1 or 0")
      ->check(CLI::IsMember({"all", "1", "0"}))
      ->capture_default_str();
  produce->add_option("--compression", produced->compression, "none, lz4 or zstd")
      ->check(CLI::IsMember({"none", "lz4", "zstd"}))
      ->capture_default_str();
  produce->add_option("--batch-bytes", produced->batch_bytes, "Of a partition's batch")
      ->check(CLI::Range(size_t{1}, size_t{1} << 30))
      ->capture_default_str();
  produce->add_option("--request-bytes", produced->request_bytes, "Gathered into one request")
      ->check(CLI::Range(size_t{1}, size_t{1} << 30))
      ->capture_default_str();
  produce
      ->add_option("--keys", produced->keys,
                   "So many keys in turn, which spread the records over partitions (default: "
                   "none)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}));
  produce->add_flag("--no-verify", produced->no_verify, "Do not read back");
  produce->callback([&globals, &run, produced] {
    run = [&globals, produced] { return BenchProduce(globals, *produced); };
  });

  auto consumed = std::make_shared<BenchArguments>();
  CLI::App* consume =
      AddBenchVerb(bench, "consume",
                   "Read what one 'bench produce' with the same numbers and seed wrote "
                   "to a topic of its own, and check it. Latency: of each poll",
                   *consumed);
  AddCountOptions(consume, *consumed);
  consume->add_flag("--no-verify", consumed->no_verify,
                    "Check that each number comes once, and not the content");
  consume->callback([&globals, &run, consumed] {
    run = [&globals, consumed] { return BenchConsume(globals, *consumed); };
  });

  AddBenchLatencyCommand(bench, globals, run);
  AddBenchFailoverCommand(bench, globals, run);
  AddBenchGroupsCommand(bench, globals, run);
}

}  // namespace conclave::tools
