#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/cli.h"
#include "tools/cli/data_options.h"
#include "tools/cli/data_session.h"
#include "tools/cli/option_checks.h"
#include "tools/cli/progress.h"
#include "tools/cli/record_text.h"

namespace conclave::tools {
namespace {

struct ProduceArguments {
  std::string topic;
  std::string file;
  std::string key_separator;
  bool key_separator_given = false;
  std::string format = "lines";
  std::string acks = "all";
  std::string compression = "none";
  int32_t partition = -1;
  bool no_idempotence = false;
};

// Without acknowledgements, while work goes on.
constexpr Duration kWorthSaying = Duration::Seconds(2);
// Of connections; every record is done by then. A broker that hangs may not let go of its own.
constexpr Duration kCloseTimeout = Duration::Seconds(2);

// What became of the records. Deliveries come on the executor.
class Tally {
 public:
  // Of work that begins now.
  Tally(const Clock& clock, bool answered)
      : clock_(clock), answered_(answered), last_acknowledged_(clock.Now()) {}

  void Delivered(const absl::Status& status, size_t bytes) {
    std::lock_guard lock(mutex_);
    if (status.ok()) {
      const MonotonicTime now = clock_.Now();
      longest_gap_ = std::max(longest_gap_, now - last_acknowledged_);
      last_acknowledged_ = now;
      ++passed_;
      bytes_ += bytes;
      return;
    }
    ++failed_;
    if (first_error_.ok()) first_error_ = status;
  }

  std::string Line() {
    std::lock_guard lock(mutex_);
    const Duration quiet = clock_.Now() - last_acknowledged_;
    return absl::StrCat(passed_, answered_ ? " acknowledged, " : " sent, ", MegabytesText(bytes_),
                        failed_ > 0 ? absl::StrCat(", ", failed_, " failed") : "",
                        quiet >= kWorthSaying
                            ? absl::StrCat(", none for ", Decimals(quiet.seconds(), 0), " s")
                            : "");
  }

  int Show(const Globals& globals, Duration took) {
    std::lock_guard lock(mutex_);
    if (globals.json()) {
      Json shown = {{"acknowledged", answered_ ? passed_ : 0},
                    {"failed", failed_},
                    {"bytes", bytes_},
                    {"seconds", took.seconds()},
                    {"longest_gap_seconds", longest_gap_.seconds()}};
      if (!answered_) shown["sent"] = passed_;
      PrintJson(shown);
    } else {
      PrintTable({answered_ ? "ACKNOWLEDGED" : "SENT", "FAILED", "BYTES", "SECONDS", "LONGEST GAP"},
                 {{std::to_string(passed_), std::to_string(failed_), std::to_string(bytes_),
                   Decimals(took.seconds(), 3), Decimals(longest_gap_.seconds(), 3)}});
    }
    if (failed_ == 0) return kDone;
    Report(MakeError(ErrorCodeOf(first_error_),
                     absl::StrCat(failed_, failed_ == 1 ? " record" : " records",
                                  " failed; the first: ", std::string(first_error_.message()))));
    // Somebody was reached, whatever the code: the topic was found.
    return kRefused;
  }

 private:
  const Clock& clock_;
  // Not with acks=0, where nobody says what became of a record.
  const bool answered_;
  std::mutex mutex_;
  // Or, before the first, when the work began.
  MonotonicTime last_acknowledged_;
  // Without an acknowledgement.
  Duration longest_gap_;
  // Acknowledged, or but sent.
  uint64_t passed_ = 0;
  uint64_t failed_ = 0;
  uint64_t bytes_ = 0;
  absl::Status first_error_;
};

size_t ContentBytes(const ProducerRecord& record) {
  return (record.key ? record.key->size() : 0) + (record.value ? record.value->size() : 0);
}

class Input {
 public:
  static absl::StatusOr<std::unique_ptr<Input>> Open(const std::string& file) {
    if (file.empty() || file == "-") return std::unique_ptr<Input>(new Input("stdin", 0));
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      return MakeError(v1::INVALID_REQUEST,
                       absl::StrCat("cannot read ", file, ": ", std::strerror(errno)));
    }
    return std::unique_ptr<Input>(new Input(file, fd));
  }
  ~Input() {
    if (fd_ != 0) close(fd_);
  }

  int fd() const { return fd_; }

  // Whole lines as they come: whoever types is served line by line.
  absl::Status ForEachLine(const LineSplitter::Take& take) {
    LineSplitter splitter;
    std::vector<char> buffer(size_t{256} << 10);
    for (;;) {
      const ssize_t count = read(fd_, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        return MakeError(v1::INVALID_REQUEST,
                         absl::StrCat("cannot read ", name_, ": ", std::strerror(errno)));
      }
      if (count == 0) break;
      splitter.Add(std::string_view(buffer.data(), static_cast<size_t>(count)), take);
    }
    splitter.End(take);
    return absl::OkStatus();
  }

