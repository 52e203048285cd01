#include "tools/cluster/local_cluster.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/system_clock.h"
#include "common/error/error.h"
#include "common/types/time.h"
#include "tools/cluster/free_port.h"
#include "tools/storage/format.h"

namespace conclave::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kStateFileName[] = "cluster.json";
constexpr int kStateVersion = 1;
constexpr char kHost[] = "127.0.0.1";
constexpr int kFirstControllerPort = 7301;
constexpr int kFirstBrokerPort = 7401;
// What a process that was just killed had open takes the kernel a moment to let go of.
constexpr Duration kPortPatience = Duration::Seconds(2);
constexpr int kPortPollMs = 20;

std::string StatePath(const std::string& dir) { return JoinPath(dir, kStateFileName); }

std::string AbsolutePath(const std::string& path) {
  if (!path.empty() && path[0] == '/') return path;
  char here[PATH_MAX];
  if (getcwd(here, sizeof here) == nullptr) return path;
  return JoinPath(here, path);
}

Json ToJson(const LocalNode& node) {
  return {{"name", node.name},
          {"role", RoleName(node.role)},
          {"id", node.id},
          {"endpoint", node.endpoint},
          {"data_dir", node.data_dir},
          {"config_file", node.config_file},
          {"log_file", node.log_file},
          {"pid", node.process.pid},
          {"start_time", node.process.start_time}};
}

LocalNode NodeFromJson(const Json& json) {
  LocalNode node;
  node.name = json.at("name");
  node.role = json.at("role") == "controller" ? NodeRole::kController : NodeRole::kBroker;
  node.id = json.at("id");
  node.endpoint = json.at("endpoint");
  node.data_dir = json.at("data_dir");
  node.config_file = json.at("config_file");
  node.log_file = json.at("log_file");
  node.process.pid = json.at("pid");
  node.process.start_time = json.at("start_time");
  return node;
}

// Without its endpoint.
LocalNode NewNode(const std::string& dir, NodeRole role, int32_t id) {
  LocalNode node;
  node.name = absl::StrCat(RoleName(role), "-", id);
  node.role = role;
  node.id = id;
  const std::string folder = JoinPath(dir, node.name);
  node.data_dir = JoinPath(folder, "data");
  node.config_file = JoinPath(folder, "conclave.toml");
  node.log_file = JoinPath(folder, "log");
  return node;
}

std::string Quoted(const std::string& text) { return Json(text).dump(); }

std::string ConfigText(const LocalNode& node, const std::vector<std::string>& controllers) {
  std::string text = absl::StrCat(
      "# Made by 'conclave cluster start'.\n",
      node.role == NodeRole::kController ? "node.id = " : "broker.id = ", node.id,
      "\nlistener = ", Quoted(node.endpoint), "\ndata.dir = ", Quoted(node.data_dir), "\n");
  if (node.role == NodeRole::kBroker) {
    absl::StrAppend(&text, "controllers = ", Json(controllers).dump(), "\n");
  }
  return text;
}

std::string ProgramDirectory() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return ".";
  return ParentPath(std::string(path, static_cast<size_t>(length)));
}

absl::StatusOr<std::string> FindProgram(FileSystem& fs, const std::string& name,
                                        const std::string& package) {
  const std::string here = ProgramDirectory();
  const std::vector<std::string> places = {JoinPath(here, name),
                                           JoinPath(JoinPath(ParentPath(here), package), name)};
  for (const std::string& place : places) {
    const auto exists = fs.Exists(place);
    if (exists.ok() && *exists) return place;
  }
  return MakeError(v1::INVALID_REQUEST,
                   absl::StrCat("cannot find the program ", name, " at ", places[0], " or ",
                                places[1], "; build everything with 'bazel build //...'"));
}

std::string VotersText(const std::vector<LocalNode>& nodes, Random& random) {
  std::string text;
  for (const LocalNode& node : nodes) {
    if (node.role != NodeRole::kController) continue;
    const uint64_t high = random.Next();
    absl::StrAppend(&text, text.empty() ? "" : ",", node.id, "@", node.endpoint, "#",
                    DirectoryId::FromRandom(high, random.Next()).ToString());
  }
  return text;
}

