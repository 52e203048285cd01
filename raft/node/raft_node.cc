#include "raft/node/raft_node.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::raft {

absl::StatusOr<std::unique_ptr<RaftNode>> RaftNode::Create(Options options,
                                                           RecoveredState recovered,
                                                           std::unique_ptr<LogStorage> storage,
                                                           MessagePort& port, Executor& executor,
                                                           Executor& storage_executor,
                                                           Random random, RaftListener& listener) {
  auto core = RaftCore::Create(std::move(options.config), std::move(recovered), random,
                               executor.clock().Now());
  if (!core.ok()) return core.status();
  return std::unique_ptr<RaftNode>(new RaftNode(std::move(options.endpoints), *std::move(core),
                                                std::move(storage), port, executor,
                                                storage_executor, listener));
}

RaftNode::RaftNode(std::map<NodeId, std::string> endpoints, std::unique_ptr<RaftCore> core,
                   std::unique_ptr<LogStorage> storage, MessagePort& port, Executor& executor,
                   Executor& storage_executor, RaftListener& listener)
    : configured_endpoints_(std::move(endpoints)),
      core_(std::move(core)),
      storage_(std::move(storage)),
      port_(port),
      executor_(executor),
      storage_executor_(storage_executor),
      listener_(listener) {}

void RaftNode::Start(std::string endpoint) {
  own_endpoint_ = std::move(endpoint);
  core_->Tick(Now());
  Process();
}

void RaftNode::Receive(const v1::RaftMessage& message) {
  if (failed_) return;
  if (message.has_observer_announcement()) {
    announced_endpoints_[NodeId(message.from().node_id())] =
        message.observer_announcement().endpoint();
  }
  core_->Receive(message, Now());
  Process();
}

void RaftNode::PeerStreamReset(const ReplicaKey& peer) {
  if (failed_) return;
  core_->PeerStreamReset(peer, Now());
  Process();
}

absl::StatusOr<LogPosition> RaftNode::Propose(std::string data) {
  if (failed_) return MakeError(v1::STORAGE_ERROR, "this controller has failed and is ending");
  auto position = core_->Propose(std::move(data), Now());
  ProcessSoon();
  return position;
}

absl::Status RaftNode::ReadIndex(ReadContext context) {
  if (failed_) return MakeError(v1::STORAGE_ERROR, "this controller has failed and is ending");
  absl::Status taken = core_->ReadIndex(context, Now());
  ProcessSoon();
  return taken;
}

std::string RaftNode::EndpointOf(NodeId node) const {
  // A stored address may be one that does not exist any more: what the operator says now wins.
  if (const auto it = configured_endpoints_.find(node); it != configured_endpoints_.end()) {
    return it->second;
  }
  for (const auto& member : core_->log().voters().members()) {
    if (member.key.node == node) return member.endpoint;
  }
  const auto it = announced_endpoints_.find(node);
  return it == announced_endpoints_.end() ? std::string() : it->second;
}

void RaftNode::Process() {
  // What the listener calls from within is done by the loop that is already running.
  if (processing_) return;
  processing_ = true;
  while (!failed_ && core_->HasReady()) Handle(core_->TakeReady());
  processing_ = false;
  if (!failed_) ArmTimer();
}

void RaftNode::ProcessSoon() {
  if (processing_ || process_posted_) return;
  process_posted_ = true;
  executor_.Post([this] {
    process_posted_ = false;
    Process();
  });
}

