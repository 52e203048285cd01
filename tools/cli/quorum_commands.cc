#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "tools/cli/admin_session.h"
#include "tools/cli/cli.h"

namespace conclave::tools {

namespace {

Json ToJson(const v1::QuorumMember& m) {
  return {{"node_id", m.node_id()},
          {"directory_id", IdText(m.directory_id())},
          {"endpoint", m.endpoint()},
          {"last_index", m.has_last_index() ? Json(m.last_index()) : Json(nullptr)},
          {"last_contact_ms", m.has_last_contact_ms() ? Json(m.last_contact_ms()) : Json(nullptr)}};
}

void PrintQuorumJson(const v1::DescribeQuorumResponse& quorum) {
  Json voters = Json::array(), observers = Json::array();
  for (const auto& voter : quorum.voters()) voters.push_back(ToJson(voter));
  for (const auto& observer : quorum.observers()) observers.push_back(ToJson(observer));
  PrintJson({{"cluster_id", IdText(quorum.cluster_id())},
             {"leader_id", quorum.leader_id()},
             {"term", quorum.term()},
             {"commit_index", quorum.commit_index()},
             {"voters", voters},
             {"observers", observers}});
}

void PrintQuorumTable(const v1::DescribeQuorumResponse& quorum) {
  std::cout << "cluster " << IdText(quorum.cluster_id()) << ", leader "
            << (quorum.leader_id() < 0 ? "none" : std::to_string(quorum.leader_id())) << ", term "
            << quorum.term() << ", committed to " << quorum.commit_index() << "\n\n";
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* kind, const v1::QuorumMember& m) {
    rows.push_back({std::to_string(m.node_id()),
                    m.node_id() == quorum.leader_id() ? "leader" : kind, m.endpoint(),
                    m.has_last_index() ? std::to_string(m.last_index()) : "-",
                    m.has_last_contact_ms() ? absl::StrCat(m.last_contact_ms(), " ms") : "-",
                    IdText(m.directory_id())});
  };
  for (const auto& voter : quorum.voters()) add("voter", voter);
  for (const auto& observer : quorum.observers()) add("observer", observer);
  PrintTable({"NODE", "ROLE", "ENDPOINT", "LAST INDEX", "LAST CONTACT", "DIRECTORY ID"}, rows);
}

int ShowQuorum(const Globals& globals) {
  return WithSession(globals, [&](AdminSession& session) -> int {
    const auto quorum = session.Call(&AdminClient::DescribeQuorum, v1::DescribeQuorumRequest());
    if (!quorum.ok()) return Report(quorum.status());
    if (globals.json()) {
      PrintQuorumJson(*quorum);
    } else {
      PrintQuorumTable(*quorum);
    }
    return kDone;
  });
}

}  // namespace

void AddQuorumCommands(CLI::App& app, const Globals& globals, Run& run) {
  CLI::App* quorum = app.add_subcommand("quorum", "The controllers' quorum");
  quorum->require_subcommand(1)->fallthrough();
  CLI::App* status = quorum->add_subcommand("status", "Who leads, and how far the others are");
  status->fallthrough();
  status->callback([&globals, &run] { run = [&globals] { return ShowQuorum(globals); }; });
}

}  // namespace conclave::tools
