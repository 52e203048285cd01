#ifndef CONCLAVE_CONTROLLER_SERVER_CONTROLLER_NODE_H_
#define CONCLAVE_CONTROLLER_SERVER_CONTROLLER_NODE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/config/controller_config.h"
#include "common/executor/executor.h"
#include "common/identity/identity.h"
#include "common/random/random.h"
#include "common/rpc/server.h"
#include "common/transport/transport.h"
#include "conclave/v1/admin.pb.h"
#include "conclave/v1/controller.pb.h"
#include "controller/core/controller_core.h"
#include "controller/server/broker_sessions.h"
#include "controller/server/metadata_watches.h"
#include "controller/server/pending_replies.h"
#include "raft/node/raft_node.h"
#include "raft/transport/raft_transport.h"

namespace conclave::controller {

// One controller: the Raft node, the metadata state machine above it, and the services that
// brokers, other controllers and administrators talk to.
//
// Everything happens on `executor`, but for the writes on `storage_executor`. What is passed by
// reference outlives the node, which is destroyed only after both executors have stopped.
class ControllerNode : private raft::RaftListener {
 public:
  struct Environment {
    Transport& transport;
    Executor& executor;
    Executor& storage_executor;
    Random random;
    // The process has to end (see RaftListener::OnFatal). Called on the executor, once.
    std::function<void(const absl::Status&)> on_fatal;
  };

  // Requests that wait for their commit before new ones are refused with OVERLOADED.
  static constexpr size_t kMaxPendingRequests = 10'000;

  static absl::StatusOr<std::unique_ptr<ControllerNode>> Create(
      const ControllerConfig& config, const Identity& identity, raft::RecoveredState recovered,
      std::unique_ptr<raft::LogStorage> storage, Environment environment);
  ~ControllerNode() override;

  // The services, to be listened on; requests that come before Start are answered as by a
  // controller that knows no leader.
  void AddMethods(MethodTable& table);

  // Begins; `endpoint` is where other nodes reach this one. On the executor.
  void Start(const std::string& endpoint);

  // For health checks and tests; on the executor.
  bool KnowsLeader() const { return raft_->core().leader().has_value(); }
  bool IsActive() const { return core_.active(); }
  Term term() const { return raft_->core().term(); }
  const MetadataImage& committed() const { return core_.committed(); }

 private:
  ControllerNode(const ControllerConfig& config, const Identity& identity, Environment environment);

  // RaftListener
  void OnCommitted(const std::vector<raft::Entry>& entries) override;
  void OnLeadership(const raft::LeadershipChange& change) override;
  void OnServing(Term term) override;
  void OnRead(raft::ReadContext context, absl::StatusOr<LogIndex> index) override;
  void OnFatal(const absl::Status& why) override;

  // controller_services.cc
  void AddAdminMethods(MethodTable& table);
  void AddControllerMethods(MethodTable& table);
  v1::DescribeQuorumResponse DescribeQuorum() const;

  // Appends what a handler decided and answers once it is committed; what changes nothing, once it
  // is certain that this controller led when it was decided.
  template <class Response>
  void Answer(absl::StatusOr<Change<Response>> change, Responder<Response> respond);
  // Calls `handle` unless this controller is not active or has too much under way.
  template <class Request, class Response>
  void AddChangeMethod(MethodTable& table, const Method<Request, Response>& method,
                       std::function<absl::StatusOr<Change<Response>>(const Request&, Now)> handle);
  // Answers from committed state, once it is certain that no newer leader has changed it since the
  // request came.
  template <class Request, class Response>
  void AddReadMethod(MethodTable& table, const Method<Request, Response>& method,
                     std::function<Response(const Request&)> read);

  // Once a majority has confirmed that this controller leads, after the call, and what was
  // committed by then is applied (ReadIndex, Raft dissertation section 6.4).
  void ReleaseOnceConfirmed(PendingReplies::Release release);
  // False if Raft refused: this controller is then not active any more.
  bool Append(const Batches& batches);
  // Position of the newest entry that a reply may have been made from.
  MetadataPosition Newest() const;
  void Deactivate();
  absl::Status NotController() const;
  // Adds the leader's address to NOT_CONTROLLER.
  absl::Status WithLeader(const absl::Status& status) const;
  std::optional<std::vector<v1::CommittedBatch>> BatchesSince(MetadataPosition position) const;

  controller::Now Now() const;
  void ArmCoreTimer();
  void OnWatchTimer();
  void Fail(const absl::Status& why);

  const ControllerConfig config_;
  const Identity identity_;
  Environment environment_;
  Executor& executor_;
  raft::RaftTransport raft_transport_;
  std::unique_ptr<raft::RaftNode> raft_;
  ControllerCore core_;
  PendingReplies pending_;
  MetadataWatches watches_;
  BrokerSessions sessions_;
  LogIndex applied_index_;
  // Reads not yet confirmed, and those that wait for entries to be applied.
  std::map<raft::ReadContext, PendingReplies::Release> reads_;
  std::multimap<LogIndex, PendingReplies::Release> reads_to_apply_;
  uint64_t last_read_ = 0;
  std::optional<TimerId> core_timer_;
  // Since when no leader is known.
  std::optional<MonotonicTime> leaderless_since_;
  bool failed_ = false;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_SERVER_CONTROLLER_NODE_H_
