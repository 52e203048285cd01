#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/fs/posix_file_system.h"
#include "common/random/entropy.h"
#include "tools/cli/cli.h"
#include "tools/cluster/local_cluster.h"
#include "tools/cluster/process.h"
#include "tools/cluster/readiness.h"

namespace conclave::tools {
namespace {

struct ClusterArguments {
  std::string dir = ".conclave";
  int controllers = 3;
  int brokers = 3;
  // Whether they were asked for.
  bool controllers_given = false;
  bool brokers_given = false;
  std::vector<std::string> names;
  bool all = false;
  std::string signal = "KILL";
};

// A broker that no controller lets go leaves after six seconds.
constexpr Duration kEndStartedTimeout = Duration::Seconds(10);

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

struct Opened {
  std::unique_ptr<FileLock> lock;
  LocalCluster cluster;
};

// A cluster that is there, for this command alone.
absl::StatusOr<Opened> OpenCluster(FileSystem& fs, const std::string& dir) {
  // The lock would make the directory.
  if (const auto there = LocalCluster::Load(fs, dir); !there.ok()) return there.status();
  auto lock = LocalCluster::Lock(fs, dir);
  if (!lock.ok()) return lock.status();
  auto cluster = LocalCluster::Load(fs, dir);
  if (!cluster.ok()) return cluster.status();
  return Opened{*std::move(lock), *std::move(cluster)};
}

// On stderr: whoever expects the usual ports would look for this cluster in vain.
void SayWhichPorts(const LocalCluster& cluster) {
  std::string others;
  for (const LocalNode& node : cluster.nodes()) {
    const std::string usual = absl::StrCat(":", LocalCluster::UsualPort(node));
    if (absl::EndsWith(node.endpoint, usual)) continue;
    absl::StrAppend(&others, others.empty() ? "" : ", ", node.name, " ", node.endpoint,
                    " instead of ", usual);
  }
  if (others.empty()) return;
  std::cerr << "conclave: others listen on usual ports, so free ones were chosen: " << others
            << std::endl;
}

// Signals all of them, and waits; returns one that has not ended in time, or null.
absl::StatusOr<const LocalNode*> EndNodes(const std::vector<const LocalNode*>& nodes,
                                          Duration timeout) {
  for (const int signal : {SIGTERM, SIGCONT}) {
    for (const LocalNode* node : nodes) {
      const absl::Status sent = SendSignal(node->process, signal);
      if (!sent.ok() && !absl::IsNotFound(sent)) return sent;
    }
  }
  for (const LocalNode* node : nodes) {
    if (!WaitUntilGone(node->process, timeout)) return node;
  }
  return nullptr;
}

// A start that failed leaves nothing running that it started.
void EndStarted(const std::vector<LocalNode*>& started) {
  const std::vector<const LocalNode*> nodes(started.begin(), started.end());
  const auto left = EndNodes(nodes, kEndStartedTimeout);
  if (left.ok() && *left == nullptr) return;
  for (const LocalNode* node : nodes) {
    // Nothing was acknowledged that a kill could lose.
    if (SendSignal(node->process, SIGKILL).ok()) WaitUntilGone(node->process, kEndStartedTimeout);
  }
}

// What is asked for a cluster that was made with other numbers.
absl::Status CheckNumbers(const LocalCluster& cluster, const ClusterArguments& arguments) {
  const auto check = [&](NodeRole role, const char* option, bool given, int wanted) {
    const auto there = std::count_if(cluster.nodes().begin(), cluster.nodes().end(),
                                     [&](const LocalNode& node) { return node.role == role; });
    if (!given || there == wanted) return absl::OkStatus();
    return MakeError(v1::INVALID_REQUEST,
                     absl::StrCat("the cluster in ", arguments.dir, " was made with ", option, " ",
                                  there, ", which stays; another --dir makes one with ", wanted));
  };
  const absl::Status controllers = check(NodeRole::kController, "--controllers",
                                         arguments.controllers_given, arguments.controllers);
  if (!controllers.ok()) return controllers;
  return check(NodeRole::kBroker, "--brokers", arguments.brokers_given, arguments.brokers);
}

int Start(const Globals& globals, const ClusterArguments& arguments) {
  PosixFileSystem fs;
  const auto programs = FindPrograms(fs);
  if (!programs.ok()) return Report(programs.status());
  const auto lock = LocalCluster::Lock(fs, arguments.dir);
  if (!lock.ok()) return Report(lock.status());
  auto cluster = LocalCluster::Load(fs, arguments.dir);
  const bool made = absl::IsNotFound(cluster.status());
  if (made) {
    Random random(EntropySeed());
    cluster =
        LocalCluster::Create(fs, arguments.dir, arguments.controllers, arguments.brokers, random);
  }
  if (!cluster.ok()) return Report(cluster.status());
  if (made) SayWhichPorts(*cluster);
  const absl::Status numbers = CheckNumbers(*cluster, arguments);
  if (!numbers.ok()) return Report(numbers);
  std::vector<LocalNode*> to_start;
  for (LocalNode& node : cluster->nodes()) {
    if (StateOf(node.process) == ProcessState::kGone) to_start.push_back(&node);
  }
  absl::Status status = LocalCluster::CheckPorts(to_start);
  if (!status.ok()) return Report(status);
  for (LocalNode* node : to_start) {
    if (status.ok()) status = cluster->Start(fs, *programs, *node);
  }
  if (status.ok()) {
    status = WaitUntilClusterIsReady(fs, *cluster, Duration::Seconds(globals.timeout_seconds));
    // Those that are slow may still become ready.
    if (ErrorCodeOf(status) == v1::REQUEST_TIMED_OUT) return Report(status);
  }
  if (!status.ok()) {
    EndStarted(to_start);
    return Report(status);
  }
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

// The nodes that --all or the names stand for, brokers first: they want a controller when they go.
absl::StatusOr<std::vector<LocalNode*>> Chosen(LocalCluster& cluster,
                                               const ClusterArguments& arguments) {
  std::vector<LocalNode*> nodes;
  if (arguments.all == !arguments.names.empty()) {
    return MakeError(v1::INVALID_REQUEST, "name nodes, or all of them with --all");
  }
  for (const std::string& name : arguments.names) {
    LocalNode* node = cluster.Find(name);
    if (node == nullptr) {
      std::string names;
      for (const LocalNode& known : cluster.nodes()) absl::StrAppend(&names, " ", known.name);
      return MakeError(v1::INVALID_REQUEST,
                       absl::StrCat("there is no node ", name, "; there are", names));
    }
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
  if (!arguments.all) return nodes;
  for (const NodeRole role : {NodeRole::kBroker, NodeRole::kController}) {
    for (LocalNode& node : cluster.nodes()) {
      if (node.role == role) nodes.push_back(&node);
    }
  }
  return nodes;
}

int Stop(const Globals& globals, const ClusterArguments& arguments) {
  PosixFileSystem fs;
  auto opened = OpenCluster(fs, arguments.dir);
  if (!opened.ok()) return Report(opened.status());
  const LocalCluster& cluster = opened->cluster;
  for (const NodeRole role : {NodeRole::kBroker, NodeRole::kController}) {
    std::vector<const LocalNode*> nodes;
    for (const LocalNode& node : cluster.nodes()) {
      if (node.role == role) nodes.push_back(&node);
    }
    const auto left = EndNodes(nodes, Duration::Seconds(globals.timeout_seconds));
    if (!left.ok()) return Report(left.status());
    if (*left == nullptr) continue;
    return Report(
        MakeError(v1::REQUEST_TIMED_OUT,
                  absl::StrCat((*left)->name, " (pid ", (*left)->process.pid,
                               ") has not stopped in ", globals.timeout_seconds,
                               " s; 'conclave cluster kill ", (*left)->name, "' ends it")));
  }
  Show(globals, cluster);
  return kDone;
}

int Kill(const Globals& globals, const ClusterArguments& arguments) {
  static const std::map<std::string, int> kSignals = {
      {"KILL", SIGKILL}, {"TERM", SIGTERM}, {"STOP", SIGSTOP}, {"CONT", SIGCONT}};
  PosixFileSystem fs;
  auto opened = OpenCluster(fs, arguments.dir);
  if (!opened.ok()) return Report(opened.status());
  LocalCluster& cluster = opened->cluster;
  const auto nodes = Chosen(cluster, arguments);
  if (!nodes.ok()) return Report(nodes.status());
  const int signal = kSignals.at(arguments.signal);
  size_t hit = 0;
  std::string missed;
  // All at once, as a power cut would: nobody is waited for before everybody has its signal.
  for (const LocalNode* node : *nodes) {
    const absl::Status sent = SendSignal(node->process, signal);
    if (absl::IsNotFound(sent)) {
      absl::StrAppend(&missed, missed.empty() ? "" : ", ", node->name);
      continue;
    }
    if (!sent.ok()) return Report(sent);
    ++hit;
  }
  if (arguments.all && hit == 0) {
    return Report(MakeError(v1::INVALID_REQUEST, "no node is running"));
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
  if (!arguments.all && !missed.empty()) {
    return Report(
        MakeError(v1::INVALID_REQUEST,
                  absl::StrCat(missed, hit + 1 == nodes->size() ? " is" : " are", " not running",
                               hit > 0 ? "; the others have the signal" : "")));
  }
  Show(globals, cluster);
  return kDone;
}

int Restart(const Globals& globals, const ClusterArguments& arguments) {
  PosixFileSystem fs;
  const auto programs = FindPrograms(fs);
  if (!programs.ok()) return Report(programs.status());
  auto opened = OpenCluster(fs, arguments.dir);
  if (!opened.ok()) return Report(opened.status());
  LocalCluster& cluster = opened->cluster;
  const auto nodes = Chosen(cluster, arguments);
  if (!nodes.ok()) return Report(nodes.status());
  std::vector<LocalNode*> stopped;
  for (LocalNode* node : *nodes) {
    if (StateOf(node->process) == ProcessState::kGone) {
      stopped.push_back(node);
    } else if (!arguments.all) {
      return Report(MakeError(v1::INVALID_REQUEST,
                              absl::StrCat(node->name, " is running (pid ", node->process.pid,
                                           "); 'conclave cluster kill ", node->name,
                                           " --signal TERM' stops it first")));
    }
  }
  absl::Status status = LocalCluster::CheckPorts(stopped);
  for (LocalNode* node : stopped) {
    if (status.ok()) status = cluster.Start(fs, *programs, *node);
  }
  if (status.ok()) {
    status =
        WaitUntilNodesTakePart(fs, cluster, stopped, Duration::Seconds(globals.timeout_seconds));
  }
  if (!status.ok()) return Report(status);
  Show(globals, cluster);
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
  CLI::Option* controllers =
      start->add_option("--controllers", arguments->controllers, "Of a new cluster")
          ->check(CLI::Range(1, 9))
          ->capture_default_str();
  CLI::Option* brokers = start->add_option("--brokers", arguments->brokers, "Of a new cluster")
                             ->check(CLI::Range(0, 99))
                             ->capture_default_str();
  start->callback([&globals, &run, arguments, controllers, brokers] {
    arguments->controllers_given = controllers->count() > 0;
    arguments->brokers_given = brokers->count() > 0;
    run = [&globals, arguments] { return Start(globals, *arguments); };
  });
  add("status", "Which nodes run", Status);
  add("stop", "Stop all nodes; their data stays", Stop);
  for (auto& [verb, help, command] :
       {std::tuple{"kill", "Send a signal to nodes", &Kill},
        std::tuple{"restart",
                   "Start nodes that are stopped, as they were, and wait until they "
                   "take part",
                   &Restart}}) {
    CLI::App* sub = add(verb, help, command);
    sub->add_option("name", arguments->names, "Nodes, such as broker-1");
    sub->add_flag("--all", arguments->all, "All nodes");
    if (command == &Kill) {
      sub->add_option("--signal", arguments->signal, "KILL, TERM, STOP or CONT")
          ->check(CLI::IsMember({"KILL", "TERM", "STOP", "CONT"}))
          ->capture_default_str();
    }
  }
}

}  // namespace conclave::tools
