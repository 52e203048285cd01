#ifndef CONCLAVE_CONTROLLER_CORE_CONTROLLER_CORE_H_
#define CONCLAVE_CONTROLLER_CORE_CONTROLLER_CORE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/metadata/image.h"
#include "common/random/random.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/admin.pb.h"
#include "conclave/v1/controller.pb.h"
#include "controller/core/change.h"
#include "controller/core/leadership_plan.h"
#include "controller/core/metadata_lag.h"
#include "controller/core/replica_reports.h"
#include "controller/core/sessions.h"
#include "controller/core/topic_creation.h"

namespace conclave::controller {

// The controller as a state machine: requests, time and committed batches in; batches of records
// and replies out. Every controller has one; the one whose node leads the quorum makes it active.
//
// What the driver owes it:
// - Committed() with every batch of the log, in order, once, whether active or not.
// - Activate() only when this node leads and everything before its term has been Committed; from
//   then on each batch that a call returns is appended, in order, and handed back by Appended()
//   with the position Raft gave it, before any other call. Raft must keep other nodes' entries out
//   meanwhile; its own empty or membership entries may stand in between.
// - If an append is refused, or leadership is lost: Deactivate(), at once. What was appended and is
//   not committed is then answered with CONTROLLER_CHANGED.
// - A reply leaves when the last of its batches is committed, after CompleteResponse(); without
//   batches, when everything appended before is committed. Heartbeats' replies leave at once.
// - Tick() when NextDeadline() has come.
//
// A request to a core that is not active is refused with NOT_CONTROLLER. Not thread-safe.
class ControllerCore {
 public:
  struct Options {
    Duration broker_session_timeout = Duration::Milliseconds(6000);
    Duration broker_session_grace = Duration::Milliseconds(200);
  };

  ControllerCore(Options options, const Random& random);

  // --- What the log says

  // Starts over from a snapshot. Not while active.
  absl::Status Restore(const v1::MetadataImageProto& proto, MetadataPosition position);
  // An error means that this node's log is damaged or of a newer version: the process must end.
  // What changed is added to `*delta`, if given.
  absl::Status Committed(MetadataPosition position, const v1::MetadataBatch& batch,
                         MetadataDelta* delta = nullptr);
  // What brokers, readers and replies may see.
  const MetadataImage& committed() const { return committed_; }

  // --- Leadership

  // Gives each unfenced broker a full session. The batches, if any, finish what the last active
  // controller had begun.
  Batches Activate(Term term, Now now);
  void Deactivate();
  bool active() const { return active_; }
  // What the next request is checked against: `committed` and what was appended since. Only while
  // active.
  const MetadataImage& speculative() const;
  void Appended(MetadataPosition position, const v1::MetadataBatch& batch, MonotonicTime now);

  // The log's first batch. Without batches if the cluster has this id already;
  // INCONSISTENT_CLUSTER_ID if it has another.
  absl::StatusOr<Change<NoResponse>> Bootstrap(ClusterId id, Now now);

  // --- Brokers

  absl::StatusOr<Change<v1::RegisterBrokerResponse>> RegisterBroker(
      const v1::RegisterBrokerRequest& request, Now now);
  absl::StatusOr<Change<NoResponse>> UnregisterBroker(BrokerId broker, Now now);

  // A session stream's first heartbeat tells broker and epoch; call this before Heartbeat. On an
  // error the stream is to be closed with it. Each stream that opened breaks once.
  absl::Status StreamOpened(BrokerId broker, BrokerEpoch epoch, Now now);
  void StreamBroken(BrokerId broker, BrokerEpoch epoch, Now now);
  // Unfences, fences a broker whose metadata is a session behind, moves leaderships away from one
  // that wants to stop, takes damaged replicas out of their ISRs, elects the furthest of those that
  // stopped uncleanly. The reply tells the committed state; its commit_index is the position of
  // the newest committed batch.
  absl::StatusOr<Change<v1::BrokerHeartbeatReply>> Heartbeat(const v1::BrokerHeartbeat& heartbeat,
                                                             Now now);
  // Fences brokers whose sessions are over.
  Batches Tick(Now now);
  // Never() when not active.
  MonotonicTime NextDeadline() const;

  // --- Partitions and topics: see the files of the same names

  absl::StatusOr<Change<v1::AlterPartitionResponse>> AlterPartition(
      const v1::AlterPartitionRequest& request, Now now);
  absl::StatusOr<Change<v1::AllocateProducerIdsResponse>> AllocateProducerIds(
      const v1::AllocateProducerIdsRequest& request, Now now);
  absl::StatusOr<Change<v1::CreateTopicsResponse>> CreateTopics(
      const v1::CreateTopicsRequest& request, Requester requester, Now now);
  absl::StatusOr<Change<v1::DeleteTopicsResponse>> DeleteTopics(
      const v1::DeleteTopicsRequest& request, Requester requester, Now now);
  absl::StatusOr<Change<v1::AlterConfigsResponse>> AlterConfigs(
      const v1::AlterConfigsRequest& request, Now now);
  absl::StatusOr<Change<v1::ElectLeadersResponse>> ElectLeaders(
      const v1::ElectLeadersRequest& request, Now now);

 private:
  absl::Status CheckActive() const;
  // Why a fenced broker stays so, given its heartbeat; empty: it can be unfenced.
  std::string WhyFenced(const Broker& broker, const v1::BrokerHeartbeat& heartbeat,
                        bool is_behind) const;
  Batches Fence(const std::vector<Sessions::Ended>& ended, Now now) const;
  // With what it reports of its replicas.
  Batches Unfence(const Broker& broker, Now now) const;
  Batches ActOnReports(const Broker& broker, Now now) const;
  void PlanByReports(const Broker& broker, LeadershipPlan& plan) const;
  Batches BeginStop(const Broker& broker, Now now) const;
  bool MayStop(const Broker& broker) const;

  const Duration session_timeout_;
  Random random_;
  MetadataImage committed_;

  // Of the active controller alone.
  bool active_ = false;
  Term term_;
  MetadataImage speculative_;
  Sessions sessions_;
  MetadataLag lag_;
  ReplicaReports reports_;
  // Why each broker was last fenced, as far as this controller did it; for replies.
  std::map<BrokerId, std::string> fenced_reasons_;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_CONTROLLER_CORE_H_
