#include "broker/log/derived_state.h"

#include <glog/logging.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "broker/log/producer_json.h"
#include "broker/log/sealed_json.h"
#include "common/error/error.h"

namespace conclave {
namespace {

constexpr int kVersion = 1;

// Of a file that follows from the log a damage is only a longer start.
bool MeansRebuild(const absl::Status& status, const std::string& path) {
  if (absl::IsNotFound(status)) return true;
  const v1::ErrorCode code = ErrorCodeOf(status);
  if (code != v1::STORAGE_ERROR && code != v1::UNSUPPORTED_VERSION) return false;
  LOG(WARNING) << path << " is made anew from the log: " << status.message();
  return true;
}

}  // namespace

absl::Status DerivedState::LoadEpochs() {
  epochs_.Clear();
  epochs_through_ = Offset(0);
  const std::string path = JoinPath(directory_, kLeaderEpochsFile);
  const auto json = ReadSealedJson(fs_, path, kVersion);
  if (!json.ok()) return MeansRebuild(json.status(), path) ? absl::OkStatus() : json.status();
  try {
    EpochCache read;
    for (const auto& entry : json->at("epochs")) {
      read.Note(LeaderEpoch(entry.at(0).get<int32_t>()), Offset(entry.at(1).get<int64_t>()));
    }
    const Offset through(json->at("through").get<int64_t>());
    epochs_ = std::move(read);
    epochs_through_ = through;
  } catch (const nlohmann::json::exception& e) {
    LOG(WARNING) << path << " is made anew from the log: " << e.what();
  }
  return absl::OkStatus();
}

absl::Status DerivedState::LoadProducers() {
  producers_.Clear();
  producers_through_ = Offset(0);
  const std::string path = JoinPath(directory_, kProducersFile);
  const auto json = ReadSealedJson(fs_, path, kVersion);
  if (!json.ok()) return MeansRebuild(json.status(), path) ? absl::OkStatus() : json.status();
  try {
    for (auto& [id, producer] : ProducersFromJson(json->at("producers"))) {
      producers_.Restore(id, std::move(producer));
    }
    producers_through_ = Offset(json->at("through").get<int64_t>());
  } catch (const nlohmann::json::exception& e) {
    LOG(WARNING) << path << " is made anew from the log: " << e.what();
    producers_.Clear();
  }
  return absl::OkStatus();
}

absl::Status DerivedState::StoreEpochs(Offset through) {
  nlohmann::json entries = nlohmann::json::array();
  bool all = true;
  for (const EpochStart& start : epochs_.starts()) {
    if (start.start >= through) {
      all = false;
      break;
    }
    entries.push_back({start.epoch.value(), start.start.value()});
  }
  absl::Status status =
      WriteSealedJson(fs_, JoinPath(directory_, kLeaderEpochsFile), kVersion,
                      {{"epochs", std::move(entries)}, {"through", through.value()}});
  if (!status.ok()) return status;
  epochs_through_ = through;
  epochs_changed_ = !all;
  return absl::OkStatus();
}

absl::Status DerivedState::StoreProducers(Offset through) {
  absl::Status status = WriteSealedJson(
      fs_, JoinPath(directory_, kProducersFile), kVersion,
      {{"producers", ProducersToJson(producers_.producers())}, {"through", through.value()}});
  if (status.ok()) producers_through_ = through;
  return status;
}

absl::Status DerivedState::Load(Offset log_start, Offset log_end) {
  if (absl::Status status = LoadEpochs(); !status.ok()) return status;
  if (absl::Status status = LoadProducers(); !status.ok()) return status;
  const bool epochs_too_far = epochs_through_ > log_end;
  const bool producers_too_far = producers_through_ > log_end;
  if (epochs_.TruncateTo(std::min(epochs_through_, log_end))) epochs_changed_ = true;
  if (producers_too_far && producers_.TruncateTo(log_end)) {
    // What the five remembered no longer show is in the log, or gone from it.
    producers_through_ = Offset(0);
  }
  epochs_noted_ = std::min(epochs_through_, log_end);
  producers_noted_ = std::min(producers_through_, log_end);
  if (epochs_too_far) {
    if (absl::Status status = StoreEpochs(epochs_noted_); !status.ok()) return status;
  }
  if (producers_too_far) {
    if (absl::Status status = StoreProducers(producers_noted_); !status.ok()) return status;
  }
  epochs_noted_ = std::max(epochs_noted_, log_start);
  producers_noted_ = std::max(producers_noted_, log_start);
  if (producers_through_ == Offset(0)) BeginReplay(log_start);
  return absl::OkStatus();
}

void DerivedState::FinishLoad(Offset log_start) {
  producers_.EndReplay();
  TrimTo(log_start);
}

void DerivedState::BeginReplay(Offset log_start) {
  producers_.BeginReplay(log_start);
  producers_noted_ = log_start;
}

void DerivedState::TrimTo(Offset start) {
  if (epochs_.TrimTo(start)) epochs_changed_ = true;
}

Offset DerivedState::incomplete_from() const { return std::min(epochs_noted_, producers_noted_); }

void DerivedState::Note(const BatchHeader& header) {
  if (header.next_offset() > epochs_noted_) {
    if (epochs_.Note(header.leader_epoch, header.base_offset)) epochs_changed_ = true;
    epochs_noted_ = header.next_offset();
  }
  if (header.next_offset() > producers_noted_) {
    producers_.Note(header);
    producers_noted_ = header.next_offset();
  }
}

absl::StatusOr<bool> DerivedState::TruncateTo(Offset end) {
  if (epochs_.TruncateTo(end)) epochs_changed_ = true;
  const bool replay = producers_.TruncateTo(end);
  epochs_noted_ = std::min(epochs_noted_, end);
  producers_noted_ = std::min(producers_noted_, end);
  if (epochs_through_ > end) {
    if (absl::Status status = StoreEpochs(end); !status.ok()) return status;
  }
  if (producers_through_ > end) {
    // Complete up to nothing, if a replay is due and may not be reached.
    if (absl::Status status = StoreProducers(replay ? Offset(0) : end); !status.ok()) return status;
  }
  return replay;
}

void DerivedState::Forget(Offset start, const ProducerState::Producers& producers) {
  epochs_.Clear();
  producers_.Clear();
  for (const auto& [id, producer] : producers) producers_.Restore(id, producer);
  epochs_noted_ = producers_noted_ = start;
}

absl::Status DerivedState::Reset(Offset start, const ProducerState::Producers& producers) {
  Forget(start, producers);
  if (absl::Status status = StoreEpochs(start); !status.ok()) return status;
  return StoreProducers(start);
}

absl::Status DerivedState::StoreEpochsBelow(Offset durable) {
  return epochs_changed_ ? StoreEpochs(durable) : absl::OkStatus();
}

absl::Status DerivedState::StoreAll() {
  if (epochs_changed_ || epochs_through_ < epochs_noted_) {
    if (absl::Status status = StoreEpochs(epochs_noted_); !status.ok()) return status;
  }
  return producers_through_ == producers_noted_ ? absl::OkStatus()
                                                : StoreProducers(producers_noted_);
}

}  // namespace conclave
