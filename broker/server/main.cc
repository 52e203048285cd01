// conclave-broker: keeps partitions, and serves clients.
#include <glog/logging.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "broker/partition/sync_pool.h"
#include "broker/server/broker_node.h"
#include "common/clock/system_clock.h"
#include "common/config/broker_config.h"
#include "common/error/error.h"
#include "common/executor/thread_executor.h"
#include "common/fs/posix_file_system.h"
#include "common/identity/identity.h"
#include "common/process/process.h"
#include "common/process/server_main.h"
#include "common/random/entropy.h"
#include "common/transport/grpc_transport.h"
#include "common/transport/host_port.h"

namespace conclave::broker {
namespace {

// As long as a session: the controller fences a broker that is gone for longer by itself.
constexpr Duration kShutdownTimeout = Duration::Seconds(6);

// Asks to be let go, and waits for that, or for the end of the time.
void Leave(BrokerNode& node, Executor& executor) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> gone = done->get_future();
  executor.Post([&node, done] { node.Shutdown([done] { done->set_value(); }); });
  if (gone.wait_for(std::chrono::nanoseconds(kShutdownTimeout.nanoseconds())) !=
      std::future_status::ready) {
    LOG(WARNING) << "the controller has not let this broker go in time; going all the same";
  }
}

// Without it the next start recovers, as after a crash.
void CloseLogs(BrokerNode& node) {
  auto closed = std::make_shared<std::promise<absl::Status>>();
  std::future<absl::Status> outcome = closed->get_future();
  node.Close([closed](const absl::Status& status) { closed->set_value(status); });
  if (const absl::Status status = outcome.get(); !status.ok()) {
    LOG(WARNING) << "not a clean stop: " << Describe(status);
  }
}

absl::Status Run(const Settings& settings, const TerminationSignals& signals) {
  auto config = MakeBrokerConfig(settings);
  if (!config.ok()) return config.status();
  PosixFileSystem fs;
  auto identity = OpenIdentity(fs, config->data_dir, NodeRole::kBroker, config->broker_id.value());
  if (!identity.ok()) return identity.status();
  auto lock = LockDirectory(fs, config->data_dir);
  if (!lock.ok()) return lock.status();

  const SystemClock clock;
  ThreadExecutor executor(clock, {.name = "broker", .takes_lent_threads = true});
  ThreadExecutor partitions(clock, {.name = "partitions", .takes_lent_threads = true});
  ThreadExecutor background(clock, {.name = "background"});
  // Ends before them: its calls end on them.
  GrpcTransport transport;
  SyncPool syncs(config->sync_threads);
  Server* health = nullptr;
  auto created =
      BrokerNode::Create(*config, *identity,
                         {.transport = transport,
                          .executor = executor,
                          .partitions = partitions,
                          .background = background,
                          .fs = fs,
                          .syncs = syncs,
                          .random = Random(EntropySeed()),
                          .on_fatal = [](const absl::Status& why) { EndProcess(why); },
                          .on_serving = [&health](bool serving) { health->SetServing(serving); }});
  if (!created.ok()) return created.status();
  BrokerNode& node = **created;
  MethodTable methods;
  node.AddMethods(methods);
  auto server = transport.Listen(ToString(config->listener), methods.Take());
  if (!server.ok()) {
    node.Abandon();
    return server.status();
  }
  health = server->get();
  health->SetServing(false);
  const std::string endpoint = AdvertisedEndpoint(config->advertised_listener, **server);
  executor.Post([&node, endpoint] { node.Start(endpoint); });
  LOG(INFO) << "broker " << config->broker_id << " of cluster " << identity->cluster_id
            << ", directory " << identity->directory_id;
  AnnounceAndWait(**server, signals);
  Leave(node, executor);
  CloseLogs(node);
  executor.Stop();
  partitions.Stop();
  background.Stop();
  server->reset();
  return absl::OkStatus();
}

}  // namespace
}  // namespace conclave::broker

int main(int argc, char** argv) {
  return conclave::ServerMain(
      argc, argv,
      {.name = "conclave-broker",
       .description =
           "conclave-broker: keeps a Conclave cluster's partitions and serves its clients.\n"
           "Its data directory is formatted once with 'conclave storage format --role broker'.",
       .example = {{"broker.id", "1"},
                   {"data.dir", "/var/lib/conclave/broker"},
                   {"controllers", "c1:7300,c2:7300,c3:7300"}},
       .schema = conclave::BrokerSettings(),
       .run = conclave::broker::Run});
}
