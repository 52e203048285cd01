#ifndef CONCLAVE_TOOLS_CLUSTER_LOCAL_CLUSTER_H_
#define CONCLAVE_TOOLS_CLUSTER_LOCAL_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_system.h"
#include "common/identity/identity.h"
#include "common/random/random.h"
#include "tools/cluster/process.h"

namespace conclave::tools {

// Where the programs are.
struct ProgramPaths {
  std::string controller;
  std::string broker;
};

// Beside the running program, as Bazel and an installation lay them out. The error names the places
// that were looked at.
absl::StatusOr<ProgramPaths> FindPrograms(FileSystem& fs);

struct LocalNode {
  // "controller-1", "broker-2"
  std::string name;
  NodeRole role = NodeRole::kBroker;
  int32_t id = 0;
  // host:port
  std::string endpoint;
  std::string data_dir;
  std::string config_file;
  std::string log_file;
  // The newest process; may be gone.
  ProcessId process;
};

// A cluster of real processes on this machine, laid out in one directory: `cluster.json` tells what
// there is, each node has a folder with its configuration, data and log. For trying things, and for
// tests; nothing in it is of another kind than in a real deployment.
class LocalCluster {
 public:
  // Takes the directory, which is made if need be, for this command: two at a time would start
  // nodes twice.
  static absl::StatusOr<std::unique_ptr<FileLock>> Lock(FileSystem& fs, const std::string& dir);

  // Lays out and formats a new cluster. Ports are the usual ones where they are free, else chosen.
  // Refused if there is one in `dir` already.
  static absl::StatusOr<LocalCluster> Create(FileSystem& fs, const std::string& dir,
                                             int controllers, int brokers, Random& random);
  // NotFound if there is none.
  static absl::StatusOr<LocalCluster> Load(FileSystem& fs, const std::string& dir);

  const std::string& dir() const { return dir_; }
  const std::string& cluster_id() const { return cluster_id_; }
  std::vector<LocalNode>& nodes() { return nodes_; }
  const std::vector<LocalNode>& nodes() const { return nodes_; }
  LocalNode* Find(const std::string& name);
  // Endpoints of the nodes of a role, in order of id.
  std::vector<std::string> Endpoints(NodeRole role) const;
  // Those whose process runs; a paused one is not among them.
  std::vector<const LocalNode*> Running() const;
  // "host:port,host:port" of the brokers, or of the controllers where there are no brokers.
  std::string Bootstrap() const;

  // The port that a new cluster gives the node where nobody has it.
  static int UsualPort(const LocalNode& node);
  // INVALID_REQUEST if another process listens where a node of these that does not run would.
  static absl::Status CheckPorts(const std::vector<LocalNode*>& nodes);

  // Starts the node's program unless it runs, and notes its process in cluster.json.
  absl::Status Start(FileSystem& fs, const ProgramPaths& programs, LocalNode& node);

  // The last lines of the node's log, and the last that says why it ended; for an error message.
  static std::string LogTail(FileSystem& fs, const LocalNode& node);
  static std::string LastWords(FileSystem& fs, const LocalNode& node);

 private:
  absl::Status Save(FileSystem& fs) const;

  std::string dir_;
  std::string cluster_id_;
  std::vector<LocalNode> nodes_;
};

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLUSTER_LOCAL_CLUSTER_H_
