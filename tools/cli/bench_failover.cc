#include "tools/cli/bench_failover.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/bench_run.h"
#include "tools/cli/data_options.h"
#include "tools/cli/data_session.h"
#include "tools/cli/option_checks.h"
#include "tools/measure/ack_gaps.h"
#include "tools/measure/pacer.h"

namespace conclave::tools {
namespace {

struct FailoverArguments : BenchArguments {
  double rate = 1000;
  int seconds = 60;
  int threshold_ms = 50;
  std::optional<int32_t> partition;
  bool announce = false;
};

// Set by SIGINT and SIGTERM: the measurement ends early, and is reported.
std::atomic<bool> asked_to_end{false};

void AskToEnd(int) { asked_to_end.store(true, std::memory_order_relaxed); }

// Keeps a steady stream of records going, whatever becomes of them.
class FailoverRun {
 public:
  FailoverRun(DataSession& session, const FailoverArguments& arguments,
              std::vector<PartitionIndex> partitions)
      : session_(session),
        arguments_(arguments),
        records_(arguments.seed, arguments.record_size),
        partitions_(std::move(partitions)),
        gaps_(Duration::Milliseconds(arguments.threshold_ms)),
        places_(static_cast<size_t>(arguments.rate * arguments.seconds) + 1) {}

  absl::Status Run() {
    const MonotonicTime begun = session_.clock().Now();
    session_.Run([&] {
      for (const PartitionIndex partition : partitions_) {
        gaps_.Begin(partition.value(), begun, session_.clock().WallNow());
      }
    });
    const MonotonicTime until = begun + Duration::Seconds(arguments_.seconds);
    absl::Status refused;
    sent_ = RunPaced(session_.clock(), SystemSleep(), Schedule(begun, arguments_.rate),
                     places_.size(), [&](uint64_t number, MonotonicTime) {
                       refused = Send(number);
                       // Whoever had to wait for room does not make up for it after the end.
                       return refused.ok() && session_.clock().Now() < until &&
                              !hopeless_.load(std::memory_order_relaxed) &&
                              !asked_to_end.load(std::memory_order_relaxed);
                     });
    session_.FlushProducer();
    const MonotonicTime ended = session_.clock().Now();
    session_.Run([&] { gaps_.End(ended); });
    measured_.took = ended - begun;
    session_.CloseProducer(Duration::Seconds(10));
    places_.resize(sent_);
    return refused;
  }

  // After Run.
  const AckGaps& gaps() const { return gaps_; }
  const Measured& measured() const { return measured_; }
  const std::vector<Place>& places() const { return places_; }
  uint64_t sent() const { return sent_; }
  // Why a record was given up, the first of them.
  const absl::Status& first_error() const { return first_error_; }

 private:
  absl::Status Send(uint64_t number) {
    ProducerRecord record;
    record.topic = arguments_.topic;
    record.partition = partitions_[number % partitions_.size()];
    record.value = records_.Make(number);
    return session_.Send(record,
                         [this, number](const Delivery& delivery) { Delivered(number, delivery); });
  }

  // On the executor.
  void Delivered(uint64_t number, const Delivery& delivery) {
    if (!delivery.status.ok()) {
      if (first_error_.ok()) first_error_ = delivery.status;
      if (measured_.records == 0) hopeless_.store(true, std::memory_order_relaxed);
      return;
    }
    // For who kills: from here on it is measured.
    if (arguments_.announce && measured_.records == 0) {
      std::cerr << "conclave: records are acknowledged" << std::endl;
    }
    const int32_t partition = delivery.partition.partition.value();
    gaps_.Acknowledged(partition, session_.clock().Now(), session_.clock().WallNow());
    places_[number] = {partition, delivery.offset.value()};
    ++measured_.records;
    measured_.bytes += arguments_.record_size;
    measured_.hash.Add(records_.Make(number));
  }

