// conclave: administers clusters, and runs a whole one on this machine.
#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/cli.h"
#include "tools/cli/suggest.h"

namespace {

// CHANGELOG.md has what is in it.
constexpr char kVersion[] = "conclave 0.1.0 (unreleased)";

// What others have, and people type first.
void AddHelpCommand(CLI::App& app, conclave::tools::Run& run) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app.add_subcommand("help", "The same as --help, of the program or a command");
  help->add_option("command", *words, "Such as: topic create");
  help->callback([&app, &run, words] {
    run = [&app, words] {
      const CLI::App* at = &app;
      for (const std::string& word : *words) {
        const auto known =
            at->get_subcommands([&](const CLI::App* a) { return a->check_name(word); });
        if (known.empty()) {
          const std::string why = conclave::tools::ExplainUnknown(app, *words);
          std::cerr << "conclave: "
                    << (why.empty() ? "there is no command '" + word + "' there" : why)
                    << std::endl;
          return conclave::tools::kWrongUsage;
        }
        at = known.front();
      }
      // Not App::help, which would describe the subcommand that was parsed: this one. The usage
      // line names the commands above.
      std::string name = at->get_name();
      for (const CLI::App* up = at->get_parent(); up != nullptr; up = up->get_parent()) {
        name = up->get_name() + " " + name;
      }
      std::cout << at->get_formatter()->make_help(at, name, CLI::AppFormatMode::Normal)
                << std::flush;
      return conclave::tools::kDone;
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  using namespace conclave::tools;
  StartOutput();
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);

  CLI::App app(
      "conclave: a distributed, replicated commit log that coordinates itself.\n"
      "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no answer came in time, or nobody "
      "could be reached.");
  Globals globals;
  Run run;
  app.add_option("--bootstrap", globals.bootstrap,
                 "host:port of one or more nodes, separated by commas (or CONCLAVE_BOOTSTRAP, or "
                 "the local cluster in ./.conclave)");
  app.add_option("--output", globals.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  app.add_option("--timeout", globals.timeout_seconds,
                 "Seconds that each request of a command is tried for")
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

  AddHelpCommand(app, run);
  app.set_version_flag("--version", kVersion, "Print the version");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::string why =
        error.get_exit_code() == 0
            ? ""
            : ExplainUnknown(app, std::vector<std::string>(argv + 1, argv + argc));
    if (why.empty()) return FinishOutput(app.exit(error) == 0 ? kDone : kWrongUsage);
    std::cerr << "conclave: " << why << "\nRun with --help for more information." << std::endl;
    return kWrongUsage;
  }
  return FinishOutput(run());
}
