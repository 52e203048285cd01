#ifndef CONCLAVE_BROKER_SERVER_BROKER_NODE_H_
#define CONCLAVE_BROKER_SERVER_BROKER_NODE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/partition/data_directory.h"
#include "broker/partition/replica_set.h"
#include "broker/partition/sync_runner.h"
#include "broker/server/controller_session.h"
#include "broker/server/delete_records_service.h"
#include "broker/server/fetch_service.h"
#include "broker/server/group_service.h"
#include "broker/server/metadata_follower.h"
#include "broker/server/produce_service.h"
#include "broker/server/producer_ids.h"
#include "common/config/broker_config.h"
#include "common/executor/executor.h"
#include "common/fs/file_system.h"
#include "common/identity/identity.h"
#include "common/random/random.h"
#include "common/rpc/failover_caller.h"
#include "common/rpc/server.h"
#include "common/transport/transport.h"

namespace conclave::broker {

// One broker: its session with the controllers, the metadata it follows, its partitions, and the
// services that clients and administrators talk to.
//
// Two executors share the work, so that a session lives on while a log is slow: `executor` has the
// controllers, the metadata and administration, `partitions` the logs and whoever reads and writes
// them. What is passed by reference outlives the node, which is destroyed only after all executors
// have stopped.
class BrokerNode {
 public:
  struct Environment {
    Transport& transport;
    Executor& executor;
    Executor& partitions;
    // For what blocks for long and concerns no single log.
    Executor& background;
    FileSystem& fs;
    SyncRunner& syncs;
    Random random;
    // The process has to end. Called on `executor`, at most once.
    std::function<void(const absl::Status&)> on_fatal;
    // Whether the broker takes part: registered and not fenced. Called on `executor`.
    std::function<void(bool)> on_serving;
  };

  // Looks into the data directory, whose identity was checked and which is locked. STORAGE_ERROR
  // names what is in the way.
  static absl::StatusOr<std::unique_ptr<BrokerNode>> Create(const BrokerConfig& config,
                                                            const Identity& identity,
                                                            Environment environment);
  ~BrokerNode();

  void AddMethods(MethodTable& table);

  // Instead of Start, for a process that ends before it began: a clean stop stays one.
  void Abandon();

  // Begins; `endpoint` is where clients reach this broker. On `executor`.
  void Start(const std::string& endpoint);

  // Asks the controller to move away what this broker leads; `done` is called, once, when it may
  // go. On `executor`.
  void Shutdown(std::function<void()> done);

  // Closes the logs, for a clean stop. From any thread; `done` is called on `partitions`.
  void Close(std::function<void(const absl::Status&)> done);

  const MetadataImage& image() const { return metadata_.image(); }
  // On `partitions`.
  ReplicaSet& replicas() { return replicas_; }

 private:
  BrokerNode(const BrokerConfig& config, const Identity& identity, Environment environment,
             std::unique_ptr<DataDirectory> directory);

  void AddAdminMethods(MethodTable& table);
  template <class Request, class Response>
  void Forward(MethodTable& table, const Method<Request, Response>& method, Repeatable repeatable);

  ControllerSession::Options SessionOptions(const std::string& endpoint);
  ReplicaSet::Options ReplicaOptions() const;
  ReplicaSet::Environment ReplicaEnvironment();
  void OnReply(const v1::BrokerHeartbeatReply& reply);
  void OnMetadata(const v1::WatchMetadataResponse& update);
  void TakePartOnceCaughtUp();
  void Fail(const absl::Status& why);

  const BrokerConfig config_;
  const Identity identity_;
  Environment environment_;
  Executor& executor_;
  FailoverCaller controllers_;
  MetadataFollower metadata_;
  const std::optional<BrokerEpoch> clean_stop_;
  ReplicaSet replicas_;
  ProducerIds producer_ids_;
  ProduceService produce_;
  FetchService fetch_;
  DeleteRecordsService delete_records_;
  GroupService groups_;
  std::unique_ptr<ControllerSession> session_;
  // The image includes the registration.
  bool caught_up_ = false;
  bool serving_ = false;
  bool failed_ = false;
  std::string fenced_reason_;
  std::function<void()> shutdown_done_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_BROKER_NODE_H_
