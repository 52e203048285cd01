#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/bench_records.h"
#include "tools/cli/cli.h"
#include "tools/cli/data_options.h"
#include "tools/cli/data_session.h"
#include "tools/cli/option_checks.h"
#include "tools/cli/progress.h"

namespace conclave::tools {
namespace {

constexpr size_t kPollRecords = 5000;

struct BenchArguments {
  std::string topic;
  uint64_t records = 0;
  uint64_t bytes = 0;
  size_t record_size = 1024;
  std::string acks = "all";
  std::string compression = "none";
  uint64_t seed = 1;
  bool no_verify = false;
  // Of reading alone: from each partition's first record, or from these offsets (verification).
  std::map<PartitionIndex, Offset> from;

  uint64_t count() const {
    if (records > 0) return records;
    return bytes > 0 ? (bytes + record_size - 1) / record_size : 100'000;
  }
};

// What one run measured.
struct Measured {
  uint64_t records = 0;
  uint64_t bytes = 0;
  Duration took;
  // Microseconds.
  std::vector<uint64_t> latencies;
  ContentHash hash;
};

double PerSecond(double amount, Duration took) {
  return took.nanoseconds() > 0 ? amount / took.seconds() : 0;
}

void Show(const Globals& globals, const char* what, Measured& measured, bool verified) {
  const Percentiles latency(measured.latencies);
  const double megabytes = PerSecond(static_cast<double>(measured.bytes) / 1e6, measured.took);
  const double records = PerSecond(static_cast<double>(measured.records), measured.took);
  if (globals.json()) {
    PrintJson({{"bench", what},
               {"records", measured.records},
               {"bytes", measured.bytes},
               {"seconds", measured.took.seconds()},
               {"mb_per_second", megabytes},
               {"records_per_second", records},
               {"latency_us",
                {{"p50", latency.p50},
                 {"p99", latency.p99},
                 {"p99.9", latency.p999},
                 {"max", latency.max}}},
               {"content_hash", measured.hash.text()},
               {"verified", verified}});
    return;
  }
  const auto ms = [](uint64_t us) { return Decimals(static_cast<double>(us) / 1000, 2); };
  PrintTable({"RECORDS", "SECONDS", "MB/S", "RECORDS/S", "P50 MS", "P99 MS", "P99.9 MS", "MAX MS",
              "CONTENT HASH", "VERIFIED"},
             {{std::to_string(measured.records), Decimals(measured.took.seconds(), 3),
               Decimals(megabytes, 1), Decimals(records, 0), ms(latency.p50), ms(latency.p99),
               ms(latency.p999), ms(latency.max), measured.hash.text(), verified ? "yes" : "no"}});
}

absl::Status Wrong(const std::string& what) { return MakeError(v1::CORRUPT_MESSAGE, what); }

// Where each record was stored, as its acknowledgement said.
struct Place {
  int32_t partition = -1;
  int64_t offset = -1;
};

// Reads `expected` records of the benchmark, and checks each one's content, and that no number
// comes twice. With `places` also that it stands where it was acknowledged; records of others
// between them are passed over.
absl::StatusOr<Measured> ReadBack(DataSession& session, const BenchArguments& arguments,
                                  const std::vector<Place>* places) {
  const uint64_t expected = arguments.count();
  const auto partitions = session.Partitions(arguments.topic);
  if (!partitions.ok()) return partitions.status();
  const auto ends = session.ListOffsets(arguments.topic, *partitions, v1::OFFSET_SPEC_LATEST);
  if (!ends.ok()) return ends.status();
  Consumer& consumer = session.consumer();
  std::vector<Consumer::Assignment> assignment;
  std::map<PartitionIndex, Offset> end_of;
  for (size_t i = 0; i < partitions->size(); ++i) {
    const PartitionIndex partition = (*partitions)[i];
    const auto from = arguments.from.find(partition);
    assignment.push_back(
        {{arguments.topic, partition},
         from == arguments.from.end() ? StartAt::Earliest() : StartAt::At(from->second)});
    end_of[partition] = (*ends)[i].high_watermark;
  }
  const BenchRecords records(arguments.seed, arguments.record_size);
  std::vector<bool> seen(expected);
  Measured measured;
  measured.latencies.reserve(expected / 100 + 1000);
  std::atomic<uint64_t> read{0};
  const Progress progress(-1, [&] { return absl::StrCat(read.load(), " of ", expected, " read"); });
  const MonotonicTime begun = session.clock().Now();
  session.Run([&] { consumer.Assign(assignment); });
  while (measured.records < expected) {
    const bool at_end = session.Run([&] {
      for (const auto& [partition, end] : end_of) {
        const auto position = consumer.Position({arguments.topic, partition});
        if (!position || *position < end) return false;
      }
      return true;
    });
    if (at_end) break;
    const MonotonicTime asked = session.clock().Now();
    const auto polled = session.Poll(kPollRecords, Duration::Milliseconds(200));
    if (!polled.ok()) return polled.status();
    if (!polled->empty()) {
      measured.latencies.push_back(
          static_cast<uint64_t>((session.clock().Now() - asked).microseconds()));
    }
    for (const PartitionRecords& part : *polled) {
      for (const RecordView& record : part.records) {
        const std::string where =
            absl::StrCat(ToString(part.partition), " at offset ", record.offset.value());
        const auto number = records.Check(record.value.value_or(std::string_view()));
        if (places == nullptr && !number) {
          return Wrong(absl::StrCat("the record in ", where,
                                    " is none of this benchmark's seed and record size, or was "
                                    "damaged"));
        }
        if (!number || *number >= expected) continue;
        if (places != nullptr) {
          const Place& place = (*places)[*number];
          const bool here = place.partition == part.partition.partition.value() &&
                            (place.offset < 0 || place.offset == record.offset.value());
          if (!here) {
            return Wrong(absl::StrCat("record ", *number, " stands in ", where,
                                      " and was acknowledged in partition ", place.partition,
                                      " at offset ", place.offset));
          }
        }
        if (seen[*number]) {
          return Wrong(absl::StrCat("record ", *number, " is stored twice; again in ", where));
        }
        seen[*number] = true;
        read = ++measured.records;
        measured.bytes += record.value->size();
        measured.hash.Add(*record.value);
      }
    }
  }
  measured.took = session.clock().Now() - begun;
  return measured;
}

// Sends them all; `places` says where they went.
absl::StatusOr<Measured> SendAll(DataSession& session, const BenchArguments& arguments,
                                 std::vector<Place>& places) {
  const uint64_t count = arguments.count();
  const BenchRecords records(arguments.seed, arguments.record_size);
  places.resize(count);
  Measured measured;
  measured.latencies.resize(count);
  absl::Status first_error;
  uint64_t failed = 0;  // On the executor, as the rest of what deliveries write.
  std::atomic<uint64_t> done{0};
  const Progress progress(
      -1, [&] { return absl::StrCat(done.load(), " of ", count, " acknowledged"); });
  const MonotonicTime begun = session.clock().Now();
  for (uint64_t i = 0; i < count; ++i) {
    ProducerRecord record;
    record.topic = arguments.topic;
    record.value = records.Make(i);
    measured.hash.Add(*record.value);
    const MonotonicTime sent = session.clock().Now();
    const absl::Status taken =
        session.Send(std::move(record), [&, i, sent](const Delivery& delivery) {
          if (!delivery.status.ok()) {
            if (failed++ == 0) first_error = delivery.status;
            return;
          }
          ++done;
          measured.latencies[i] =
              static_cast<uint64_t>((session.clock().Now() - sent).microseconds());
          places[i] = {delivery.partition.partition.value(), delivery.offset.value()};
        });
    if (!taken.ok()) return taken;
  }
  session.FlushProducer();
  measured.took = session.clock().Now() - begun;
  session.CloseProducer(Duration::Seconds(10));
  if (failed > 0) {
    return MakeError(ErrorCodeOf(first_error),
                     absl::StrCat(failed, " of ", count, " records failed; the first: ",
                                  std::string(first_error.message())));
  }
  measured.records = count;
  measured.bytes = count * arguments.record_size;
  return measured;
}

int BenchProduce(const Globals& globals, BenchArguments arguments) {
  return WithDataSession(globals, [&](DataSession& session) -> int {
    session.MakeConsumer(ResetPolicy::kNone);
    const auto partitions = session.Partitions(arguments.topic);
    if (!partitions.ok()) return Report(partitions.status());
    const auto ends = session.ListOffsets(arguments.topic, *partitions, v1::OFFSET_SPEC_LATEST);
    if (!ends.ok()) return Report(ends.status());
    for (size_t i = 0; i < ends->size(); ++i) {
      arguments.from[(*partitions)[i]] = (*ends)[i].high_watermark;
    }
    ProducerOptions options;
    options.acks = *AcksFromText(arguments.acks);
    options.compression = *CompressionFromText(arguments.compression);
    BoundDelivery(Duration::Seconds(globals.timeout_seconds), options);
    session.MakeProducer(std::move(options));
    std::vector<Place> places;
    auto measured = SendAll(session, arguments, places);
    if (!measured.ok()) return Report(measured.status());
    if (!arguments.no_verify) {
      const auto read = ReadBack(session, arguments, &places);
      if (!read.ok()) return Report(read.status());
      if (read->records != measured->records || read->hash != measured->hash) {
        return Report(Wrong(absl::StrCat(
            measured->records, " records were acknowledged (content hash ", measured->hash.text(),
            ") and ", read->records, " of them read back (", read->hash.text(), ")")));
      }
    }
    Show(globals, "produce", *measured, !arguments.no_verify);
    return kDone;
  });
}

int BenchConsume(const Globals& globals, const BenchArguments& arguments) {
  return WithDataSession(globals, [&](DataSession& session) -> int {
    session.MakeConsumer(ResetPolicy::kEarliest);
    auto measured = ReadBack(session, arguments, nullptr);
    if (!measured.ok()) return Report(measured.status());
    if (measured->records != arguments.count()) {
      return Report(
          Wrong(absl::StrCat("the topic ends after ", measured->records, " of ", arguments.count(),
                             " records; give the --records and --seed of the bench "
                             "produce that wrote them")));
    }
    Show(globals, "consume", *measured, true);
    return kDone;
  });
}

CLI::App* AddVerb(CLI::App* bench, const char* verb, const char* help, BenchArguments& arguments) {
  CLI::App* command = bench->add_subcommand(verb, help);
  command->fallthrough();
  command->add_option("--topic", arguments.topic, "Which")->required()->check(Utf8Text());
  CLI::Option* records =
      command->add_option("--records", arguments.records, "How many (default 100000)")
          ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}));
  command->add_option("--bytes", arguments.bytes, "Instead: so much of values")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 42))
      ->excludes(records);
  command->add_option("--record-size", arguments.record_size, "Bytes of a value")
      ->check(CLI::Range(kBenchRecordMin, size_t{16} << 20))
      ->capture_default_str();
  command->add_option("--seed", arguments.seed, "What the records are made from")
      ->check(WholeNumber(0))
      ->capture_default_str();
  return command;
}

}  // namespace

