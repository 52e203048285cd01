#ifndef CONCLAVE_TOOLS_CLI_DATA_OPTIONS_H_
#define CONCLAVE_TOOLS_CLI_DATA_OPTIONS_H_

#include <optional>
#include <string>

#include "client/producer/producer.h"
#include "common/record/batch_header.h"
#include "common/types/time.h"
#include "conclave/v1/produce.pb.h"

// What the commands for data have in common.
namespace conclave::tools {

// "all", "1", "0".
std::optional<v1::Acks> AcksFromText(const std::string& text);
// "none", "lz4", "zstd".
std::optional<Compression> CompressionFromText(const std::string& text);

// Makes --timeout the time that each record is tried for, on the broker's side too.
void BoundDelivery(Duration timeout, ProducerOptions& options);

// With so many digits behind the point.
std::string Decimals(double number, int digits);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_DATA_OPTIONS_H_
