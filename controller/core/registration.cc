#include "controller/core/registration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/endpoint.h"
#include "common/error/error.h"
#include "controller/core/batch_builder.h"
#include "controller/core/broker_records.h"
#include "controller/core/leadership_plan.h"

namespace conclave::controller {
namespace {

constexpr int kMaxDirectories = 256;
constexpr size_t kMaxRackLength = 249;

// The request in the form of its record; INVALID_REQUEST for what no broker may say.
absl::StatusOr<Broker> ReadRequest(const v1::RegisterBrokerRequest& request) {
  const auto invalid = [&](std::string why) {
    return MakeError(v1::INVALID_REQUEST, absl::StrCat("broker ", request.broker_id(),
                                                       " cannot register: ", std::move(why)));
  };
  const auto endpoint = ParseEndpoint(request.endpoint());
  if (!endpoint.ok()) return invalid(std::string(endpoint.status().message()));
  if (endpoint->port == 0) {
    return invalid(absl::StrCat("nobody can connect to port 0 of ", request.endpoint(),
                                "; register the port that the listener is bound to"));
  }
  if (request.directory_ids_size() > kMaxDirectories) {
    return invalid(absl::StrCat("it has ", request.directory_ids_size(), " directories; at most ",
                                kMaxDirectories, " are allowed"));
  }
  if (request.rack().size() > kMaxRackLength) {
    return invalid(absl::StrCat("the rack's name has more than ", kMaxRackLength, " bytes"));
  }
  v1::RegisterBrokerRecord record;
  record.set_broker_id(request.broker_id());
  record.set_incarnation_id(request.incarnation_id());
  record.set_endpoint(ToString(*endpoint));
  *record.mutable_directory_ids() = request.directory_ids();
  record.set_rack(request.rack());
  // The epoch is where the record will stand; until then any positive one.
  auto broker = BrokerFromRegistration(record, BrokerEpoch(1));
  if (!broker.ok()) return invalid(std::string(broker.status().message()));
  return broker;
}

// A directory is locked by its process, so one shared directory proves the same machine.
bool SharesDirectory(const Broker& a, const Broker& b) {
  return std::any_of(a.directories.begin(), a.directories.end(),
                     [&b](DirectoryId directory) { return b.HasDirectory(directory); });
}

// Its identity says who the broker is: the same one twice is a copy, or was given another's id.
absl::Status CheckDirectories(const MetadataImage& image, const Broker& broker) {
  for (const auto& [id, other] : image.brokers()) {
    if (id == broker.id) continue;
    for (const DirectoryId directory : broker.directories) {
      if (!other.HasDirectory(directory)) continue;
      return MakeError(
          v1::DUPLICATE_BROKER_REGISTRATION,
          absl::StrCat("broker ", broker.id.value(), " at ", broker.endpoint, " has directory ",
                       directory.ToString(), ", which is broker ", id.value(), "'s at ",
                       other.endpoint,
                       ": its data directory is a copy. Format an empty one for it with 'conclave "
                       "storage format', or unregister broker ",
                       id.value(), " if that is gone for good"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReplaceable(const Broker& old, const Broker& broker, const Sessions& sessions) {
  if (!sessions.IsLive(old.id)) return absl::OkStatus();
  const std::string who =
      absl::StrCat("broker id ", old.id.value(), " is held by a live process at ", old.endpoint,
                   " (epoch ", old.epoch.value(), ")");
  if (!SharesDirectory(old, broker)) {
    return MakeError(v1::DUPLICATE_BROKER_REGISTRATION,
                     absl::StrCat(who,
                                  " with other directories; give one of the two another "
                                  "broker.id, or, if its disk was replaced, stop the old "
                                  "process and start again once its session has ended"));
  }
  if (sessions.IsConnected(old.id)) {
    return MakeError(v1::BROKER_SESSION_ALIVE,
                     absl::StrCat(who, " whose session stream is open; try again when it is gone"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Change<v1::RegisterBrokerResponse>> RegisterBroker(
    const MetadataImage& image, const Sessions& sessions, const ReplicaReports& reports,
    const v1::RegisterBrokerRequest& request, Random& random, Now now) {
  if (auto status = CheckClusterId(image, request.cluster_id()); !status.ok()) return status;
  const auto broker = ReadRequest(request);
  if (!broker.ok()) return broker.status();
  if (auto status = CheckDirectories(image, *broker); !status.ok()) return status;
  Change<v1::RegisterBrokerResponse> change;
  BatchBuilder builder(now.wall);
  if (const Broker* old = image.FindBroker(broker->id); old != nullptr) {
    if (old->incarnation == broker->incarnation) {
      change.response.set_broker_epoch(old->epoch.value());
      return change;
    }
    if (auto status = CheckReplaceable(*old, *broker, sessions); !status.ok()) return status;
    LeadershipPlan plan(image, reports);
    // Also the same broker, back at once, leads again only under a new epoch: what it had appended
    // and not synced may be on followers under the old one.
    if (!old->fenced) plan.Fence({{old->id, "it was started again"}});
    if (BrokerEpoch(request.clean_stop_epoch()) != old->epoch) plan.StoppedUncleanly(old->id);
    plan.LoseDirectories(old->id, broker->directories, random);
    plan.AddRecords(builder);
  }
  // Last: the broker epoch is the index of the last batch, and a fenced broker leads nothing.
  v1::MetadataRecord record;
  *record.mutable_register_broker() = ToRegistration(*broker);
  builder.Add(std::move(record));
  change.batches = builder.Take();
  return change;
}

absl::StatusOr<Change<NoResponse>> UnregisterBroker(const MetadataImage& image,
                                                    const Sessions& sessions, BrokerId id,
                                                    Now now) {
  const Broker* broker = image.FindBroker(id);
  if (broker == nullptr) {
    return MakeError(v1::BROKER_ID_NOT_REGISTERED,
                     absl::StrCat("broker ", id.value(), " is not registered"));
  }
  if (!broker->fenced || sessions.IsLive(id)) {
    return MakeError(v1::BROKER_SESSION_ALIVE,
                     absl::StrCat("broker ", id.value(), " at ", broker->endpoint,
                                  " is alive; stop it and wait until it is fenced"));
  }
  if (const auto& held = image.PartitionsOn(id); !held.empty()) {
    const PartitionId& first = *held.begin();
    return MakeError(v1::INVALID_REQUEST,
                     absl::StrCat("broker ", id.value(), " is assigned ", held.size(),
                                  " replicas, one of ", image.FindTopic(first.topic)->name, "-",
                                  first.index.value(), "; delete these topics first"));
  }
  BatchBuilder builder(now.wall);
  v1::MetadataRecord record;
  record.mutable_unregister_broker()->set_broker_id(id.value());
  record.mutable_unregister_broker()->set_broker_epoch(broker->epoch.value());
  builder.Add(std::move(record));
  return Change<NoResponse>{builder.Take(), {}};
}

}  // namespace conclave::controller
