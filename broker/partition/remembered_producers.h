#ifndef CONCLAVE_BROKER_PARTITION_REMEMBERED_PRODUCERS_H_
#define CONCLAVE_BROKER_PARTITION_REMEMBERED_PRODUCERS_H_

#include "broker/log/producer_state.h"
#include "conclave/v1/replication.pb.h"

namespace conclave::broker {

// What a leader remembers of producers, on its way to a follower that begins anew.
v1::RememberedProducers ProducersToProto(const ProducerState::Producers& producers);
ProducerState::Producers ProducersFromProto(const v1::RememberedProducers& producers);

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_REMEMBERED_PRODUCERS_H_
