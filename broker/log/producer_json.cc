#include "broker/log/producer_json.h"

#include <cstdint>
#include <utility>

namespace conclave {

nlohmann::json ProducersToJson(const ProducerState::Producers& producers) {
  nlohmann::json entries = nlohmann::json::array();
  for (const auto& [id, producer] : producers) {
    nlohmann::json batches = nlohmann::json::array();
    for (const RememberedBatch& batch : producer.batches) {
      batches.push_back({batch.epoch.value(), batch.first_sequence, batch.last_sequence,
                         batch.first_offset.value(), batch.last_offset.value()});
    }
    entries.push_back(
        {{"id", id.value()}, {"forgot", producer.forgot}, {"batches", std::move(batches)}});
  }
  return entries;
}

ProducerState::Producers ProducersFromJson(const nlohmann::json& array) {
  ProducerState::Producers producers;
  for (const auto& entry : array) {
    ProducerState::Producer producer;
    producer.forgot = entry.at("forgot").get<bool>();
    for (const auto& batch : entry.at("batches")) {
      producer.batches.push_back({ProducerEpoch(batch.at(0).get<int16_t>()),
                                  batch.at(1).get<int32_t>(), batch.at(2).get<int32_t>(),
                                  Offset(batch.at(3).get<int64_t>()),
                                  Offset(batch.at(4).get<int64_t>())});
    }
    if (producer.batches.empty()) continue;
    producers[ProducerId(entry.at("id").get<int64_t>())] = std::move(producer);
  }
  return producers;
}

}  // namespace conclave
