#include "controller/server/controller_node.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::controller {
namespace {

// Beyond this many entries a watcher is sent the image instead.
constexpr uint64_t kMaxResumeEntries = 10'000;

raft::RaftNode::Options RaftOptions(const ControllerConfig& config, const Identity& identity) {
  raft::RaftNode::Options options;
  options.config.cluster_id = identity.cluster_id;
  options.config.self = {.node = config.node_id, .directory = identity.directory_id};
  options.config.endpoint = ToString(config.advertised_listener.value_or(config.listener));
  options.config.heartbeat_interval = config.heartbeat_interval;
  options.config.election_timeout_min = config.election_timeout_min;
  options.config.election_timeout_max = config.election_timeout_max;
  for (const BootstrapController& controller : config.bootstrap) {
    options.config.bootstrap_nodes.push_back(controller.node_id);
    options.endpoints[controller.node_id] = ToString(controller.endpoint);
  }
  return options;
}

v1::CommittedBatch CommittedBatchOf(const raft::Entry& entry, v1::MetadataBatch batch) {
  v1::CommittedBatch committed;
  committed.mutable_position()->set_index(entry.index.value());
  committed.mutable_position()->set_term(entry.term.value());
  *committed.mutable_batch() = std::move(batch);
  return committed;
}

}  // namespace

ControllerNode::ControllerNode(const ControllerConfig& config, const Identity& identity,
                               Environment environment)
    : config_(config),
      identity_(identity),
      environment_(std::move(environment)),
      executor_(environment_.executor),
      raft_transport_(environment_.transport, executor_),
      core_({.broker_session_timeout = config.broker_session_timeout,
             .broker_session_grace = config.broker_session_grace},
            environment_.random.Fork("controller")),
      watches_(identity.cluster_id,
               {.image = [this]() -> const MetadataImage& { return core_.committed(); },
                .since = [this](MetadataPosition from) { return BatchesSince(from); },
                .commit_index = [this] { return core_.committed().position().index; }}),
      sessions_({.opened =
                     [this](BrokerId broker, BrokerEpoch epoch) {
                       const absl::Status opened = core_.StreamOpened(broker, epoch, Now());
                       ArmCoreTimer();
                       return WithLeader(opened);
                     },
                 .heartbeat = [this](const v1::BrokerHeartbeat& heartbeat)
                     -> absl::StatusOr<v1::BrokerHeartbeatReply> {
                   auto change = core_.Heartbeat(heartbeat, Now());
                   if (!change.ok()) return WithLeader(change.status());
                   if (!Append(change->batches)) return NotController();
                   ArmCoreTimer();
                   return std::move(change->response);
                 },
                 .broken =
                     [this](BrokerId broker, BrokerEpoch epoch) {
                       core_.StreamBroken(broker, epoch, Now());
                       ArmCoreTimer();
                     }}) {}

ControllerNode::~ControllerNode() = default;

absl::StatusOr<std::unique_ptr<ControllerNode>> ControllerNode::Create(
    const ControllerConfig& config, const Identity& identity, raft::RecoveredState recovered,
    std::unique_ptr<raft::LogStorage> storage, Environment environment) {
  std::unique_ptr<ControllerNode> node(
      new ControllerNode(config, identity, std::move(environment)));
  auto raft = raft::RaftNode::Create(RaftOptions(config, identity), std::move(recovered),
                                     std::move(storage), node->raft_transport_, node->executor_,
                                     node->environment_.storage_executor,
                                     node->environment_.random.Fork("raft"), *node);
  if (!raft.ok()) return raft.status();
  node->raft_ = *std::move(raft);
  node->raft_transport_.SetReceiver(
      {.on_message = [raw = node->raft_.get()](const v1::RaftMessage& m) { raw->Receive(m); },
       .on_stream_reset = [raw = node->raft_.get()](
                              const raft::ReplicaKey& peer) { raw->PeerStreamReset(peer); }});
  return node;
}

void ControllerNode::AddMethods(MethodTable& table) {
  raft_transport_.AddMethods(table);
  AddAdminMethods(table);
  AddControllerMethods(table);
}

