#ifndef CONCLAVE_TOOLS_CLI_BENCH_RUN_H_
#define CONCLAVE_TOOLS_CLI_BENCH_RUN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/producer/producer.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "tools/cli/bench_records.h"
#include "tools/cli/cli.h"
#include "tools/cli/data_session.h"
#include "tools/measure/histogram.h"

namespace CLI {
class App;
}

// What the benchmarks have in common: which records, and whether they arrived.
namespace conclave::tools {

// Of one poll.
inline constexpr size_t kBenchPollRecords = 5000;

// More than that a benchmark does not keep track of, in memory.
inline constexpr uint64_t kBenchRecordsMost = 100'000'000;

struct BenchArguments {
  std::string topic;
  uint64_t records = 0;
  uint64_t bytes = 0;
  size_t record_size = 1024;
  std::string acks = "all";
  std::string compression = "none";
  uint64_t seed = 1;
  size_t batch_bytes = ProducerOptions().batch_bytes;
  size_t request_bytes = ProducerOptions().request_bytes;
  // Keys to spread the records by; 0: none.
  uint64_t keys = 0;
  bool no_verify = false;

  uint64_t count() const;
  // Where there are keys.
  std::string KeyOf(uint64_t number) const;
};

// Adds a verb with the options that say which topic, and which records.
CLI::App* AddBenchVerb(CLI::App* bench, const char* verb, const char* help,
                       BenchArguments& arguments);
void AddAcksOption(CLI::App* command, BenchArguments& arguments);
void AddPartitionOption(CLI::App* command, std::optional<int32_t>& partition);

// Where a record was stored, as its acknowledgement said. Partition -1: it was not acknowledged.
struct Place {
  int32_t partition = -1;
  int64_t offset = -1;
};

// What one run measured.
struct Measured {
  uint64_t records = 0;
  uint64_t bytes = 0;
  Duration took;
  // Nanoseconds.
  Histogram latency;
  ContentHash hash;
  // Of reading back: records that were sent and not acknowledged, and are in the log all the same.
  uint64_t unacknowledged = 0;
};

// Refuses (INVALID_REQUEST) more than kBenchRecordsMost.
absl::Status CheckCount(uint64_t records);

using PartitionOffsets = std::map<PartitionIndex, Offset>;

// The high watermarks of a topic's partitions.
absl::StatusOr<PartitionOffsets> EndsOf(DataSession& session, const std::string& topic);
// Waits until as many records have come behind `from`, or for the session's timeout: for acks=0,
// where no answer tells it.
absl::Status AwaitStored(DataSession& session, const std::string& topic,
                         const PartitionOffsets& from, uint64_t records);

// Reads the partitions from their first records to where they ended at the call, and checks that
// they hold the benchmark's records alone, none twice, in the order in which they were sent, and,
// but for `no_verify`, each one's content. Timed is reading as many as there must be.
absl::StatusOr<Measured> ReadAll(DataSession& session, const BenchArguments& arguments);

// Reads from the offsets `from`, where the partitions ended before the benchmark, to where they end
// now, and checks each record's content and key, that it stands where it was acknowledged, behind
// those sent before it to the same partition, and that no number comes twice. Records of others
// between them are passed over.
absl::StatusOr<Measured> ReadBack(DataSession& session, const BenchArguments& arguments,
                                  const PartitionOffsets& from, const std::vector<Place>& places);

// Reads back, and compares with what was sent: every record acknowledged is there.
absl::Status Verify(DataSession& session, const BenchArguments& arguments,
                    const PartitionOffsets& from, const std::vector<Place>& places,
                    const Measured& acknowledged);

// The code of what was read or stored wrongly.
absl::Status WrongData(const std::string& what);

// Nanoseconds as the microseconds that outputs show.
Json LatencyJson(const Histogram& latency);
std::string MillisecondsText(uint64_t nanoseconds);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_BENCH_RUN_H_
