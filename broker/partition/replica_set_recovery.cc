#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "broker/log/log_damage.h"
#include "broker/partition/replica_set.h"
#include "common/error/error.h"

// How logs are opened: all that are there at the start side by side, later ones one by one.
namespace conclave::broker {
namespace {

constexpr uint64_t kReportSeconds = 2;
// A disk that is full, or a limit of descriptors that others use up.
constexpr Duration kOpenAgainAfter = Duration::Seconds(1);

}  // namespace

// Shared with the workers.
struct ReplicaSet::Recovery {
  struct Scan {
    std::atomic<uint64_t> done{0};
    std::atomic<uint64_t> total{0};
  };

  explicit Recovery(size_t logs, MonotonicTime now) : scans(logs), begun(now) {}

  uint64_t bytes() const {
    uint64_t bytes = 0;
    for (const Scan& scan : scans) bytes += scan.done;
    return bytes;
  }
  // In logs: one that is open counts as one, one that is being scanned as the part that has been.
  double Done(size_t open) const {
    double done = static_cast<double>(open);
    for (const Scan& scan : scans) {
      const uint64_t total = scan.total;
      const uint64_t scanned = scan.done;
      if (scanned < total) done += static_cast<double>(scanned) / static_cast<double>(total);
    }
    return done;
  }