  DataSession& session_;
  const FailoverArguments& arguments_;
  const BenchRecords records_;
  const std::vector<PartitionIndex> partitions_;
  uint64_t sent_ = 0;
  // The first record was given up: there is nothing to measure.
  std::atomic<bool> hopeless_{false};
  // On the executor.
  AckGaps gaps_;
  std::vector<Place> places_;
  Measured measured_;
  absl::Status first_error_;
};

Json GapJson(const AckGaps::Gap& gap) {
  return {{"partition", gap.partition},
          {"begin_unix_ms", gap.begin.unix_millis()},
          {"ms", static_cast<double>(gap.length.microseconds()) / 1e3}};
}

// `unacknowledged`: but stored; nullopt if it could not be read back.
void Show(const Globals& globals, const FailoverRun& run, std::optional<uint64_t> unacknowledged) {
  const Measured& measured = run.measured();
  if (globals.json()) {
    Json gaps = Json::array();
    for (const AckGaps::Gap& gap : run.gaps().gaps()) gaps.push_back(GapJson(gap));
    PrintJson(
        {{"bench", "failover"},
         {"sent", run.sent()},
         {"acknowledged", measured.records},
         {"unacknowledged_and_stored", unacknowledged ? Json(*unacknowledged) : Json(nullptr)},
         {"first_error",
          run.first_error().ok() ? Json(nullptr) : Json(Describe(run.first_error()))},
         {"seconds", measured.took.seconds()},
         {"longest_gap", GapJson(run.gaps().longest())},
         {"gaps", gaps},
         {"content_hash", measured.hash.text()},
         {"verified", unacknowledged.has_value()}});
    return;
  }
  PrintTable(
      {"SENT", "ACKNOWLEDGED", "FAILED", "SECONDS", "LONGEST GAP MS", "CONTENT HASH", "VERIFIED"},
      {{std::to_string(run.sent()), std::to_string(measured.records),
        std::to_string(run.sent() - measured.records), Decimals(measured.took.seconds(), 1),
        MillisecondsText(static_cast<uint64_t>(run.gaps().longest().length.nanoseconds())),
        measured.hash.text(), unacknowledged ? "yes" : "no"}});
  if (!run.first_error().ok()) {
    std::cerr << "conclave: the first that failed: " << Describe(run.first_error()) << "\n";
  }
  if (run.gaps().gaps().empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const AckGaps::Gap& gap : run.gaps().gaps()) {
    rows.push_back({std::to_string(gap.begin.unix_millis()), std::to_string(gap.partition),
                    MillisecondsText(static_cast<uint64_t>(gap.length.nanoseconds()))});
  }
  std::cout << "\n";
  PrintTable({"GAP FROM (UNIX MS)", "PARTITION", "MS"}, rows);
}

int BenchFailover(const Globals& globals, const FailoverArguments& given) {
  return WithDataSession(globals, [&](DataSession& session) -> int {
    const auto count = static_cast<uint64_t>(given.rate * given.seconds);
    if (const absl::Status few = CheckCount(count); !few.ok()) return Report(few);
    session.MakeConsumer(ResetPolicy::kNone);
    const auto from = EndsOf(session, given.topic);
    if (!from.ok()) return Report(from.status());
    std::vector<PartitionIndex> partitions;
    for (const auto& [partition, end] : *from) {
      if (!given.partition || *given.partition == partition.value()) {
        partitions.push_back(partition);
      }
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
    signal(SIGINT, AskToEnd);
    signal(SIGTERM, AskToEnd);
    FailoverRun run(session, given, partitions);
    const absl::Status taken = run.Run();
    if (!taken.ok()) return Report(taken);
    if (run.measured().records == 0 && !run.first_error().ok()) {
      return Report(
          MakeError(ErrorCodeOf(run.first_error()),
                    absl::StrCat("none of ", run.sent(), " records was acknowledged; the first: ",
                                 std::string(run.first_error().message()))));
    }
    BenchArguments sent = given;
    sent.records = run.sent();
    const auto read = ReadBack(session, sent, *from, run.places());
    if (!read.ok()) {
      // Wrong data speaks for itself; what was measured is not lost for who cannot be reached.
      if (ErrorCodeOf(read.status()) != v1::CORRUPT_MESSAGE) Show(globals, run, std::nullopt);
      return Report(read.status());
    }
    if (read->records != run.measured().records || read->hash != run.measured().hash) {
      return Report(WrongData(
          absl::StrCat(run.measured().records, " records were acknowledged (content hash ",
                       run.measured().hash.text(), ") and ", read->records, " of them are there (",
                       read->hash.text(), "): what was acknowledged is lost")));
    }
    Show(globals, run, read->unacknowledged);
    return kDone;
  });
}

}  // namespace

void AddBenchFailoverCommand(CLI::App* bench, const Globals& globals, Run& run) {
  auto arguments = std::make_shared<FailoverArguments>();
  CLI::App* command = AddBenchVerb(
      bench, "failover",
      "Keep an idempotent producer going at a steady rate while something else kills nodes, and "
      "tell for how long nothing was acknowledged in a partition; what was acknowledged must be "
      "there once. SIGINT or SIGTERM ends it early",
      *arguments);
  AddAcksOption(command, *arguments);
  command->add_option("--rate", arguments->rate, "Records a second")
      ->check(Number(1, 1e6))
      ->capture_default_str();
  command->add_option("--seconds", arguments->seconds, "For how long")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  command
      ->add_option("--threshold-ms", arguments->threshold_ms, "Gaps from this length on are listed")
      ->check(CLI::Range(1, 3'600'000))
      ->capture_default_str();
  AddPartitionOption(command, arguments->partition);
  command->add_flag("--announce", arguments->announce,
                    "Say on stderr when the first record is acknowledged: for who kills nodes");
  command->callback([&globals, &run, arguments] {
    run = [&globals, arguments] { return BenchFailover(globals, *arguments); };
  });
}

}  // namespace conclave::tools
