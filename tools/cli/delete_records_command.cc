#include "tools/cli/delete_records_command.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/admin_session.h"
#include "tools/cli/option_checks.h"

namespace conclave::tools {
namespace {

constexpr char kEnd[] = "end";
constexpr int64_t kHighWatermark = -1;

struct Arguments {
  std::string topic;
  int32_t partition = 0;
  std::string before;
};

CLI::Validator OffsetOrEnd() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        int64_t offset = 0;
        if (text == kEnd) return "";
        if (absl::SimpleAtoi(text, &offset) && offset >= kHighWatermark) return "";
        return absl::StrCat("\"", text,
                            "\" is no offset: give a whole number, or -1 or \"end\" for the high "
                            "watermark");
      },
      "OFFSET|end");
}

int DeleteRecords(const Globals& globals, const Arguments& arguments) {
  v1::DeleteRecordsRequest request;
  v1::DeleteRecordsPartition* partition = request.add_partitions();
  partition->set_topic(arguments.topic);
  partition->set_partition(arguments.partition);
  int64_t before = kHighWatermark;
  if (arguments.before != kEnd && !absl::SimpleAtoi(arguments.before, &before)) return kWrongUsage;
  partition->set_before_offset(before);
  return WithSession(globals, [&](AdminSession& session) -> int {
    const auto response = session.Call(&AdminClient::DeleteRecords, std::move(request));
    if (!response.ok()) return Report(response.status());
    const v1::DeleteRecordsResult& result = response->partitions(0);
    if (result.error().code() != v1::NONE) return Report(StatusFromError(result.error()));
    if (globals.json()) {
      PrintJson({{"partitions",
                  {{{"topic", arguments.topic},
                    {"partition", result.partition()},
                    {"log_start_offset", result.log_start_offset()}}}}});
    } else {
      PrintTable({"TOPIC", "PARTITION", "LOG START"},
                 {{arguments.topic, std::to_string(result.partition()),
                   std::to_string(result.log_start_offset())}});
    }
    return kDone;
  });
}

}  // namespace

void AddDeleteRecords(CLI::App& topic, const Globals& globals, Run& run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = topic.add_subcommand(
      "delete-records",
      "Delete a partition's records below an offset, on every in-sync replica, for good");
  command->fallthrough();
  command->add_option("name", arguments->topic, "Topic")->required()->check(Utf8Text());
  command->add_option("--partition", arguments->partition, "Which")
      ->required()
      ->check(CLI::Range(0, INT32_MAX));
  command
      ->add_option("--before", arguments->before,
                   "The offset below which records go, the first that stays; \"end\" or -1: all "
                   "that are committed")
      ->required()
      ->check(OffsetOrEnd());
  command->callback([&globals, &run, arguments] {
    run = [&globals, arguments] { return DeleteRecords(globals, *arguments); };
  });
}

}  // namespace conclave::tools