void RaftNode::Handle(Ready ready) {
  LogRejections(ready.rejections);
  if (failed_) return;
  if (ready.write) waiting_writes_.push_back(*std::move(ready.write));
  StartWrites();
  for (const v1::RaftMessage& message : ready.messages) SendNow(message);
  for (DeferredMessage& message : ready.deferred) {
    if (message.after <= durable_) {
      SendNow(message.message);
    } else {
      deferred_.emplace(message.after, std::move(message.message));
    }
  }
  // Entries that end a leadership may be committed by the message that brought them: they are not
  // the leader's own, and who answers by index must have heard of the loss by then.
  const bool lost = ready.leadership && ready.leadership->role != Role::kLeader;
  if (lost) listener_.OnLeadership(*ready.leadership);
  if (!ready.committed.empty()) {
    delivered_ = ready.committed.back().index;
    listener_.OnCommitted(ready.committed);
  }
  for (const ConfirmedRead& read : ready.reads) listener_.OnRead(read.context, read.index);
  for (const ReadContext& context : ready.failed_reads) {
    listener_.OnRead(context, MakeError(v1::NOT_CONTROLLER,
                                        "the leadership was lost before the read was confirmed"));
  }
  if (ready.leadership && !lost) listener_.OnLeadership(*ready.leadership);
  MaybeAnnounceServing();
}

void RaftNode::SendNow(const v1::RaftMessage& message) {
  const std::string endpoint = EndpointOf(NodeId(message.to().node_id()));
  if (endpoint.empty()) return;
  if (!message.has_observer_announcement()) return port_.Send(endpoint, message);
  v1::RaftMessage announcement = message;
  announcement.mutable_observer_announcement()->set_endpoint(own_endpoint_);
  port_.Send(endpoint, announcement);
}

void RaftNode::LogRejections(const std::vector<Rejection>& rejections) {
  for (const Rejection& rejection : rejections) {
    auto& last = rejection_logged_[rejection.reason];
    if (last == MonotonicTime() || Now() - last >= Duration::Seconds(1)) {
      last = Now();
      LOG(WARNING) << "refused a message from controller " << rejection.from << ": "
                   << RejectionName(rejection.reason) << ": " << rejection.detail;
    }
    if (rejection.reason == RejectionReason::kContradictsCommitted) {
      Fail(MakeError(
          v1::STORAGE_ERROR,
          absl::StrCat("two histories of the metadata exist: controller ",
                       rejection.from.node.value(),
                       " sent what contradicts an entry that is committed here (", rejection.detail,
                       "); compare the nodes with 'conclave dump' before anything else")));
      return;
    }
  }
}

void RaftNode::StartWrites() {
  if (write_under_way_ || waiting_writes_.empty()) return;
  write_under_way_ = true;
  const WriteTicket last = waiting_writes_.back().ticket;
  storage_executor_.Post([this, last, writes = std::exchange(waiting_writes_, {})] {
    absl::Status status = storage_->Append(writes);
    const LendingScope lend(executor_);
    executor_.Post([this, last, status = std::move(status)] { WritesDone(last, status); });
  });
}

void RaftNode::WritesDone(WriteTicket last, const absl::Status& status) {
  if (failed_) return;
  if (!status.ok()) return Fail(status);
  write_under_way_ = false;
  durable_ = last;
  StartWrites();
  while (!deferred_.empty() && deferred_.begin()->first <= durable_) {
    SendNow(deferred_.begin()->second);
    deferred_.erase(deferred_.begin());
  }
  core_->Persisted(last, Now());
  Process();
}

void RaftNode::MaybeAnnounceServing() {
  if (!core_->leader_serves() || serving_term_ == core_->term()) return;
  if (delivered_ < core_->commit_index()) return;
  serving_term_ = core_->term();
  listener_.OnServing(serving_term_);
}

void RaftNode::ArmTimer() {
  const MonotonicTime deadline = core_->NextDeadline();
  // One that fires too early only looks again; so a deadline that moves away costs nothing.
  if (timer_ && timer_at_ <= deadline) return;
  if (timer_) executor_.Cancel(*timer_);
  timer_at_ = deadline;
  timer_ = executor_.PostAt(deadline, [this] { OnTimer(); });
}

void RaftNode::OnTimer() {
  timer_.reset();
  if (failed_) return;
  if (Now() >= core_->NextDeadline()) core_->Tick(Now());
  Process();
}

void RaftNode::Fail(const absl::Status& why) {
  failed_ = true;
  deferred_.clear();
  if (timer_) executor_.Cancel(*timer_);
  timer_.reset();
  listener_.OnFatal(why);
}

}  // namespace conclave::raft
