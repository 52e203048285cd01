#include "common/process/server_main.h"

#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/config/settings_file.h"
#include "common/process/open_files.h"

namespace conclave {
namespace {

absl::Status LoadAndRun(const ServerProgram& program, const std::string& path,
                        const std::vector<std::string>& overrides) {
  // Before whatever starts a thread.
  const TerminationSignals signals;
  const auto settings = LoadSettings(program.schema, path, overrides);
  if (!settings.ok()) return settings.status();
  return program.run(*settings, signals);
}

// The settings that must be given, a command line that gives them, and where the others are told.
std::string SettingsHelp(const ServerProgram& program) {
  std::string text = "Required settings:\n";
  std::string example = program.name;
  for (const SettingDefinition& definition : program.schema.definitions()) {
    if (!definition.required) continue;
    absl::StrAppend(&text, "  ", definition.key, ": ", AllowedValues(definition), ". ",
                    definition.documentation, "\n");
    const auto value = program.example.find(definition.key);
    if (value == program.example.end()) continue;
    absl::StrAppend(&example, " --set ", definition.key, "=", value->second);
  }
  absl::StrAppend(&text, "Example:\n  ", example, "\nAll settings, and their defaults, are in ",
                  "docs/configuration.md; the others are:\n ");
  for (const SettingDefinition& definition : program.schema.definitions()) {
    if (!definition.required) absl::StrAppend(&text, " ", definition.key);
  }
  return text;
}

}  // namespace

int ServerMain(int argc, char** argv, const ServerProgram& program) {
  CLI::App app(program.description);
  std::string config;
  std::vector<std::string> overrides;
  app.add_option("--config", config, "Configuration file (TOML)");
  app.add_option("--set", overrides, "key=value: a setting, over what the file says")
      ->allow_extra_args(false);
  app.footer(SettingsHelp(program));
  CLI11_PARSE(app, argc, argv);
  InitLogging(argv[0]);
  RaiseOpenFilesLimit();
  if (absl::Status enough = CheckOpenFilesLimit(); !enough.ok()) return ExitCodeOf(enough);
  return ExitCodeOf(LoadAndRun(program, config, overrides));
}

std::string AdvertisedEndpoint(const std::optional<Endpoint>& configured, const Server& server) {
  return configured ? ToString(*configured) : server.endpoint();
}

void AnnounceAndWait(const Server& server, const TerminationSignals& signals) {
  std::cout << "listening on " << server.endpoint() << std::endl;
  const int signal = signals.Wait();
  LOG(INFO) << "stopping on signal " << signal;
}

}  // namespace conclave
