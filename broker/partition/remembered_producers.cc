#include "broker/partition/remembered_producers.h"

#include <cstdint>
#include <utility>

namespace conclave::broker {

v1::RememberedProducers ProducersToProto(const ProducerState::Producers& producers) {
  v1::RememberedProducers proto;
  for (const auto& [id, producer] : producers) {
    v1::RememberedProducer* one = proto.add_producers();
    one->set_id(id.value());
    one->set_forgot(producer.forgot);
    for (const RememberedBatch& batch : producer.batches) {
      v1::RememberedBatch* remembered = one->add_batches();
      remembered->set_epoch(batch.epoch.value());
      remembered->set_first_sequence(batch.first_sequence);
      remembered->set_last_sequence(batch.last_sequence);
      remembered->set_first_offset(batch.first_offset.value());
      remembered->set_last_offset(batch.last_offset.value());
    }
  }
  return proto;
}

ProducerState::Producers ProducersFromProto(const v1::RememberedProducers& proto) {
  ProducerState::Producers producers;
  for (const v1::RememberedProducer& one : proto.producers()) {
    ProducerState::Producer producer;
    producer.forgot = one.forgot();
    for (const v1::RememberedBatch& batch : one.batches()) {
      producer.batches.push_back({ProducerEpoch(static_cast<int16_t>(batch.epoch())),
                                  batch.first_sequence(), batch.last_sequence(),
                                  Offset(batch.first_offset()), Offset(batch.last_offset())});
    }
    if (!producer.batches.empty()) producers[ProducerId(one.id())] = std::move(producer);
  }
  return producers;
}

}  // namespace conclave::broker
