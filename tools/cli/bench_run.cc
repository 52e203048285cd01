#include "tools/cli/bench_run.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/data_options.h"
#include "tools/cli/option_checks.h"
#include "tools/cli/progress.h"

namespace conclave::tools {
namespace {

// Polls an assignment and holds what comes against what must.
class Reader {
 public:
  // `places`: null where records may stand anywhere.
  Reader(DataSession& session, const BenchArguments& arguments, const std::vector<Place>* places)
      : session_(session),
        arguments_(arguments),
        places_(places),
        expected_(arguments.count()),
        records_(arguments.seed, arguments.record_size),
        seen_(expected_) {}

  absl::StatusOr<Measured> Read(const PartitionOffsets* from, PartitionOffsets ends) {
    std::vector<Consumer::Assignment> assignment;
    for (const auto& [partition, end] : ends) {
      assignment.push_back(
          {{arguments_.topic, partition},
           from == nullptr ? StartAt::Earliest() : StartAt::At(from->at(partition))});
    }
    const Progress progress(-1,
                            [&] { return absl::StrCat(read_.load(), " of ", expected_, " read"); });
    const MonotonicTime begun = session_.clock().Now();
    MonotonicTime progressed = begun;
    bool idle = false;
    session_.Run([&] { session_.consumer().Assign(assignment); });
    // To the end, for what was written twice may come after what was waited for.
    for (;;) {
      const bool complete = measured_.records >= expected_;
      if (complete && measured_.took == Duration()) {
        measured_.took = session_.clock().Now() - begun;
      }
      if ((places_ != nullptr || complete || idle) && AtEnd(ends)) break;
      const MonotonicTime asked = session_.clock().Now();
      const auto polled = session_.Poll(kBenchPollRecords, Duration::Milliseconds(200));
      if (!polled.ok()) return polled.status();
      const MonotonicTime now = session_.clock().Now();
      idle = polled->empty();
      if (idle) {
        if (now - progressed < session_.timeout()) continue;
        return MakeError(
            v1::REQUEST_TIMED_OUT,
            absl::StrCat("reading topic ", arguments_.topic, " back: nothing came for ",
                         session_.timeout().seconds(), " s, and ", measured_.records,
                         " records were read before; 'conclave topic describe ", arguments_.topic,
                         "' tells the state of its partitions"));
      }
      progressed = now;
      measured_.latency.Add(static_cast<uint64_t>((now - asked).nanoseconds()));
      for (const PartitionRecords& part : *polled) {
        std::optional<uint64_t>& last = last_[part.partition.partition];
        for (const RecordView& record : part.records) {
          const absl::Status taken = Take(part.partition, record, last);
          if (!taken.ok()) return taken;
        }
        read_ = measured_.records;
      }
    }
    if (measured_.took == Duration()) measured_.took = session_.clock().Now() - begun;
    return std::move(measured_);
  }

 private:
  bool AtEnd(const PartitionOffsets& ends) {
    return session_.Run([&] {
      return std::all_of(ends.begin(), ends.end(), [&](const auto& end) {
        const auto position = session_.consumer().Position({arguments_.topic, end.first});
        return position && *position >= end.second;
      });
    });
  }

  // `last`: the partition's record before it.
  absl::Status Take(const TopicPartition& partition, const RecordView& record,
                    std::optional<uint64_t>& last) {
    const std::string_view value = record.value.value_or(std::string_view());
    const auto where = [&] {
      return absl::StrCat(ToString(partition), " at offset ", record.offset.value());
    };
    const auto number = arguments_.no_verify && places_ == nullptr ? records_.NumberOf(value)
                                                                   : records_.Check(value);
    if (places_ == nullptr && !number) {
      return WrongData(absl::StrCat("the record in ", where(),
                                    " is none of this benchmark's seed and record size, or was "
                                    "damaged"));
    }
    if (places_ == nullptr && *number >= expected_) {
      return WrongData(absl::StrCat("record ", *number, " stands in ", where(), ", and there are ",
                                    expected_,
                                    " to read; give the --records or --bytes of the "
                                    "bench produce that wrote them"));
    }
    if (!number || *number >= expected_) return absl::OkStatus();
    if (arguments_.keys > 0 && record.key != arguments_.KeyOf(*number)) {
      return WrongData(absl::StrCat("record ", *number, " in ", where(), " has another key than ",
                                    arguments_.KeyOf(*number)));
    }
    const Place* const place = places_ != nullptr ? &(*places_)[*number] : nullptr;
    const bool acknowledged = place == nullptr || place->partition >= 0;
    if (place != nullptr && acknowledged) {
      const bool here = place->partition == partition.partition.value() &&
                        (place->offset < 0 || place->offset == record.offset.value());
      if (!here) {
        return WrongData(absl::StrCat("record ", *number, " stands in ", where(),
                                      " and was acknowledged in partition ", place->partition,
                                      " at offset ", place->offset));
      }
    }
    if (seen_[*number]) {
      return WrongData(absl::StrCat("record ", *number, " is stored twice; again in ", where(),
                                    places_ != nullptr
                                        ? ""
                                        : "; unless 'bench produce' ran more than once on this "
                                          "topic: it is to hold what one run wrote"));
    }
    seen_[*number] = true;
    if (last && *last > *number) {
      return WrongData(absl::StrCat("record ", *number, " stands in ", where(), ", behind record ",
                                    *last, ", and was sent before it"));
    }
    last = *number;
    if (!acknowledged) {
      ++measured_.unacknowledged;
      return absl::OkStatus();
    }
    ++measured_.records;
    measured_.bytes += value.size();
    if (!arguments_.no_verify || places_ != nullptr) measured_.hash.Add(value);
    return absl::OkStatus();
  }