void ControllerNode::Start(const std::string& endpoint) {
  leaderless_since_ = Now().time;
  raft_->Start(endpoint);
  OnWatchTimer();
}

void ControllerNode::OnCommitted(const std::vector<raft::Entry>& entries) {
  std::vector<v1::CommittedBatch> batches;
  for (const raft::Entry& entry : entries) {
    if (entry.kind != raft::EntryKind::kData) continue;
    v1::MetadataBatch batch;
    if (!batch.ParseFromString(*entry.data)) {
      return Fail(MakeError(v1::CORRUPT_MESSAGE,
                            absl::StrCat("entry ", entry.index.value(),
                                         " of the metadata log is no batch of records; was it "
                                         "written by another version?")));
    }
    const MetadataPosition position{entry.index, entry.term};
    if (absl::Status applied = core_.Committed(position, batch); !applied.ok()) {
      return Fail(MakeError(
          ErrorCodeOf(applied),
          absl::StrCat("entry ", entry.index.value(), " of the metadata log cannot be applied: ",
                       std::string(applied.message()))));
    }
    batches.push_back(CommittedBatchOf(entry, std::move(batch)));
  }
  applied_index_ = entries.back().index;
  if (!batches.empty()) watches_.Committed(batches, Now().time);
  pending_.CommittedTo(applied_index_);
  while (!reads_to_apply_.empty() && reads_to_apply_.begin()->first <= applied_index_) {
    reads_to_apply_.begin()->second(absl::OkStatus());
    reads_to_apply_.erase(reads_to_apply_.begin());
  }
}

void ControllerNode::OnLeadership(const raft::LeadershipChange& change) {
  LOG(INFO) << "term " << change.term << ": " << raft::RoleName(change.role) << ", leader "
            << (change.leader ? ToString(change.leader->node) : std::string("unknown"));
  if (change.leader) {
    leaderless_since_.reset();
  } else if (!leaderless_since_) {
    leaderless_since_ = Now().time;
  }
  if (change.role != raft::Role::kLeader) Deactivate();
}

void ControllerNode::OnServing(Term term) {
  LOG(INFO) << "controller " << config_.node_id << " is active in term " << term
            << ", metadata at index " << core_.committed().position().index;
  if (!Append(core_.Activate(term, Now()))) return;
  const auto bootstrap = core_.Bootstrap(identity_.cluster_id, Now());
  if (!bootstrap.ok()) return Fail(bootstrap.status());
  if (!Append(bootstrap->batches)) return;
  ArmCoreTimer();
}

void ControllerNode::ReleaseOnceConfirmed(PendingReplies::Release release) {
  if (!core_.active()) return release(NotController());
  const raft::ReadContext context(++last_read_);
  if (absl::Status taken = raft_->ReadIndex(context); !taken.ok()) {
    return release(MakeError(v1::OVERLOADED, std::string(taken.message())));
  }
  reads_[context] = std::move(release);
}

void ControllerNode::OnRead(raft::ReadContext context, absl::StatusOr<LogIndex> index) {
  const auto it = reads_.find(context);
  if (it == reads_.end()) return;
  PendingReplies::Release release = std::move(it->second);
  reads_.erase(it);
  if (!index.ok()) return release(WithLeader(index.status()));
  // The entries that a confirmed read needs may not all have been given to OnCommitted yet.
  if (*index <= applied_index_) return release(absl::OkStatus());
  reads_to_apply_.emplace(*index, std::move(release));
}

void ControllerNode::OnFatal(const absl::Status& why) { Fail(why); }

bool ControllerNode::Append(const Batches& batches) {
  for (const v1::MetadataBatch& batch : batches) {
    std::string bytes = batch.SerializeAsString();
    // Once it is in the log, every controller has to read it.
    if (v1::MetadataBatch again; !again.ParseFromString(bytes)) {
      LOG(ERROR) << "a batch of metadata records cannot be read back, and is dropped: "
                 << batch.ShortDebugString();
      Deactivate();
      return false;
    }
    const auto position = raft_->Propose(std::move(bytes));
    if (!position.ok()) {
      LOG(ERROR) << "the metadata log refused a batch: " << position.status();
      Deactivate();
      return false;
    }
    core_.Appended({position->index, position->term}, batch, Now().time);
  }
  return true;
}

