#include <CLI/CLI.hpp>

#include "tools/cli/admin_session.h"
#include "tools/cli/cli.h"

namespace conclave::tools {

namespace {

const char* StateName(v1::BrokerLifecycle state) {
  switch (state) {
    case v1::BROKER_LIFECYCLE_ACTIVE:
      return "active";
    case v1::BROKER_LIFECYCLE_FENCED:
      return "fenced";
    case v1::BROKER_LIFECYCLE_STOPPING:
      return "stopping";
    default:
      return "unknown";
  }
}

int ListBrokers(const Globals& globals) {
  return WithSession(globals, [&](AdminSession& session) -> int {
    const auto response = session.Call(&AdminClient::DescribeCluster, v1::DescribeClusterRequest());
    if (!response.ok()) return Report(response.status());
    Json brokers = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const v1::BrokerDescription& b : response->brokers()) {
      brokers.push_back({{"id", b.broker_id()},
                         {"endpoint", b.endpoint()},
                         {"state", StateName(b.state())},
                         {"broker_epoch", b.broker_epoch()},
                         {"leads", b.leads()},
                         {"replicas", b.replicas()}});
      rows.push_back({std::to_string(b.broker_id()), b.endpoint(), StateName(b.state()),
                      std::to_string(b.broker_epoch()), std::to_string(b.leads()),
                      std::to_string(b.replicas())});
    }
    if (globals.json()) {
      PrintJson({{"brokers", brokers}});
    } else {
      PrintTable({"BROKER", "ENDPOINT", "STATE", "EPOCH", "LEADS", "REPLICAS"}, rows);
    }
    return kDone;
  });
}

}  // namespace

void AddBrokerCommands(CLI::App& app, const Globals& globals, Run& run) {
  CLI::App* broker = app.add_subcommand("broker", "Brokers");
  broker->require_subcommand(1)->fallthrough();
  CLI::App* list = broker->add_subcommand("list", "All brokers, and what they hold");
  list->fallthrough();
  list->callback([&globals, &run] { run = [&globals] { return ListBrokers(globals); }; });
}

}  // namespace conclave::tools
