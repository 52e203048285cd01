// conclave: administers clusters, and runs a whole one on this machine.
#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "tools/cli/cli.h"

int main(int argc, char** argv) {
  using namespace conclave::tools;
  StartOutput();
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);

  CLI::App app(
      "conclave: a distributed, replicated commit log that coordinates itself.\n"
      "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 nobody could be reached.");
  Globals globals;
  Run run;
  app.add_option("--bootstrap", globals.bootstrap,
                 "host:port of one or more nodes, separated by commas (or CONCLAVE_BOOTSTRAP, or "
                 "the local cluster in ./.conclave)");
  app.add_option("--output", globals.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  app.add_option("--timeout", globals.timeout_seconds, "Seconds that a command may take")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.require_subcommand(1);
  app.fallthrough();
  AddClusterCommands(app, globals, run);
  AddTopicCommands(app, globals, run);
  AddProduceCommand(app, globals, run);
  AddConsumeCommand(app, globals, run);
  AddGroupCommands(app, globals, run);
  AddBrokerCommands(app, globals, run);
  AddQuorumCommands(app, globals, run);
  AddStorageCommands(app, globals, run);
  AddDumpCommands(app, globals, run);
  AddBenchCommands(app, globals, run);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return FinishOutput(app.exit(error) == 0 ? kDone : kWrongUsage);
  }
  return FinishOutput(run());
}
