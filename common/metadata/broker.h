#ifndef CONCLAVE_COMMON_METADATA_BROKER_H_
#define CONCLAVE_COMMON_METADATA_BROKER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/types/ids.h"
#include "conclave/v1/metadata_records.pb.h"

namespace conclave {

// A registered broker: its newest incarnation.
struct Broker {
  BrokerId id;
  IncarnationId incarnation;
  // Index of the batch that registered the incarnation.
  BrokerEpoch epoch;
  // host:port for clients and other brokers.
  std::string endpoint;
  // At least one, none twice.
  std::vector<DirectoryId> directories;
  // Empty: not given.
  std::string rack;
  // A fenced broker leads nothing. Every incarnation starts so.
  bool fenced = true;
  // It asked to stop: it is given nothing new.
  bool stopping = false;

  // May be given leadership, replicas and places in an ISR.
  bool IsEligible() const { return !fenced && !stopping; }
  bool HasDirectory(DirectoryId directory) const;

  friend bool operator==(const Broker&, const Broker&) = default;
};

v1::RegisterBrokerRecord ToRegistration(const Broker& broker);
v1::BrokerState ToState(const Broker& broker);

// A fenced broker with epoch `epoch`; CORRUPT_MESSAGE for what has no typed form.
absl::StatusOr<Broker> BrokerFromRegistration(const v1::RegisterBrokerRecord& record,
                                              BrokerEpoch epoch);
absl::StatusOr<Broker> BrokerFromState(const v1::BrokerState& state);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_METADATA_BROKER_H_