 private:
  Input(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}

  const std::string name_;
  const int fd_;
};

int Produce(const Globals& globals, const ProduceArguments& arguments) {
  auto input = Input::Open(arguments.file);
  if (!input.ok()) return Report(input.status());
  return WithDataSession(globals, [&](DataSession& session) -> int {
    const MonotonicTime begun = session.clock().Now();
    // Unknown topics and clusters are found before the input is.
    session.MakeConsumer(ResetPolicy::kNone);
    const auto partitions = session.Partitions(arguments.topic);
    if (!partitions.ok()) return Report(partitions.status());
    ProducerOptions options;
    options.acks = *AcksFromText(arguments.acks);
    options.compression = *CompressionFromText(arguments.compression);
    options.idempotent = !arguments.no_idempotence;
    BoundDelivery(Duration::Seconds(globals.timeout_seconds), options);
    session.MakeProducer(std::move(options));
    std::optional<std::string> separator;
    if (arguments.key_separator_given) separator = arguments.key_separator;
    Tally tally(session.clock(), arguments.acks != "0");
    std::optional<Progress> progress;
    progress.emplace((*input)->fd(), [&tally] { return tally.Line(); });
    uint64_t number = 0;
    const absl::Status read = (*input)->ForEachLine([&](std::string line) {
      ++number;
      auto record = arguments.format == "json" ? RecordFromJson(line)
                                               : RecordFromLine(std::move(line), separator);
      if (!record.ok()) {
        return tally.Delivered(
            MakeError(ErrorCodeOf(record.status()),
                      absl::StrCat("line ", number, ": ", std::string(record.status().message()))),
            0);
      }
      record->topic = arguments.topic;
      if (arguments.partition >= 0) record->partition = PartitionIndex(arguments.partition);
      const size_t bytes = ContentBytes(*record);
      const absl::Status taken = session.Send(
          *std::move(record),
          [&tally, bytes](const Delivery& delivery) { tally.Delivered(delivery.status, bytes); });
      if (!taken.ok()) tally.Delivered(taken, 0);
    });
    session.FlushProducer();
    session.CloseProducer(kCloseTimeout);
    progress.reset();
    const int exit_code = tally.Show(globals, session.clock().Now() - begun);
    return read.ok() ? exit_code : Report(read);
  });
}

}  // namespace

void AddProduceCommand(CLI::App& app, const Globals& globals, Run& run) {
  auto arguments = std::make_shared<ProduceArguments>();
  CLI::App* produce = app.add_subcommand(
      "produce",
      "Send records to a topic, one a line. --timeout is how long each record is tried for");
  produce->footer(
      "Records with a key go to the partition that Kafka's Java client would choose; those without "
      "stay with one partition for a batch's bytes (512 KiB), then go on to another at random, so "
      "that few short lines may all be in one.\n"
      "LONGEST GAP in the result: the longest time without an acknowledgement, in seconds, from "
      "the beginning on. Time in which there was no input counts too.");
  produce->fallthrough();
  produce->add_option("topic", arguments->topic, "Where to")->required()->check(Utf8Text());
  produce->add_option("--file", arguments->file, "Read this instead of stdin");
  CLI::Option* separator =
      produce
          ->add_option("--key-separator", arguments->key_separator,
                       "What stands before its first occurrence in a line is the key; \\t is a "
                       "tab, \\\\ a backslash")
          ->transform(CLI::Validator(
              [](std::string& text) {
                auto separator = KeySeparatorFromText(text);
                if (!separator.ok()) return std::string(separator.status().message());
                text = *std::move(separator);
                return std::string();
              },
              ""));
  produce
      ->add_option("--format", arguments->format,
                   "lines: a line is a value. json: a line is an object with value, and as wanted "
                   "key, headers, partition, timestamp")
      ->check(CLI::IsMember({"lines", "json"}))
      ->capture_default_str();
  produce
      ->add_option(
          "--acks", arguments->acks,
          "all, 1 (the leader) or 0 (nobody: records that are refused are lost in silence)")
      ->check(CLI::IsMember({"all", "1", "0"}))
      ->capture_default_str();
  produce->add_option("--compression", arguments->compression, "none, lz4 or zstd")
      ->check(CLI::IsMember({"none", "lz4", "zstd"}))
      ->capture_default_str();
  produce
      ->add_option("--partition", arguments->partition,
                   "Everything goes there (default: by the key, or spread)")
      ->check(CLI::Range(0, 2147483647));
  produce->add_flag("--no-idempotence", arguments->no_idempotence,
                    "A retry may store a record twice");
  produce->callback([&globals, &run, arguments, separator] {
    arguments->key_separator_given = separator->count() > 0;
    if (arguments->key_separator_given && arguments->format == "json") {
      throw CLI::ValidationError("--key-separator", "is for --format lines; json has \"key\"");
    }
    run = [&globals, arguments] { return Produce(globals, *arguments); };
  });
}

}  // namespace conclave::tools
