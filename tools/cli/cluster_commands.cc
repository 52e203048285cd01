#include <signal.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/fs/posix_file_system.h"
#include "common/random/entropy.h"
#include "tools/cli/cli.h"
#include "tools/cluster/local_cluster.h"
#include "tools/cluster/readiness.h"

namespace conclave::tools {
namespace {

struct ClusterArguments {
  std::string dir = ".conclave";
  int controllers = 3;
  int brokers = 3;
  std::string name;
  bool all = false;
  std::string signal = "KILL";
};

const char* StateName(ProcessState state) {
  switch (state) {
    case ProcessState::kRunning:
      return "running";
    case ProcessState::kStopped:
      return "paused";
    case ProcessState::kGone:
      return "stopped";
  }
  return "unknown";
}

void Show(const Globals& globals, const LocalCluster& cluster) {
  Json nodes = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const LocalNode& node : cluster.nodes()) {
    const ProcessState state = StateOf(node.process);
    nodes.push_back({{"name", node.name},
                     {"role", RoleName(node.role)},
                     {"id", node.id},
                     {"pid", state == ProcessState::kGone ? Json(nullptr) : Json(node.process.pid)},
                     {"state", StateName(state)},
                     {"endpoint", node.endpoint},
                     {"data_dir", node.data_dir},
                     {"log_file", node.log_file}});
    rows.push_back({node.name, StateName(state),
                    state == ProcessState::kGone ? "-" : std::to_string(node.process.pid),
                    node.endpoint, node.log_file});
  }
  if (globals.json()) {
    PrintJson({{"bootstrap", cluster.Bootstrap()},
               {"cluster_id", cluster.cluster_id()},
               {"nodes", nodes}});
    return;
  }
  PrintTable({"NODE", "STATE", "PID", "ENDPOINT", "LOG"}, rows);
  std::cout << "\nexport CONCLAVE_BOOTSTRAP=" << cluster.Bootstrap() << std::endl;
}

int Start(const Globals& globals, const ClusterArguments& arguments) {
  PosixFileSystem fs;
  const auto programs = FindPrograms(fs);
  if (!programs.ok()) return Report(programs.status());
  const auto lock = LocalCluster::Lock(fs, arguments.dir);
  if (!lock.ok()) return Report(lock.status());
  auto cluster = LocalCluster::Load(fs, arguments.dir);
  if (absl::IsNotFound(cluster.status())) {
    Random random(EntropySeed());
    cluster =
        LocalCluster::Create(fs, arguments.dir, arguments.controllers, arguments.brokers, random);
  }
  if (!cluster.ok()) return Report(cluster.status());
  for (LocalNode& node : cluster->nodes()) {
    if (absl::Status started = cluster->Start(fs, *programs, node); !started.ok()) {
      return Report(started);
    }
  }
  const absl::Status ready =
      WaitUntilClusterIsReady(fs, *cluster, Duration::Seconds(globals.timeout_seconds));
  if (!ready.ok()) return Report(ready);
  Show(globals, *cluster);
  return kDone;
}

int Status(const Globals& globals, const ClusterArguments& arguments) {
  PosixFileSystem fs;
  const auto cluster = LocalCluster::Load(fs, arguments.dir);
  if (!cluster.ok()) return Report(cluster.status());
  Show(globals, *cluster);
  return kDone;
}

// The nodes that --all or NAME stands for, brokers first: they want a controller when they go.
absl::StatusOr<std::vector<LocalNode*>> Chosen(LocalCluster& cluster,
                                               const ClusterArguments& arguments) {
  std::vector<LocalNode*> nodes;
  if (arguments.all == !arguments.name.empty()) {
    return MakeError(v1::INVALID_REQUEST, "name one node, or all of them with --all");
  }
  if (!arguments.all) {
    LocalNode* node = cluster.Find(arguments.name);
    if (node == nullptr) {
      std::string names;
      for (const LocalNode& known : cluster.nodes()) absl::StrAppend(&names, " ", known.name);
      return MakeError(v1::INVALID_REQUEST,
                       absl::StrCat("there is no node ", arguments.name, "; there are", names));
    }
    nodes.push_back(node);
    return nodes;
  }
  for (const NodeRole role : {NodeRole::kBroker, NodeRole::kController}) {
    for (LocalNode& node : cluster.nodes()) {
      if (node.role == role) nodes.push_back(&node);
    }
  }
  return nodes;
}

int Stop(const Globals& globals, const ClusterArguments& arguments) {
  PosixFileSystem fs;
  const auto lock = LocalCluster::Lock(fs, arguments.dir);
  if (!lock.ok()) return Report(lock.status());
  auto cluster = LocalCluster::Load(fs, arguments.dir);
  if (!cluster.ok()) return Report(cluster.status());
  for (const NodeRole role : {NodeRole::kBroker, NodeRole::kController}) {
    for (const int signal : {SIGTERM, SIGCONT}) {
      for (const LocalNode& node : cluster->nodes()) {
        if (node.role != role || StateOf(node.process) == ProcessState::kGone) continue;
        absl::Status sent = SendSignal(node.process, signal);
        if (!sent.ok() && !absl::IsNotFound(sent)) return Report(sent);
      }
    }
    for (const LocalNode& node : cluster->nodes()) {
      if (node.role != role) continue;
      if (WaitUntilGone(node.process, Duration::Seconds(globals.timeout_seconds))) continue;
      return Report(MakeError(v1::REQUEST_TIMED_OUT,
                              absl::StrCat(node.name, " (pid ", node.process.pid,
                                           ") has not stopped in ", globals.timeout_seconds,
                                           " s; 'conclave cluster kill ", node.name, "' ends it")));
    }
  }
  Show(globals, *cluster);
  return kDone;
}

int Kill(const Globals& globals, const ClusterArguments& arguments) {
  static const std::map<std::string, int> kSignals = {
      {"KILL", SIGKILL}, {"TERM", SIGTERM}, {"STOP", SIGSTOP}, {"CONT", SIGCONT}};
  PosixFileSystem fs;
  const auto lock = LocalCluster::Lock(fs, arguments.dir);
  if (!lock.ok()) return Report(lock.status());
  auto cluster = LocalCluster::Load(fs, arguments.dir);
  if (!cluster.ok()) return Report(cluster.status());
  const auto nodes = Chosen(*cluster, arguments);
  if (!nodes.ok()) return Report(nodes.status());
  const int signal = kSignals.at(arguments.signal);
  int hit = 0;
  // All at once, as a power cut would: nobody is waited for before everybody has its signal.
  for (const LocalNode* node : *nodes) {
    const absl::Status sent = SendSignal(node->process, signal);
    if (absl::IsNotFound(sent)) continue;
    if (!sent.ok()) return Report(sent);
    ++hit;
  }
  if (hit == 0) {
    return Report(MakeError(v1::INVALID_REQUEST,
                            arguments.all ? std::string("no node is running")
                                          : absl::StrCat(arguments.name, " is not running")));
  }
  if (signal == SIGKILL || signal == SIGTERM) {
    for (const LocalNode* node : *nodes) {
      if (WaitUntilGone(node->process, Duration::Seconds(globals.timeout_seconds))) continue;
      return Report(
          MakeError(v1::REQUEST_TIMED_OUT,
                    absl::StrCat(node->name, " (pid ", node->process.pid,
                                 ") is still running after ", globals.timeout_seconds, " s")));
    }
  }
  Show(globals, *cluster);
  return kDone;
}

int Restart(const Globals& globals, const ClusterArguments& arguments) {
  PosixFileSystem fs;
  const auto programs = FindPrograms(fs);
  if (!programs.ok()) return Report(programs.status());
  const auto lock = LocalCluster::Lock(fs, arguments.dir);
  if (!lock.ok()) return Report(lock.status());
  auto cluster = LocalCluster::Load(fs, arguments.dir);
  if (!cluster.ok()) return Report(cluster.status());
  const auto nodes = Chosen(*cluster, arguments);
  if (!nodes.ok()) return Report(nodes.status());
  std::vector<LocalNode*> started;
  for (LocalNode* node : *nodes) {
    if (StateOf(node->process) != ProcessState::kGone) {
      if (arguments.all) continue;
      return Report(MakeError(v1::INVALID_REQUEST,
                              absl::StrCat(node->name, " is running (pid ", node->process.pid,
                                           "); 'conclave cluster kill ", node->name,
                                           " --signal TERM' stops it first")));
    }
    if (absl::Status s = cluster->Start(fs, *programs, *node); !s.ok()) return Report(s);
    started.push_back(node);
  }
  for (LocalNode* node : started) {
    const absl::Status answering =
        WaitUntilNodeAnswers(fs, *node, Duration::Seconds(globals.timeout_seconds));
    if (!answering.ok()) return Report(answering);
  }
  Show(globals, *cluster);
  return kDone;
}

}  // namespace