absl::Status FormatNode(FileSystem& fs, const LocalNode& node, ClusterId cluster_id,
                        const std::string& voters, const std::vector<std::string>& controllers,
                        Random& random) {
  FormatRequest request;
  request.directory = node.data_dir;
  request.role = node.role;
  request.node_id = node.id;
  request.cluster_id = cluster_id;
  if (node.role == NodeRole::kController) request.initial_voters = voters;
  const auto identity = FormatStorage(fs, request, random);
  if (!identity.ok()) return identity.status();
  return WriteFileAtomically(fs, node.config_file, ConfigText(node, controllers));
}

}  // namespace

absl::StatusOr<ProgramPaths> FindPrograms(FileSystem& fs) {
  const auto controller = FindProgram(fs, "conclave-controller", "controller");
  if (!controller.ok()) return controller.status();
  const auto broker = FindProgram(fs, "conclave-broker", "broker");
  if (!broker.ok()) return broker.status();
  return ProgramPaths{*controller, *broker};
}

absl::StatusOr<std::unique_ptr<FileLock>> LocalCluster::Lock(FileSystem& fs,
                                                             const std::string& dir) {
  if (absl::Status made = CreateDirectories(fs, AbsolutePath(dir)); !made.ok()) return made;
  return fs.Lock(JoinPath(AbsolutePath(dir), ".lock"));
}

absl::StatusOr<LocalCluster> LocalCluster::Create(FileSystem& fs, const std::string& dir,
                                                  int controllers, int brokers, Random& random) {
  LocalCluster cluster;
  cluster.dir_ = AbsolutePath(dir);
  const auto exists = fs.Exists(StatePath(cluster.dir_));
  if (!exists.ok()) return exists.status();
  if (*exists) {
    return MakeError(v1::INVALID_REQUEST, absl::StrCat("there is a cluster in ", dir, " already"));
  }
  const uint64_t high = random.Next();
  const ClusterId cluster_id = ClusterId::FromRandom(high, random.Next());
  cluster.cluster_id_ = cluster_id.ToString();
  PortChooser ports;
  for (int i = 1; i <= controllers + brokers; ++i) {
    const bool controller = i <= controllers;
    LocalNode node = NewNode(cluster.dir_, controller ? NodeRole::kController : NodeRole::kBroker,
                             controller ? i : i - controllers);
    const auto port = ports.Choose(UsualPort(node));
    if (!port.ok()) return port.status();
    node.endpoint = absl::StrCat(kHost, ":", *port);
    cluster.nodes_.push_back(std::move(node));
  }
  const std::string voters = VotersText(cluster.nodes_, random);
  const std::vector<std::string> endpoints = cluster.Endpoints(NodeRole::kController);
  for (const LocalNode& node : cluster.nodes_) {
    if (absl::Status formatted = FormatNode(fs, node, cluster_id, voters, endpoints, random);
        !formatted.ok()) {
      return formatted;
    }
  }
  if (absl::Status saved = cluster.Save(fs); !saved.ok()) return saved;
  return cluster;
}

absl::StatusOr<LocalCluster> LocalCluster::Load(FileSystem& fs, const std::string& dir) {
  LocalCluster cluster;
  cluster.dir_ = AbsolutePath(dir);
  const std::string path = StatePath(cluster.dir_);
  const auto text = ReadWholeFile(fs, path, 1 << 20);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat("there is no local cluster in ", dir,
                                            "; 'conclave cluster start --dir ", dir,
                                            "' makes one"));
  }
  if (!text.ok()) return text.status();
  try {
    const Json json = Json::parse(*text);
    if (json.at("version") != kStateVersion) {
      return MakeError(v1::UNSUPPORTED_VERSION,
                       absl::StrCat(path, " was written by another version of conclave"));
    }
    cluster.cluster_id_ = json.at("cluster_id");
    for (const Json& node : json.at("nodes")) cluster.nodes_.push_back(NodeFromJson(node));
  } catch (const Json::exception& error) {
    return MakeError(v1::STORAGE_ERROR, absl::StrCat(path, " is damaged: ", error.what()));
  }
  return cluster;
}

