#include "common/process/server_main.h"

#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/settings_file.h"

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

}  // namespace

int ServerMain(int argc, char** argv, const ServerProgram& program) {
  CLI::App app(program.description);
  std::string config;
  std::vector<std::string> overrides;
  app.add_option("--config", config, "Configuration file (TOML)");
  app.add_option("--set", overrides, "key=value: a setting, over what the file says")
      ->allow_extra_args(false);
  CLI11_PARSE(app, argc, argv);
  InitLogging(argv[0]);
  RaiseOpenFilesLimit();
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
