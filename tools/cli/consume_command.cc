#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/cli.h"
#include "tools/cli/consume_group.h"
#include "tools/cli/data_options.h"
#include "tools/cli/data_session.h"
#include "tools/cli/option_checks.h"
#include "tools/cli/record_output.h"

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
  std::string group;
  int32_t session_timeout_ms = 10'000;
  std::string instance_id;
  std::string assignor;
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

// Whether the partition's log goes so far; a log's end is where the next record will be.
absl::Status CheckOffset(const ConsumeArguments& arguments, PartitionIndex partition,
                         const OffsetAnswer& bounds) {
  if (arguments.offset < 0) return absl::OkStatus();
  const Offset offset(arguments.offset);
  if (offset >= bounds.log_start && offset <= bounds.log_end) return absl::OkStatus();
  return MakeError(
      v1::OFFSET_OUT_OF_RANGE,
      absl::StrCat("offset ", arguments.offset, " is not in ",
                   ToString(TopicPartition{arguments.topic, partition}), ", whose log holds ",
                   bounds.log_start.value(), " to ", bounds.log_end.value(),
                   " (exclusive); use --offset with one of those, --from-beginning, or "
                   "--partition to choose partitions"));
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

absl::Status Read(DataSession& session, Consumer& consumer, const ConsumeArguments& arguments,
                  const Ends& ends, RecordOutput& output) {
  int64_t left = arguments.count < 0 ? INT64_MAX : arguments.count;
  while (left > 0 && !(arguments.exit_at_end && AtEnd(session, consumer, arguments.topic, ends))) {
    const size_t most = static_cast<size_t>(std::min<int64_t>(left, kPollRecords));
    auto records = session.Poll(most, Duration::Milliseconds(200));
    if (!records.ok()) {
      output.Flush();
      return records.status();
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
    if (output.failed()) break;
  }
  return absl::OkStatus();
}

int Consume(const Globals& globals, const ConsumeArguments& arguments) {
  if (!arguments.group.empty()) {
    return ConsumeAsMember(globals,
                           {.topic = arguments.topic,
                            .group = arguments.group,
                            .from_beginning = arguments.from_beginning,
                            .count = arguments.count,
                            .exit_at_end = arguments.exit_at_end,
                            .format = arguments.format,
                            .session_timeout = Duration::Milliseconds(arguments.session_timeout_ms),
                            .instance_id = arguments.instance_id,
                            .assignor = arguments.assignor});
  }
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
    if (arguments.exit_at_end || arguments.offset >= 0) {
      const auto offsets =
          session.ListOffsets(arguments.topic, *partitions, v1::OFFSET_SPEC_LATEST);
      if (!offsets.ok()) return Report(offsets.status());
      for (size_t i = 0; i < offsets->size(); ++i) {
        const PartitionIndex partition = (*partitions)[i];
        const absl::Status there = CheckOffset(arguments, partition, (*offsets)[i]);
        if (!there.ok()) return Report(there);
        if (arguments.exit_at_end) ends[partition] = (*offsets)[i].high_watermark;
      }
    }
    std::vector<Consumer::Assignment> assignment;
    for (const PartitionIndex partition : *partitions) {
      assignment.push_back({{arguments.topic, partition}, StartOf(arguments)});
    }
    session.Run([&] { consumer.Assign(assignment); });
    RecordOutput output(arguments.format);
    const absl::Status read = Read(session, consumer, arguments, ends, output);
    output.EndProgress();
    if (output.failed()) return output.ExitCode();
    return read.ok() ? kDone : Report(read);
  });
}

}  // namespace

void AddConsumeCommand(CLI::App& app, const Globals& globals, Run& run) {
  auto arguments = std::make_shared<ConsumeArguments>();
  CLI::App* consume = app.add_subcommand(
      "consume", "Print the records of a topic, by default those that come from now on");
  consume->footer(
      "--timeout bounds requests, such as the look for the topic, and not the whole command: that "
      "ends with --count or --exit-at-end, or when it is stopped.");
  consume->fallthrough();
  consume->add_option("topic", arguments->topic, "Which")->required()->check(Utf8Text());
  CLI::Option* partition =
      consume
          ->add_option("--partition", arguments->partitions, "This one alone (may be given again)")
          ->allow_extra_args(false)
          ->check(CLI::Range(0, 2147483647));
  CLI::Option* beginning =
      consume->add_flag("--from-beginning", arguments->from_beginning, "From the first there is");
  CLI::Option* offset =
      consume->add_option("--offset", arguments->offset, "From this offset of each partition")
          ->check(WholeNumber(0));
  CLI::Option* timestamp =
      consume
          ->add_option("--timestamp", arguments->timestamp,
                       "From the first record that is not older (milliseconds since 1970)")
          ->check(WholeNumber(0));
  beginning->excludes(offset)->excludes(timestamp);
  offset->excludes(timestamp);
  consume->add_option("--count", arguments->count, "End after so many records")
      ->check(WholeNumber(0));
  consume->add_flag("--exit-at-end", arguments->exit_at_end,
                    "End where each partition ended when the command began; with a group, when "
                    "the group has come so far");
  CLI::Option* group =
      consume
          ->add_option("--group", arguments->group,
                       "As a member of this group: go on where it has committed, commit what was "
                       "printed. Where it has not committed, or its offset is not in the log any "
                       "more, go on at the end, or with --from-beginning at the first record "
                       "there is")
          ->check(GroupName());
  group->excludes(partition)->excludes(offset)->excludes(timestamp);
  consume
      ->add_option("--session-timeout-ms", arguments->session_timeout_ms,
                   "The member is out of the group when nothing was heard from it for so long")
      ->check(CLI::Range(1, 2147483647))
      ->needs(group)
      ->capture_default_str();
  consume
      ->add_option("--instance-id", arguments->instance_id,
                   "A name under which the member comes back to the same partitions")
      ->check(Utf8Text())
      ->needs(group);
  consume->add_option("--assignor", arguments->assignor, "Of the group's partitions")
      ->check(CLI::IsMember({"uniform", "range", "sticky"}))
      ->needs(group);
  CLI::Option* format =
      consume
          ->add_option("--format", arguments->format,
                       "lines: a value a line, its bytes as they are. json: one object a line, as "
                       "with --output json. value: values with nothing between them")
          ->check(CLI::IsMember({"lines", "json", "value"}))
          ->capture_default_str();
  consume->callback([&globals, &run, arguments, format] {
    if (format->count() == 0 && globals.json()) arguments->format = "json";
    run = [&globals, arguments] { return Consume(globals, *arguments); };
  });
}

}  // namespace conclave::tools
