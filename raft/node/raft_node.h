#ifndef CONCLAVE_RAFT_NODE_RAFT_NODE_H_
#define CONCLAVE_RAFT_NODE_RAFT_NODE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "raft/core/raft_core.h"
#include "raft/node/message_port.h"
#include "raft/storage/log_storage.h"

namespace conclave::raft {

// What a node tells the state machine above it. All calls come on the node's executor; calls back
// into the node are welcome.
class RaftListener {
 public:
  virtual ~RaftListener() = default;

  // In order of index, each entry once in the node's life.
  virtual void OnCommitted(const std::vector<Entry>& entries) = 0;

  // The role, term or leader has changed. For a leader OnServing follows, unless it loses its
  // leadership first. A loss is told before any entry that another leader put in place of its own
  // is given to OnCommitted.
  virtual void OnLeadership(const LeadershipChange& change) = 0;

  // The node leads `term`, and everything committed before, with an entry of the term itself, has
  // been given to OnCommitted: requests may be served.
  virtual void OnServing(Term term) = 0;

  // The answer to ReadIndex: the index to have applied, or why it cannot be known.
  virtual void OnRead(ReadContext context, absl::StatusOr<LogIndex> index) = 0;

  // The process has to end: what it would acknowledge from now on would not be true. The node has
  // stopped.
  virtual void OnFatal(const absl::Status& why) = 0;
};

// Drives a RaftCore: storage, messages and timers go in and out of it. Everything but the
// constructor and destructor happens on `executor`; writes block `storage_executor` alone, so that
// heartbeats go on while a sync takes long. While one write is under way the next ones gather, and
// then share one sync.
//
// All that is passed by reference outlives the node, which is destroyed only after both executors
// have stopped.
class RaftNode {
 public:
  struct Options {
    Config config;
    // host:port of nodes as the configuration names them; they win over those that the voter set
    // names.
    std::map<NodeId, std::string> endpoints;
  };

  // The errors of RaftCore::Create.
  static absl::StatusOr<std::unique_ptr<RaftNode>> Create(Options options, RecoveredState recovered,
                                                          std::unique_ptr<LogStorage> storage,
                                                          MessagePort& port, Executor& executor,
                                                          Executor& storage_executor, Random random,
                                                          RaftListener& listener);

  // Begins: from now on there are timers and messages. `endpoint` is where other controllers reach
  // this one, which is known for certain only once its port is bound.
  void Start(std::string endpoint);

  void Receive(const v1::RaftMessage& message);
  // The stream that brought messages from `peer` broke.
  void PeerStreamReset(const ReplicaKey& peer);

  // See RaftCore.
  absl::StatusOr<LogPosition> Propose(std::string data);
  absl::Status ReadIndex(ReadContext context);
  const RaftCore& core() const { return *core_; }

  // host:port of a node, empty if unknown.
  std::string EndpointOf(NodeId node) const;

 private:
  RaftNode(std::map<NodeId, std::string> endpoints, std::unique_ptr<RaftCore> core,
           std::unique_ptr<LogStorage> storage, MessagePort& port, Executor& executor,
           Executor& storage_executor, RaftListener& listener);

  MonotonicTime Now() const { return executor_.clock().Now(); }
  // Does what the core asks for, until it asks for nothing more.
  void Process();
  // The same after the running task: what is asked for until then shares writes and messages, and
  // no listener is called from within Propose and ReadIndex.
  void ProcessSoon();
  void Handle(Ready ready);
  void SendNow(const v1::RaftMessage& message);
  void LogRejections(const std::vector<Rejection>& rejections);
  void StartWrites();
  void WritesDone(WriteTicket last, const absl::Status& status);
  void MaybeAnnounceServing();
  void ArmTimer();
  void OnTimer();
  void Fail(const absl::Status& why);

  const std::map<NodeId, std::string> configured_endpoints_;
  const std::unique_ptr<RaftCore> core_;
  const std::unique_ptr<LogStorage> storage_;
  MessagePort& port_;
  Executor& executor_;
  Executor& storage_executor_;
  RaftListener& listener_;

  std::string own_endpoint_;
  bool processing_ = false;
  bool process_posted_ = false;
  bool failed_ = false;
  // Where observers said they are reached.
  std::map<NodeId, std::string> announced_endpoints_;
  std::vector<Write> waiting_writes_;
  bool write_under_way_ = false;
  WriteTicket durable_;
  std::multimap<WriteTicket, v1::RaftMessage> deferred_;
  LogIndex delivered_;
  Term serving_term_;
  std::optional<TimerId> timer_;
  MonotonicTime timer_at_ = MonotonicTime::Never();
  // Rejections are logged at most once a second for each reason.
  std::map<RejectionReason, MonotonicTime> rejection_logged_;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_NODE_RAFT_NODE_H_