  std::deque<Scan> scans;
  const MonotonicTime begun;
  size_t open = 0;
};

void ReplicaSet::Recover(std::function<void()> done) {
  recovery_done_ = std::move(done);
  const auto deleted = directory_->ListAside(DataDirectory::Aside::kDeleted);
  if (!deleted.ok()) return Fail(deleted.status());
  for (const DataDirectory::AsideLog& log : *deleted) {
    RemoveLater(DataDirectory::Aside::kDeleted, log.name, options_.file_delete_delay);
  }
  const auto healing = directory_->ListAside(DataDirectory::Aside::kDamaged);
  if (!healing.ok()) return Fail(healing.status());
  for (const DataDirectory::AsideLog& log : *healing) healing_.emplace(log.id, log.name);
  space_.Look();
  Look();
  EverySecond();
  executor_.PostAfter(options_.retention_check_interval, [this] { ApplyRetention(); });

  const size_t logs = directory_->found().size();
  recovery_ = std::make_shared<Recovery>(logs, executor_.clock().Now());
  if (logs == 0) return RecoveredAll();
  for (size_t i = 0; i < logs; ++i) RecoverOne(i);
}

void ReplicaSet::RecoverOne(size_t number) {
  const DataDirectory::Found& found = directory_->found()[number];
  PartitionLog::OpenOptions open =
      OptionsOf({found.identity.topic_id, found.identity.partition}, Opening::kRecover);
  open.progress = [recovery = recovery_, number](const RecoveryProgress& progress) {
    recovery->scans[number].total = progress.bytes_total;
    recovery->scans[number].done = progress.bytes_done;
  };
  environment_.syncs.RunTask([this, number, open = std::move(open), fs = &environment_.fs,
                              executor = &executor_, directory = found.directory]() mutable {
    auto log = PartitionLog::Open(*fs, directory, std::move(open));
    executor->Post(
        [this, number, log = std::move(log)]() mutable { Recovered(number, std::move(log)); });
  });
}

void ReplicaSet::Recovered(size_t number, OpenedLog log) {
  if (failed_) return;
  const DataDirectory::Found& found = directory_->found()[number];
  if (ErrorCodeOf(log.status()) == v1::OUT_OF_RESOURCES) {
    LOG(ERROR) << found.directory
               << " cannot be opened yet, and is tried again: " << Describe(log.status());
    executor_.PostAfter(kOpenAgainAfter, [this, number] {
      if (!failed_ && !closing_) RecoverOne(number);
    });
    return;
  }
  const absl::Status adopted =
      Adopt(found.directory, found.identity, std::move(log), Opening::kRecover);
  if (!adopted.ok()) return Fail(adopted);
  if (++recovery_->open == directory_->found().size()) RecoveredAll();
}

void ReplicaSet::RecoveredAll() {
  if (recovery_->open > 0) {
    LOG(INFO) << recovery_->open << " logs are open, "
              << (directory_->clean_stop() ? "after a clean stop" : "recovered") << ", in "
              << (executor_.clock().Now() - recovery_->begun).milliseconds() << " ms; "
              << recovery_->bytes() << " bytes were scanned";
  }
  FindMissing();
  Report();
  recovered_all_ = true;
  std::exchange(recovery_done_, nullptr)();
  if (TakesPart()) ApplyAll();
}

void ReplicaSet::ReportRecovery() const {
  if (recovered_all_ || recovery_ == nullptr || seconds_ % kReportSeconds != 0) return;
  const size_t logs = directory_->found().size();
  const double done = recovery_->Done(recovery_->open);
  const auto elapsed =
      static_cast<double>((executor_.clock().Now() - recovery_->begun).milliseconds());
  std::string left;
  if (done > 0) {
    left = absl::StrFormat("; about %.0f s left",
                           elapsed * (static_cast<double>(logs) - done) / done / 1000);
  }
  LOG(INFO) << absl::StrFormat("recovering: %.1f of %d logs, %d bytes scanned", done, logs,
                               recovery_->bytes())
            << left;
}

PartitionLog::OpenOptions ReplicaSet::OptionsOf(const PartitionId& id, Opening opening) {
  PartitionLog::OpenOptions open;
  open.tail_budget = &tail_budget_;
  if (opening != Opening::kNew) open.recovery_point = directory_->RecoveryPointOf(id);
  open.clean_stop = opening == Opening::kRecover && directory_->clean_stop().has_value();
  if (opening == Opening::kGiveUp) {
    open.give_up_to = directory_->GivenUpPath(id);
    const auto damaged = damaged_.find(id);
    if (damaged != damaged_.end() && damaged->second.damage) {
      open.recovery_point = damaged->second.damage->first_missing;
    }
  }
  return open;
}

absl::Status ReplicaSet::OpenLog(const std::string& directory, const PartitionIdentity& identity,
                                 Opening opening) {
  const PartitionId id{identity.topic_id, identity.partition};
  return Adopt(directory, identity,
               PartitionLog::Open(environment_.fs, directory, OptionsOf(id, opening)), opening);
}

absl::Status ReplicaSet::Adopt(const std::string& directory, const PartitionIdentity& identity,
                               OpenedLog log, Opening opening) {
  const PartitionId id{identity.topic_id, identity.partition};
  if (!log.ok()) {
    const auto damage = DamageOf(log.status());
    if (!damage) return log.status();
    LOG(ERROR) << Describe(log.status());
    damaged_[id] = {identity, directory, DescribeDamage(*damage), damage};
    return absl::OkStatus();
  }
  const auto checkpointed = directory_->high_watermarks().find({id.topic, id.index});
  const Offset high_watermark =
      checkpointed == directory_->high_watermarks().end() || opening == Opening::kNew
          ? Offset(0)
          : checkpointed->second;
  const Offset end = (*log)->log_end();
  if (end < high_watermark && opening == Opening::kRecover) {
    const std::string what = absl::StrCat(
        directory, " ends at offset ", end.value(), " and had committed records up to ",
        high_watermark.value(), ": the disk lost what it had synced");
    LOG(ERROR) << what;
    damaged_[id] = {identity, directory, what, std::nullopt};
    return absl::OkStatus();
  }
  AddReplica(identity, *std::move(log), high_watermark);
  return absl::OkStatus();
}

void ReplicaSet::AddReplica(const PartitionIdentity& identity, std::unique_ptr<PartitionLog> log,
                            Offset high_watermark) {
  Replica::Options options;
  options.self = options_.self;
  options.replica_lag_time_max = options_.replica_lag_time_max;
  options.life = ++last_life_;
  options.space = &space_;
  options.on_damage = [this](const Replica& replica) {
    damaged_open_.insert(replica.id());
    executor_.Post([this, id = replica.id()] {
      // Nobody counts on one that is not in sync: it begins anew at once.
      if (TakesPart()) ApplyPartition(id);
      Report();
    });
  };
  const PartitionId id{identity.topic_id, identity.partition};
  std::unique_ptr<Replica>& replica = replicas_[id];
  replica = std::make_unique<Replica>(identity, std::move(log), high_watermark, std::move(options),
                                      executor_.clock());
  by_id_[id] = replica.get();
  if (replica->damage()) damaged_open_.insert(id);
  Touch(*replica);
}

}  // namespace conclave::broker