LocalNode* LocalCluster::Find(const std::string& name) {
  const auto it = std::find_if(nodes_.begin(), nodes_.end(),
                               [&](const LocalNode& node) { return node.name == name; });
  return it == nodes_.end() ? nullptr : &*it;
}

std::vector<std::string> LocalCluster::Endpoints(NodeRole role) const {
  std::vector<std::string> endpoints;
  for (const LocalNode& node : nodes_) {
    if (node.role == role) endpoints.push_back(node.endpoint);
  }
  return endpoints;
}

std::vector<const LocalNode*> LocalCluster::Running() const {
  std::vector<const LocalNode*> running;
  for (const LocalNode& node : nodes_) {
    if (StateOf(node.process) == ProcessState::kRunning) running.push_back(&node);
  }
  return running;
}

int LocalCluster::UsualPort(const LocalNode& node) {
  const int first = node.role == NodeRole::kController ? kFirstControllerPort : kFirstBrokerPort;
  return first + node.id - 1;
}

absl::Status LocalCluster::CheckPorts(const std::vector<LocalNode*>& nodes) {
  const SystemClock clock;
  const MonotonicTime deadline = clock.Now() + kPortPatience;
  for (const LocalNode* node : nodes) {
    if (StateOf(node->process) != ProcessState::kGone) continue;
    const int port = std::atoi(node->endpoint.substr(node->endpoint.rfind(':') + 1).c_str());
    while (!PortIsFree(port)) {
      if (clock.Now() < deadline) {
        poll(nullptr, 0, kPortPollMs);
        continue;
      }
      return MakeError(
          v1::INVALID_REQUEST,
          absl::StrCat("another program listens on ", node->endpoint, ", the address of ",
                       node->name,
                       ", which it keeps for as long as its cluster lives; stop that "
                       "program ('ss -ltnp' names it), or make another cluster, whose ports are "
                       "chosen anew, with --dir"));
    }
  }
  return absl::OkStatus();
}

std::string LocalCluster::Bootstrap() const {
  std::string text;
  std::vector<std::string> endpoints = Endpoints(NodeRole::kBroker);
  if (endpoints.empty()) endpoints = Endpoints(NodeRole::kController);
  for (const std::string& endpoint : endpoints) {
    absl::StrAppend(&text, text.empty() ? "" : ",", endpoint);
  }
  return text;
}

absl::Status LocalCluster::Start(FileSystem& fs, const ProgramPaths& programs, LocalNode& node) {
  if (StateOf(node.process) != ProcessState::kGone) return absl::OkStatus();
  const bool controller = node.role == NodeRole::kController;
  const auto process = StartDetached(
      {controller ? programs.controller : programs.broker, "--config", node.config_file},
      node.log_file);
  if (!process.ok()) return process.status();
  node.process = *process;
  return Save(fs);
}

std::string LocalCluster::LogTail(FileSystem& fs, const LocalNode& node) {
  constexpr uint64_t kBytes = 1500;
  const auto file = fs.Open(node.log_file, FileSystem::OpenMode::kReadOnly);
  if (!file.ok()) return "";
  const uint64_t size = (*file)->size();
  const auto tail = (*file)->ReadAt(size > kBytes ? size - kBytes : 0, kBytes);
  return tail.ok() ? *tail : "";
}

std::string LocalCluster::LastWords(FileSystem& fs, const LocalNode& node) {
  std::string last;
  std::istringstream lines(LogTail(fs, node));
  for (std::string line; std::getline(lines, line);) {
    // Those of a stack trace do not say why.
    if (!line.empty() && line[0] != ' ' && line.rfind("***", 0) != 0) last = line;
  }
  return last;
}

absl::Status LocalCluster::Save(FileSystem& fs) const {
  Json json = {{"version", kStateVersion}, {"cluster_id", cluster_id_}, {"nodes", Json::array()}};
  for (const LocalNode& node : nodes_) json["nodes"].push_back(ToJson(node));
  return WriteFileAtomically(fs, StatePath(dir_), json.dump(2) + "\n");
}

}  // namespace conclave::tools