MetadataPosition ControllerNode::Newest() const {
  const raft::LogPosition last = raft_->core().log().last();
  return {last.index, last.term};
}

void ControllerNode::Deactivate() {
  if (core_.active()) {
    LOG(INFO) << "controller " << config_.node_id << " is not active any more";
    core_.Deactivate();
  }
  if (core_timer_) executor_.Cancel(*core_timer_);
  core_timer_.reset();
  pending_.FailAll(MakeError(v1::CONTROLLER_CHANGED,
                             "the active controller lost its leadership before the change was "
                             "committed: it may be made or not; look before trying again"));
  sessions_.CloseAll(NotController());
}

absl::Status ControllerNode::NotController() const {
  return WithLeader(MakeError(v1::NOT_CONTROLLER, ""));
}

absl::Status ControllerNode::WithLeader(const absl::Status& status) const {
  if (ErrorCodeOf(status) != v1::NOT_CONTROLLER) return status;
  const auto leader = raft_->core().leader();
  if (!leader || leader->node == config_.node_id) {
    return MakeError(v1::NOT_CONTROLLER,
                     absl::StrCat("controller ", config_.node_id.value(),
                                  " is not active, and knows of none that is; an election may be "
                                  "under way ('conclave quorum status' shows the quorum)"));
  }
  v1::NodeHint hint;
  hint.set_node_id(leader->node.value());
  hint.set_endpoint(raft_->EndpointOf(leader->node));
  hint.set_epoch(static_cast<int64_t>(raft_->core().term().value()));
  return MakeError(
      v1::NOT_CONTROLLER,
      absl::StrCat("controller ", config_.node_id.value(), " is not active: ", "controller ",
                   leader->node.value(), " at ", hint.endpoint(), " is"),
      hint);
}

std::optional<std::vector<v1::CommittedBatch>> ControllerNode::BatchesSince(
    MetadataPosition position) const {
  const raft::RaftLog& log = raft_->core().log();
  const LogIndex through = core_.committed().position().index;
  if (log.TermAt(position.index) != position.term) return std::nullopt;
  if (through - position.index > kMaxResumeEntries) return std::nullopt;
  std::vector<v1::CommittedBatch> batches;
  for (LogIndex i = position.index + 1; i <= through; ++i) {
    const raft::Entry& entry = log.At(i);
    if (entry.kind != raft::EntryKind::kData) continue;
    v1::MetadataBatch batch;
    // It was parsed and applied when it was committed.
    CHECK(batch.ParseFromString(*entry.data)) << "entry " << i;
    batches.push_back(CommittedBatchOf(entry, std::move(batch)));
  }
  return batches;
}

controller::Now ControllerNode::Now() const {
  return {executor_.clock().Now(), executor_.clock().WallNow()};
}

void ControllerNode::ArmCoreTimer() {
  if (core_timer_) executor_.Cancel(*core_timer_);
  core_timer_.reset();
  const MonotonicTime deadline = core_.NextDeadline();
  if (deadline == MonotonicTime::Never()) return;
  core_timer_ = executor_.PostAt(deadline, [this] {
    core_timer_.reset();
    if (!core_.active()) return;
    if (Append(core_.Tick(Now()))) ArmCoreTimer();
  });
}

void ControllerNode::OnWatchTimer() {
  if (failed_) return;
  const MonotonicTime now = Now().time;
  if (leaderless_since_ && now - *leaderless_since_ >= config_.election_timeout_max) {
    watches_.CloseAll(
        MakeError(v1::METADATA_BEHIND, absl::StrCat("controller ", config_.node_id.value(),
                                                    " knows no leader: its metadata may be old")));
  } else {
    watches_.Tick(now);
  }
  executor_.PostAfter(MetadataWatches::kSignOfLife, [this] { OnWatchTimer(); });
}

void ControllerNode::Fail(const absl::Status& why) {
  if (std::exchange(failed_, true)) return;
  LOG(ERROR) << "controller " << config_.node_id << " cannot go on: " << Describe(why);
  environment_.on_fatal(why);
}

}  // namespace conclave::controller
