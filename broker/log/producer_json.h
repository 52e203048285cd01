#ifndef CONCLAVE_BROKER_LOG_PRODUCER_JSON_H_
#define CONCLAVE_BROKER_LOG_PRODUCER_JSON_H_

#include <nlohmann/json.hpp>

#include "broker/log/producer_state.h"

namespace conclave {

// The array `producers` of the files that have one; see docs/formats-log.md.
nlohmann::json ProducersToJson(const ProducerState::Producers& producers);
// Throws nlohmann::json::exception where it is no such array.
ProducerState::Producers ProducersFromJson(const nlohmann::json& array);

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_PRODUCER_JSON_H_
