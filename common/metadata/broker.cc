#include "common/metadata/broker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

absl::Status Refused(const v1::RegisterBrokerRecord& record, std::string why) {
  return MakeError(v1::CORRUPT_MESSAGE, absl::StrCat("registration of broker ", record.broker_id(),
                                                     ": ", std::move(why)));
}

}  // namespace

bool Broker::HasDirectory(DirectoryId directory) const {
  return std::find(directories.begin(), directories.end(), directory) != directories.end();
}

v1::RegisterBrokerRecord ToRegistration(const Broker& broker) {
  v1::RegisterBrokerRecord record;
  record.set_broker_id(broker.id.value());
  record.set_incarnation_id(broker.incarnation.ToBytes());
  record.set_endpoint(broker.endpoint);
  for (DirectoryId directory : broker.directories) record.add_directory_ids(directory.ToBytes());
  record.set_rack(broker.rack);
  return record;
}

v1::BrokerState ToState(const Broker& broker) {
  v1::BrokerState state;
  *state.mutable_registration() = ToRegistration(broker);
  state.set_broker_epoch(broker.epoch.value());
  state.set_fenced(broker.fenced);
  state.set_stopping(broker.stopping);
  return state;
}

absl::StatusOr<Broker> BrokerFromRegistration(const v1::RegisterBrokerRecord& record,
                                              BrokerEpoch epoch) {
  Broker broker;
  broker.id = BrokerId(record.broker_id());
  broker.epoch = epoch;
  broker.endpoint = record.endpoint();
  broker.rack = record.rack();
  if (record.broker_id() < 0) return Refused(record, "the id is negative");
  if (epoch.value() <= 0) return Refused(record, "the broker epoch is not positive");
  if (record.endpoint().empty()) return Refused(record, "it has no endpoint");
  const auto incarnation = IncarnationId::FromBytes(record.incarnation_id());
  if (!incarnation || incarnation->IsNone()) return Refused(record, "the incarnation id is no id");
  broker.incarnation = *incarnation;
  if (record.directory_ids().empty()) return Refused(record, "it has no directory");
  for (const std::string& bytes : record.directory_ids()) {
    const auto directory = DirectoryId::FromBytes(bytes);
    if (!directory || directory->IsNone()) return Refused(record, "a directory id is no id");
    if (broker.HasDirectory(*directory)) {
      return Refused(record, absl::StrCat("directory ", directory->ToString(), " is named twice"));
    }
    broker.directories.push_back(*directory);
  }
  return broker;
}

absl::StatusOr<Broker> BrokerFromState(const v1::BrokerState& state) {
  auto broker = BrokerFromRegistration(state.registration(), BrokerEpoch(state.broker_epoch()));
  if (!broker.ok()) return broker;
  broker->fenced = state.fenced();
  broker->stopping = state.stopping();
  return broker;
}

}  // namespace conclave
