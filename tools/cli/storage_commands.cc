#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/fs/posix_file_system.h"
#include "common/identity/identity.h"
#include "common/random/entropy.h"
#include "common/random/random.h"
#include "tools/cli/cli.h"
#include "tools/storage/format.h"

namespace conclave::tools {
namespace {

void Show(const Globals& globals, const std::string& directory, const Identity& identity) {
  if (globals.json()) {
    return PrintJson({{"data_dir", directory},
                      {"role", RoleName(identity.role)},
                      {"node_id", identity.node_id},
                      {"cluster_id", identity.cluster_id.ToString()},
                      {"directory_id", identity.directory_id.ToString()}});
  }
  PrintTable({"DATA DIR", "ROLE", "NODE ID", "CLUSTER ID", "DIRECTORY ID"},
             {{directory, RoleName(identity.role), std::to_string(identity.node_id),
               identity.cluster_id.ToString(), identity.directory_id.ToString()}});
}

struct FormatArguments {
  std::string directory;
  std::string role;
  int32_t node_id = -1;
  std::string cluster_id;
  std::string initial_voters;
};

int Format(const Globals& globals, const FormatArguments& arguments) {
  const auto cluster_id = ClusterId::Parse(arguments.cluster_id);
  if (!cluster_id || cluster_id->IsNone()) {
    return Report(MakeError(v1::INVALID_REQUEST,
                            absl::StrCat("\"", arguments.cluster_id,
                                         "\" is no cluster id; 'conclave storage random-id' draws "
                                         "one")));
  }
  FormatRequest request;
  request.directory = arguments.directory;
  request.role = arguments.role == "controller" ? NodeRole::kController : NodeRole::kBroker;
  request.node_id = arguments.node_id;
  request.cluster_id = *cluster_id;
  request.initial_voters = arguments.initial_voters;
  PosixFileSystem fs;
  Random random(EntropySeed());
  const auto identity = FormatStorage(fs, request, random);
  if (!identity.ok()) return Report(identity.status());
  Show(globals, request.directory, *identity);
  return kDone;
}

int Info(const Globals& globals, const std::string& directory) {
  PosixFileSystem fs;
  const auto identity = ReadIdentity(fs, directory);
  if (absl::IsNotFound(identity.status())) {
    return Report(
        MakeError(v1::INVALID_REQUEST,
                  absl::StrCat(directory, " is not formatted: it has no ", kIdentityFileName)));
  }
  if (!identity.ok()) return Report(identity.status());
  Show(globals, directory, *identity);
  return kDone;
}

int RandomId(const Globals& globals) {
  Random random(EntropySeed());
  const uint64_t high = random.Next();
  const std::string id = ClusterId::FromRandom(high, random.Next()).ToString();
  if (globals.json()) {
    PrintJson({{"id", id}});
  } else {
    std::cout << id << std::endl;
  }
  return kDone;
}

}  // namespace

void AddStorageCommands(CLI::App& app, const Globals& globals, Run& run) {
  CLI::App* storage = app.add_subcommand("storage", "Data directories of nodes");
  storage->require_subcommand(1)->fallthrough();

  auto arguments = std::make_shared<FormatArguments>();
  CLI::App* format =
      storage->add_subcommand("format", "Make an empty directory a node's own, once");
  format->fallthrough();
  format->add_option("--data-dir", arguments->directory, "The directory")->required();
  format->add_option("--role", arguments->role, "controller or broker")
      ->required()
      ->check(CLI::IsMember({"controller", "broker"}));
  format->add_option("--node-id,--broker-id", arguments->node_id, "The node's number, 0 or more")
      ->required();
  format->add_option("--cluster-id", arguments->cluster_id, "The same for all nodes of the cluster")
      ->required();
  format->add_option("--initial-voters", arguments->initial_voters,
                     "Of controllers that found a quorum: id@host:port#directory-id, separated by "
                     "commas; the same text on each. Without it a controller follows as an "
                     "observer");
  format->callback([&globals, &run, arguments] {
    run = [&globals, arguments] { return Format(globals, *arguments); };
  });

  auto directory = std::make_shared<std::string>();
  CLI::App* info = storage->add_subcommand("info", "Whose a directory is");
  info->fallthrough();
  info->add_option("--data-dir", *directory, "The directory")->required();
  info->callback([&globals, &run, directory] {
    run = [&globals, directory] { return Info(globals, *directory); };
  });

  CLI::App* random_id =
      storage->add_subcommand("random-id", "Draw an id for a cluster or a directory");
  random_id->fallthrough();
  random_id->callback([&globals, &run] { run = [&globals] { return RandomId(globals); }; });
}

}  // namespace conclave::tools
