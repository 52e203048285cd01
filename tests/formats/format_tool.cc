// The C++ side of formats_test.py: batches from and to a plain description, and logs written and
// dumped by the broker's own code. Bytes are hex in JSON.
#include <glog/logging.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "broker/log/dump.h"
#include "broker/log/partition_log.h"
#include "common/buffer/buffer.h"
#include "common/fs/posix_file_system.h"
#include "common/record/batch_builder.h"
#include "common/record/batch_check.h"
#include "common/record/batch_header.h"
#include "common/record/batch_reader.h"
#include "common/record/record_view.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {
namespace {

using nlohmann::json;

std::string ReadInput() {
  return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
}

json ToHex(const std::optional<std::string_view>& bytes) {
  if (!bytes) return nullptr;
  std::string hex;
  for (const char byte : *bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex.push_back(kDigits[static_cast<uint8_t>(byte) >> 4]);
    hex.push_back(kDigits[static_cast<uint8_t>(byte) & 15]);
  }
  return hex;
}

std::optional<std::string> FromHex(const json& value) {
  if (value.is_null()) return std::nullopt;
  const std::string hex = value.get<std::string>();
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

int Encode() {
  const json in = json::parse(ReadInput());
  BatchBuilder builder(static_cast<Compression>(in.at("codec").get<int>()));
  const json& producer = in.at("producer");
  builder.SetProducer(ProducerId(producer[0]), ProducerEpoch(producer[1]), producer[2]);
  for (const json& record : in.at("records")) {
    const auto key = FromHex(record.at("key"));
    const auto value = FromHex(record.at("value"));
    std::vector<std::pair<std::string, std::optional<std::string>>> headers;
    for (const json& header : record.at("headers")) {
      headers.emplace_back(*FromHex(header[0]), FromHex(header[1]));
    }
    RecordView view;
    view.timestamp_ms = record.at("timestamp");
    if (key) view.key = *key;
    if (value) view.value = *value;
    for (const auto& [name, content] : headers) {
      HeaderView& header = view.headers.emplace_back();
      header.key = name;
      if (content) header.value = *content;
    }
    builder.Add(view);
  }
  const auto batch = builder.Finish();
  CHECK(batch.ok()) << batch.status();
  std::cout << PatchBatch(*batch, Offset(in.at("base_offset")), LeaderEpoch(in.at("leader_epoch")))
                   .ToString();
  return 0;
}

int Decode() {
  const Buffer batch(ReadInput());
  const auto header = CheckBatch(batch);
  CHECK(header.ok()) << header.status();
  auto reader = BatchReader::Open(batch);
  CHECK(reader.ok()) << reader.status();
  json records = json::array();
  RecordView record;
  for (;;) {
    const auto more = reader->Next(record);
    CHECK(more.ok()) << more.status();
    if (!*more) break;
    json headers = json::array();
    for (const HeaderView& h : record.headers) headers.push_back({ToHex(h.key), ToHex(h.value)});
    records.push_back({{"offset", record.offset.value()},
                       {"timestamp", record.timestamp_ms},
                       {"key", ToHex(record.key)},
                       {"value", ToHex(record.value)},
                       {"headers", headers}});
  }
  std::cout << json(
      {{"base_offset", header->base_offset.value()},
       {"leader_epoch", header->leader_epoch.value()},
       {"max_timestamp", header->max_timestamp_ms},
       {"producer",
        {header->producer_id.value(), header->producer_epoch.value(), header->base_sequence}},
       {"records", records}});
  return 0;
}

// Appends the batches of the input, one by one, to a log in `directory`, and stops it cleanly.
int Append(const std::string& directory, int64_t index_interval, int64_t segment_bytes) {
  PosixFileSystem fs;
  PartitionLog::OpenOptions options;
  options.config.index_interval_bytes = index_interval;
  options.config.segment_bytes = segment_bytes;
  auto log = PartitionLog::Open(fs, directory, options);
  CHECK(log.ok()) << log.status();
  const Buffer run(ReadInput());
  const auto batches = CheckBatchRun(run);
  CHECK(batches.ok()) << batches.status();
  for (const PlacedBatch& batch : *batches) {
    const Buffer one = run.Sub(batch.position, static_cast<size_t>(batch.header.size_bytes()));
    const absl::Status status = (*log)->AppendAsFollower(one, *CheckBatchRun(one), WallTime());
    CHECK(status.ok()) << status;
  }
  const absl::Status closed = (*log)->Close();
  CHECK(closed.ok()) << closed;
  return 0;
}

int Dump(const std::string& path) {
  PosixFileSystem fs;
  const auto emit = [](const std::string& line) { std::cout << line << "\n"; };
  const absl::Status status =
      path.ends_with(".log") ? DumpSegment(fs, path, true, emit) : DumpIndex(fs, path, emit);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace conclave

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 1 && args[0] == "encode") return conclave::Encode();
  if (args.size() == 1 && args[0] == "decode") return conclave::Decode();
  if (args.size() == 4 && args[0] == "append") {
    return conclave::Append(args[1], std::stoll(args[2]), std::stoll(args[3]));
  }
  if (args.size() == 2 && args[0] == "dump") return conclave::Dump(args[1]);
  std::cerr << "format_tool encode | decode | append DIR INTERVAL SEGMENT_BYTES | dump FILE\n";
  return 2;
}