void AddClusterCommands(CLI::App& app, const Globals& globals, Run& run) {
  CLI::App* cluster =
      app.add_subcommand("cluster", "A whole cluster of real processes on this machine");
  cluster->require_subcommand(1)->fallthrough();
  auto arguments = std::make_shared<ClusterArguments>();
  const auto add = [&](const char* verb, const char* help,
                       int (*command)(const Globals&, const ClusterArguments&)) {
    CLI::App* sub = cluster->add_subcommand(verb, help);
    sub->fallthrough();
    sub->add_option("--dir", arguments->dir, "Where the cluster lives")->capture_default_str();
    sub->callback([&globals, &run, arguments, command] {
      run = [&globals, arguments, command] { return command(globals, *arguments); };
    });
    return sub;
  };
  CLI::App* start = add("start", "Make the cluster if there is none, start it, wait for it", Start);
  start->add_option("--controllers", arguments->controllers, "Of a new cluster")
      ->check(CLI::Range(1, 9))
      ->capture_default_str();
  start->add_option("--brokers", arguments->brokers, "Of a new cluster")
      ->check(CLI::Range(0, 99))
      ->capture_default_str();
  add("status", "Which nodes run", Status);
  add("stop", "Stop all nodes; their data stays", Stop);
  for (auto& [verb, help, command] :
       {std::tuple{"kill", "Send a signal to nodes", &Kill},
        std::tuple{"restart", "Start nodes that are stopped, as they were", &Restart}}) {
    CLI::App* sub = add(verb, help, command);
    sub->add_option("name", arguments->name, "A node, such as broker-1");
    sub->add_flag("--all", arguments->all, "All nodes");
    if (command == &Kill) {
      sub->add_option("--signal", arguments->signal, "KILL, TERM, STOP or CONT")
          ->check(CLI::IsMember({"KILL", "TERM", "STOP", "CONT"}))
          ->capture_default_str();
    }
  }
}

}  // namespace conclave::tools