  DataSession& session_;
  const BenchArguments& arguments_;
  const std::vector<Place>* const places_;
  const uint64_t expected_;
  const BenchRecords records_;
  std::vector<bool> seen_;
  std::map<PartitionIndex, std::optional<uint64_t>> last_;
  Measured measured_;
  // For who watches.
  std::atomic<uint64_t> read_{0};
};

}  // namespace

std::string BenchArguments::KeyOf(uint64_t number) const {
  return absl::StrCat("key-", number % keys);
}

absl::Status CheckCount(uint64_t records) {
  if (records <= kBenchRecordsMost) return absl::OkStatus();
  return MakeError(v1::INVALID_REQUEST,
                   absl::StrCat(records, " records are more than the ", kBenchRecordsMost,
                                " that a benchmark keeps track of; send larger ones, or fewer"));
}

uint64_t BenchArguments::count() const {
  if (records > 0) return records;
  return bytes > 0 ? (bytes + record_size - 1) / record_size : 100'000;
}

CLI::App* AddBenchVerb(CLI::App* bench, const char* verb, const char* help,
                       BenchArguments& arguments) {
  CLI::App* command = bench->add_subcommand(verb, help);
  command->fallthrough();
  command->add_option("--topic", arguments.topic, "Which")->required()->check(Utf8Text());
  command->add_option("--record-size", arguments.record_size, "Bytes of a value")
      ->check(CLI::Range(kBenchRecordMin, size_t{16} << 20))
      ->capture_default_str();
  command->add_option("--seed", arguments.seed, "What the records are made from")
      ->check(WholeNumber(0))
      ->capture_default_str();
  return command;
}

void AddAcksOption(CLI::App* command, BenchArguments& arguments) {
  command->add_option("--acks", arguments.acks, "all, or 1: the leader alone")
      ->check(CLI::IsMember({"all", "1"}))
      ->capture_default_str();
}

void AddPartitionOption(CLI::App* command, std::optional<int32_t>& partition) {
  command->add_option("--partition", partition, "This one alone (default: all in turn)")
      ->check(CLI::Range(0, 1'000'000));
}

absl::StatusOr<PartitionOffsets> EndsOf(DataSession& session, const std::string& topic) {
  const auto partitions = session.Partitions(topic);
  if (!partitions.ok()) return partitions.status();
  const auto ends = session.ListOffsets(topic, *partitions, v1::OFFSET_SPEC_LATEST);
  if (!ends.ok()) return ends.status();
  PartitionOffsets of;
  for (size_t i = 0; i < partitions->size(); ++i) of[(*partitions)[i]] = (*ends)[i].high_watermark;
  return of;
}

absl::Status AwaitStored(DataSession& session, const std::string& topic,
                         const PartitionOffsets& from, uint64_t records) {
  const MonotonicTime until = session.clock().Now() + session.timeout();
  while (session.clock().Now() < until) {
    const auto ends = EndsOf(session, topic);
    if (!ends.ok()) return ends.status();
    uint64_t stored = 0;
    for (const auto& [partition, end] : *ends) {
      stored += static_cast<uint64_t>(end.value() - from.at(partition).value());
    }
    if (stored >= records) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return absl::OkStatus();
}

absl::StatusOr<Measured> ReadAll(DataSession& session, const BenchArguments& arguments) {
  auto ends = EndsOf(session, arguments.topic);
  if (!ends.ok()) return ends.status();
  return Reader(session, arguments, nullptr).Read(nullptr, *std::move(ends));
}

absl::StatusOr<Measured> ReadBack(DataSession& session, const BenchArguments& arguments,
                                  const PartitionOffsets& from, const std::vector<Place>& places) {
  auto ends = EndsOf(session, arguments.topic);
  if (!ends.ok()) return ends.status();
  // What the leader alone acknowledged may not be below the high watermark yet.
  for (const Place& place : places) {
    if (place.partition < 0) continue;
    Offset& end = (*ends)[PartitionIndex(place.partition)];
    end = std::max(end, Offset(place.offset + 1));
  }
  return Reader(session, arguments, &places).Read(&from, *std::move(ends));
}

absl::Status Verify(DataSession& session, const BenchArguments& arguments,
                    const PartitionOffsets& from, const std::vector<Place>& places,
                    const Measured& acknowledged) {
  const auto read = ReadBack(session, arguments, from, places);
  if (!read.ok()) return read.status();
  if (read->records == acknowledged.records && read->hash == acknowledged.hash) {
    return absl::OkStatus();
  }
  const char* const passed = arguments.acks == "0"
                                 ? " records were sent without an acknowledgement "
                                   "(acks=0; content hash "
                                 : " records were acknowledged (content hash ";
  return WrongData(absl::StrCat(acknowledged.records, passed, acknowledged.hash.text(), ") and ",
                                read->records, " of them read back (", read->hash.text(), ")",
                                arguments.acks == "0" && read->records < acknowledged.records
                                    ? "; with acks=0 nobody tells of records that were refused: "
                                      "batches above the topic's max.message.bytes (a smaller "
                                      "--batch-bytes keeps below it), or sent to who did not lead"
                                    : ""));
}

absl::Status WrongData(const std::string& what) { return MakeError(v1::CORRUPT_MESSAGE, what); }

Json LatencyJson(const Histogram& latency) {
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  return {{"p50", us(latency.Percentile(50))},
          {"p90", us(latency.Percentile(90))},
          {"p99", us(latency.Percentile(99))},
          {"p99.9", us(latency.Percentile(99.9))},
          {"max", us(latency.max())}};
}

std::string MillisecondsText(uint64_t nanoseconds) {
  return Decimals(static_cast<double>(nanoseconds) / 1e6, 2);
}

}  // namespace conclave::tools
