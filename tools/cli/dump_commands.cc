#include <google/protobuf/util/json_util.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/log/dump.h"
#include "common/error/error.h"
#include "common/fs/posix_file_system.h"
#include "common/metadata/image.h"
#include "conclave/v1/metadata_records.pb.h"
#include "conclave/v1/raft.pb.h"
#include "raft/storage/rocksdb_log_storage.h"
#include "tools/cli/cli.h"
#include "tools/storage/format.h"

namespace conclave::tools {
namespace {

// Ids are bytes on the wire, which protobuf writes as padded base64; people know them in the
// URL-safe form without padding.
void WriteIdsAsText(Json& json) {
  static const std::set<std::string> kIds = {"cluster_id", "topic_id", "directory_id",
                                             "directory_ids", "incarnation_id"};
  if (json.is_array()) {
    for (Json& item : json) WriteIdsAsText(item);
    return;
  }
  if (!json.is_object()) return;
  const auto rewrite = [](Json& value) {
    std::string text = value.get<std::string>();
    std::replace(text.begin(), text.end(), '+', '-');
    std::replace(text.begin(), text.end(), '/', '_');
    value = text.substr(0, text.find('='));
  };
  for (auto& [key, value] : json.items()) {
    if (kIds.count(key) > 0 && value.is_string()) {
      rewrite(value);
    } else if (kIds.count(key) > 0 && value.is_array()) {
      for (Json& item : value) rewrite(item);
    } else {
      WriteIdsAsText(value);
    }
  }
}

Json ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!printed.ok()) return {{"unprintable", std::string(printed.message())}};
  Json json = Json::parse(text);
  WriteIdsAsText(json);
  return json;
}

const char* KindName(raft::EntryKind kind) {
  switch (kind) {
    case raft::EntryKind::kNoop:
      return "noop";
    case raft::EntryKind::kVoters:
      return "voters";
    case raft::EntryKind::kData:
      return "data";
  }
  return "unknown";
}

Json ToJson(const raft::Entry& entry) {
  Json json = {
      {"index", entry.index.value()}, {"term", entry.term.value()}, {"kind", KindName(entry.kind)}};
  v1::VoterSet voters;
  v1::MetadataBatch batch;
  if (entry.kind == raft::EntryKind::kVoters && voters.ParseFromString(*entry.data)) {
    json["voters"] = ToJson(voters)["voters"];
  } else if (entry.kind == raft::EntryKind::kData && batch.ParseFromString(*entry.data)) {
    json["batch"] = ToJson(batch);
  } else if (entry.kind != raft::EntryKind::kNoop) {
    json["undecodable_bytes"] = entry.data->size();
  }
  return json;
}

absl::StatusOr<raft::RecoveredState> ReadLog(const std::string& data_dir) {
  auto log = raft::RocksDbLogStorage::OpenReadOnly(JoinPath(data_dir, kRaftDirectoryName));
  if (!log.ok()) return log.status();
  return (*log)->Load();
}

// One object a line: a log may be long.
int DumpLog(const std::string& data_dir) {
  const auto state = ReadLog(data_dir);
  if (!state.ok()) return Report(state.status());
  Json hard_state = {{"term", state->hard_state.term.value()}, {"vote", nullptr}};
  if (state->hard_state.vote) {
    hard_state["vote"] = {{"node_id", state->hard_state.vote->node.value()},
                          {"directory_id", state->hard_state.vote->directory.ToString()}};
  }
  std::cout << Json{{"hard_state", hard_state}}.dump() << '\n';
  for (const raft::Entry& entry : state->entries) std::cout << ToJson(entry).dump() << '\n';
  std::cout.flush();
  return kDone;
}

int DumpMetadata(const std::string& data_dir) {
  const auto state = ReadLog(data_dir);
  if (!state.ok()) return Report(state.status());
  MetadataImage image;
  for (const raft::Entry& entry : state->entries) {
    if (entry.kind != raft::EntryKind::kData) continue;
    v1::MetadataBatch batch;
    absl::Status applied = MakeError(v1::CORRUPT_MESSAGE, "it is no batch of records");
    if (batch.ParseFromString(*entry.data)) applied = image.Apply({entry.index, entry.term}, batch);
    if (!applied.ok()) {
      return Report(MakeError(ErrorCodeOf(applied),
                              absl::StrCat("entry ", entry.index.value(), " of the log in ",
                                           data_dir, ": ", std::string(applied.message()))));
    }
  }
  PrintJson({{"index", image.position().index.value()},
             {"term", image.position().term.value()},
             {"image", ToJson(image.ToProto())}});
  return kDone;
}

void PrintLine(const std::string& json) { std::cout << json << '\n'; }

// What was read until then is printed before an error is.
int ReportDump(const absl::Status& status) {
  std::cout.flush();
  return status.ok() ? kDone : Report(status);
}

bool IsIndex(const std::string& path) {
  return absl::EndsWith(path, ".index") || absl::EndsWith(path, ".timeindex");
}

int DumpIndexFile(const std::string& path) {
  PosixFileSystem fs;
  return ReportDump(DumpIndex(fs, path, PrintLine));
}

int DumpSegmentFile(const std::string& path, bool records) {
  PosixFileSystem fs;
  // Where a shell gave all files of a segment, or the wrong one was named.
  if (IsIndex(path)) return DumpIndexFile(path);
  return ReportDump(DumpSegment(fs, path, records, PrintLine));
}

void AddLogFileCommands(CLI::App& dump, Run& run) {
  auto path = std::make_shared<std::string>();
  auto records = std::make_shared<bool>(false);
  CLI::App* segment = dump.add_subcommand("segment", "The batches of a segment, one object a line");
  segment->fallthrough();
  segment
      ->add_option("file", *path,
                   "A .log file of a partition; an index is shown as 'dump index' does")
      ->required();
  segment->add_flag("--records", *records, "With the records of each batch");
  segment->callback([&run, path, records] {
    run = [path, records] { return DumpSegmentFile(*path, *records); };
  });

  CLI::App* index = dump.add_subcommand("index", "The entries of an index, one object a line");
  index->fallthrough();
  index->add_option("file", *path, "A .index or .timeindex file of a partition")->required();
  index->callback([&run, path] { run = [path] { return DumpIndexFile(*path); }; });
}

}  // namespace

void AddDumpCommands(CLI::App& app, const Globals&, Run& run) {
  CLI::App* dump = app.add_subcommand("dump", "Files of a node, read offline, as JSON");
  dump->require_subcommand(1)->fallthrough();
  auto data_dir = std::make_shared<std::string>();
  CLI::App* log = dump->add_subcommand(
      "raft",
      "A controller's term, vote and log, one object a line; the last entries may not be "
      "committed");
  log->fallthrough();
  log->add_option("--data-dir", *data_dir, "The controller's data directory")->required();
  log->callback([&run, data_dir] { run = [data_dir] { return DumpLog(*data_dir); }; });

  CLI::App* metadata = dump->add_subcommand(
      "metadata", "The cluster's metadata as a controller's whole log makes it");
  metadata->fallthrough();
  metadata->add_option("--data-dir", *data_dir, "The controller's data directory")->required();
  metadata->callback([&run, data_dir] { run = [data_dir] { return DumpMetadata(*data_dir); }; });
  AddLogFileCommands(*dump, run);
}

}  // namespace conclave::tools