void AddBenchCommands(CLI::App& app, const Globals& globals, Run& run) {
  CLI::App* bench = app.add_subcommand("bench", "How fast, and whether everything arrives");
  bench->require_subcommand(1)->fallthrough();

  auto produced = std::make_shared<BenchArguments>();
  CLI::App* produce = AddVerb(bench, "produce",
                              "Send records made from a seed, and read them back: count, offsets "
                              "and content must be right. Latency: from Send to acknowledgement",
                              *produced);
  produce->add_option("--acks", produced->acks, "all, 1 or 0")
      ->check(CLI::IsMember({"all", "1", "0"}))
      ->capture_default_str();
  produce->add_option("--compression", produced->compression, "none, lz4 or zstd")
      ->check(CLI::IsMember({"none", "lz4", "zstd"}))
      ->capture_default_str();
  produce->add_flag("--no-verify", produced->no_verify, "Do not read back");
  produce->callback([&globals, &run, produced] {
    run = [&globals, produced] { return BenchProduce(globals, *produced); };
  });

  auto consumed = std::make_shared<BenchArguments>();
  CLI::App* consume = AddVerb(bench, "consume",
                              "Read what one 'bench produce' with the same numbers and seed wrote "
                              "to a topic of its own, and check it. Latency: of each poll",
                              *consumed);
  consume->callback([&globals, &run, consumed] {
    run = [&globals, consumed] { return BenchConsume(globals, *consumed); };
  });
}

}  // namespace conclave::tools
