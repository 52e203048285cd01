// conclave-controller: one member of the quorum that keeps the cluster's metadata.
#include <glog/logging.h>

#include <memory>
#include <string>
#include <utility>

#include "common/clock/system_clock.h"
#include "common/config/controller_config.h"
#include "common/error/error.h"
#include "common/executor/thread_executor.h"
#include "common/fs/posix_file_system.h"
#include "common/identity/identity.h"
#include "common/process/process.h"
#include "common/process/server_main.h"
#include "common/random/entropy.h"
#include "common/transport/grpc_transport.h"
#include "controller/server/controller_node.h"
#include "raft/storage/rocksdb_log_storage.h"

namespace conclave::controller {
namespace {

struct Opened {
  std::unique_ptr<FileLock> lock;
  Identity identity;
  std::unique_ptr<raft::RocksDbLogStorage> log;
  raft::RecoveredState state;
};

absl::StatusOr<Opened> OpenData(FileSystem& fs, const ControllerConfig& config) {
  Opened opened;
  auto identity = OpenIdentity(fs, config.data_dir, NodeRole::kController, config.node_id.value());
  if (!identity.ok()) return identity.status();
  opened.identity = *identity;
  auto lock = LockDirectory(fs, config.data_dir);
  if (!lock.ok()) return lock.status();
  opened.lock = *std::move(lock);
  auto log = raft::RocksDbLogStorage::Open(JoinPath(config.data_dir, "raft"));
  if (!log.ok()) return log.status();
  opened.log = *std::move(log);
  auto state = opened.log->Load();
  if (!state.ok()) return state.status();
  opened.state = *std::move(state);
  return opened;
}

absl::Status Run(const Settings& settings, const TerminationSignals& signals) {
  auto config = MakeControllerConfig(settings);
  if (!config.ok()) return config.status();
  PosixFileSystem fs;
  auto opened = OpenData(fs, *config);
  if (!opened.ok()) return opened.status();

  const SystemClock clock;
  ThreadExecutor executor(clock, {.name = "controller", .takes_lent_threads = true});
  ThreadExecutor storage_executor(clock, {.name = "raft-storage"});
  // Ends before them: its calls end on them.
  GrpcTransport transport;
  // A node that cannot go on must acknowledge nothing more: nothing is waited for or tidied up.
  auto node = ControllerNode::Create(
      *config, opened->identity, std::move(opened->state), std::move(opened->log),
      {.transport = transport,
       .executor = executor,
       .storage_executor = storage_executor,
       .random = Random(EntropySeed()),
       .on_fatal = [](const absl::Status& why) { EndProcess(why); }});
  if (!node.ok()) return node.status();

  MethodTable methods;
  (*node)->AddMethods(methods);
  auto server = transport.Listen(ToString(config->listener), methods.Take());
  if (!server.ok()) return server.status();
  (*server)->SetServing(true);
  const std::string endpoint = AdvertisedEndpoint(config->advertised_listener, **server);
  executor.Post([&node, endpoint] { (*node)->Start(endpoint); });
  LOG(INFO) << "controller " << config->node_id << " of cluster " << opened->identity.cluster_id
            << ", directory " << opened->identity.directory_id;
  AnnounceAndWait(**server, signals);
  executor.Stop();
  storage_executor.Stop();
  server->reset();
  return absl::OkStatus();
}

}  // namespace
}  // namespace conclave::controller

int main(int argc, char** argv) {
  return conclave::ServerMain(
      argc, argv,
      {.name = "conclave-controller",
       .description =
           "conclave-controller: one member of the quorum that keeps a Conclave cluster's "
           "metadata.\n"
           "Its data directory is formatted once with 'conclave storage format --role controller'.",
       .example = {{"node.id", "1"}, {"data.dir", "/var/lib/conclave/controller"}},
       .schema = conclave::ControllerSettings(),
       .run = conclave::controller::Run});
}
