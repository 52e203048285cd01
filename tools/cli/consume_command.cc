#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/cli.h"
#include "tools/cli/data_options.h"
#include "tools/cli/data_session.h"
#include "tools/cli/record_text.h"

namespace conclave::tools {
namespace {

constexpr size_t kPollRecords = 1000;

struct ConsumeArguments {
  std::string topic;
  std::vector<int32_t> partitions;
  bool from_beginning = false;
  int64_t offset = -1;
  int64_t timestamp = -1;
  int64_t count = -1;
  bool exit_at_end = false;
  std::string format = "lines";
};

// Stdout. A reader that has gone away is no error: the command ends, and says nothing.
class Output {
 public:
  explicit Output(const std::string& format) : format_(format) {
    std::signal(SIGPIPE, SIG_IGN);
    std::setvbuf(stdout, nullptr, _IOFBF, size_t{1} << 16);
  }

  void Write(const TopicPartition& partition, const RecordView& record) {
    if (format_ == "json") {
      Put(RecordToJson(partition, record));
      Put("\n");
      return;
    }
    if (record.value) Put(*record.value);
    if (format_ == "lines") Put("\n");
  }
  void Flush() {
    if (!failed_ && std::fflush(stdout) != 0) Fail();
  }
  bool failed() const { return failed_; }
  // What the failure means.
  int ExitCode() const {
    if (error_ == EPIPE) return kDone;
    return Report(MakeError(v1::INVALID_REQUEST,
                            absl::StrCat("cannot write to stdout: ", std::strerror(error_))));
  }

 private:
  void Put(std::string_view bytes) {
    if (!failed_ && std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) Fail();
  }
  void Fail() {
    failed_ = true;
    error_ = errno;
  }

  const std::string format_;
  bool failed_ = false;
  int error_ = 0;
};

StartAt StartOf(const ConsumeArguments& arguments) {
  if (arguments.offset >= 0) return StartAt::At(Offset(arguments.offset));
  if (arguments.timestamp >= 0) return StartAt::Timestamp(arguments.timestamp);
  return arguments.from_beginning ? StartAt::Earliest() : StartAt::Latest();
}

absl::StatusOr<std::vector<PartitionIndex>> Chosen(DataSession& session,
                                                   const ConsumeArguments& arguments) {
  auto all = session.Partitions(arguments.topic);
  if (!all.ok() || arguments.partitions.empty()) return all;
  std::vector<PartitionIndex> chosen;
  for (const int32_t partition : arguments.partitions) {
    if (static_cast<size_t>(partition) >= all->size()) {
      return MakeError(v1::INVALID_PARTITIONS,
                       absl::StrCat("topic \"", arguments.topic, "\" has ", all->size(),
                                    " partitions, counted from 0, and no partition ", partition));
    }
    chosen.push_back(PartitionIndex(partition));
  }
  return chosen;
}

using Ends = std::map<PartitionIndex, Offset>;

// Whether every partition is where it ended when the command began.
bool AtEnd(DataSession& session, Consumer& consumer, const std::string& topic, const Ends& ends) {
  return session.Run([&] {
    for (const auto& [partition, end] : ends) {
      const auto position = consumer.Position({topic, partition});
      if (!position || *position < end) return false;
    }
    return true;
  });
}

int Read(DataSession& session, Consumer& consumer, const ConsumeArguments& arguments,
         const Ends& ends) {
  Output output(arguments.format);
  int64_t left = arguments.count < 0 ? INT64_MAX : arguments.count;
  while (left > 0 && !(arguments.exit_at_end && AtEnd(session, consumer, arguments.topic, ends))) {
    const size_t most = static_cast<size_t>(std::min<int64_t>(left, kPollRecords));
    auto records = session.Poll(most, Duration::Milliseconds(200));
    if (!records.ok()) {
      output.Flush();
      return Report(records.status());
    }
    for (const PartitionRecords& part : *records) {
      const auto end = ends.find(part.partition.partition);
      for (const RecordView& record : part.records) {
        if (end != ends.end() && record.offset >= end->second) break;
        output.Write(part.partition, record);
        --left;
      }
    }
    output.Flush();
    if (output.failed()) return output.ExitCode();
  }
  return kDone;
}

int Consume(const Globals& globals, const ConsumeArguments& arguments) {
  return WithDataSession(globals, [&](DataSession& session) -> int {
    // Whoever names an offset wants that one or none.
    const ResetPolicy reset = arguments.offset >= 0 ? ResetPolicy::kNone
                              : arguments.from_beginning || arguments.timestamp >= 0
                                  ? ResetPolicy::kEarliest
                                  : ResetPolicy::kLatest;
    Consumer& consumer = session.MakeConsumer(reset);
    const auto partitions = Chosen(session, arguments);
    if (!partitions.ok()) return Report(partitions.status());
    Ends ends;
    if (arguments.exit_at_end) {
      const auto offsets =
          session.ListOffsets(arguments.topic, *partitions, v1::OFFSET_SPEC_LATEST);
      if (!offsets.ok()) return Report(offsets.status());
      for (size_t i = 0; i < offsets->size(); ++i) {
        ends[(*partitions)[i]] = (*offsets)[i].high_watermark;
      }
    }
    std::vector<Consumer::Assignment> assignment;
    for (const PartitionIndex partition : *partitions) {
      assignment.push_back({{arguments.topic, partition}, StartOf(arguments)});
    }
    session.Run([&] { consumer.Assign(assignment); });
    return Read(session, consumer, arguments, ends);
  });
}

}  // namespace

void AddConsumeCommand(CLI::App& app, const Globals& globals, Run& run) {
  auto arguments = std::make_shared<ConsumeArguments>();
  CLI::App* consume = app.add_subcommand(
      "consume", "Print the records of a topic, by default those that come from now on");
  consume->fallthrough();
  consume->add_option("topic", arguments->topic, "Which")->required();
  consume->add_option("--partition", arguments->partitions, "This one alone (may be given again)")
      ->allow_extra_args(false)
      ->check(CLI::Range(0, 2147483647));
  CLI::Option* beginning =
      consume->add_flag("--from-beginning", arguments->from_beginning, "From the first there is");
  CLI::Option* offset =
      consume->add_option("--offset", arguments->offset, "From this offset of each partition")
          ->check(CLI::NonNegativeNumber);
  CLI::Option* timestamp =
      consume
          ->add_option("--timestamp", arguments->timestamp,
                       "From the first record that is not older (milliseconds since 1970)")
          ->check(CLI::NonNegativeNumber);
  beginning->excludes(offset)->excludes(timestamp);
  offset->excludes(timestamp);
  consume->add_option("--count", arguments->count, "End after so many records")
      ->check(CLI::NonNegativeNumber);
  consume->add_flag("--exit-at-end", arguments->exit_at_end,
                    "End where each partition ended when the command began");
  consume
      ->add_option("--format", arguments->format,
                   "lines: a value a line, its bytes as they are. json: one object a line. value: "
                   "values with nothing between them")
      ->check(CLI::IsMember({"lines", "json", "value"}))
      ->capture_default_str();
  consume->callback([&globals, &run, arguments] {
    run = [&globals, arguments] { return Consume(globals, *arguments); };
  });
}

}  // namespace conclave::tools
