#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/error/error.h"
#include "tools/cli/admin_session.h"
#include "tools/cli/cli.h"
#include "tools/cli/option_checks.h"

namespace conclave::tools {
namespace {

struct ElectArguments {
  std::string topic;
  std::vector<int32_t> partitions;
  bool preferred = false;
  bool unclean = false;
};

int Elect(const Globals& globals, const ElectArguments& arguments) {
  v1::ElectLeadersRequest request;
  request.set_type(arguments.unclean ? v1::ELECTION_TYPE_UNCLEAN : v1::ELECTION_TYPE_PREFERRED);
  request.set_topic(arguments.topic);
  request.set_timeout_ms(globals.timeout_seconds * 1000);
  for (const int32_t partition : arguments.partitions) request.add_partitions(partition);
  return WithSession(globals, [&](AdminSession& session) -> int {
    const auto response = session.Call(&AdminClient::ElectLeaders, std::move(request));
    if (!response.ok()) return Report(response.status());
    int exit_code = kDone;
    Json partitions = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const v1::ElectLeaderResult& result : response->partitions()) {
      const v1::ErrorCode code = result.error().code();
      // Of all partitions of a topic those that are led as asked are no failure.
      const bool as_asked = code == v1::ELECTION_NOT_NEEDED && arguments.partitions.empty();
      if (code != v1::NONE && !as_asked) {
        exit_code = Report(StatusFromError(result.error()));
        continue;
      }
      partitions.push_back({{"partition", result.partition()},
                            {"leader", result.leader()},
                            {"leader_epoch", result.leader_epoch()},
                            {"elected", code == v1::NONE}});
      rows.push_back({std::to_string(result.partition()), std::to_string(result.leader()),
                      std::to_string(result.leader_epoch()), code == v1::NONE ? "yes" : "no"});
    }
    if (globals.json()) {
      PrintJson({{"partitions", partitions}});
    } else if (!rows.empty()) {
      PrintTable({"PARTITION", "LEADER", "EPOCH", "ELECTED NOW"}, rows);
    }
    return exit_code;
  });
}

}  // namespace

void AddElectLeaderCommand(CLI::App& topic, const Globals& globals, Run& run) {
  auto arguments = std::make_shared<ElectArguments>();
  CLI::App* elect = topic.add_subcommand("elect-leader", "Give partitions another leader");
  elect->fallthrough();
  elect->add_option("name", arguments->topic, "Which topic")->required()->check(Utf8Text());
  elect
      ->add_option("--partition", arguments->partitions,
                   "Which partition (may be given again; default all)")
      ->allow_extra_args(false);
  CLI::Option* unclean = elect->add_flag(
      "--unclean", arguments->unclean,
      "A replica that may lack acknowledged records, where there is no leader: they are lost then");
  elect
      ->add_flag("--preferred", arguments->preferred,
                 "The first replica in assignment order, where it is in sync")
      ->excludes(unclean);
  elect->callback([&globals, &run, arguments] {
    if (!arguments->unclean && !arguments->preferred) {
      throw CLI::RequiredError("--preferred or --unclean");
    }
    run = [&globals, arguments] { return Elect(globals, *arguments); };
  });
}

}  // namespace conclave::tools
