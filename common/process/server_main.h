#ifndef CONCLAVE_COMMON_PROCESS_SERVER_MAIN_H_
#define CONCLAVE_COMMON_PROCESS_SERVER_MAIN_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/config/endpoint.h"
#include "common/config/setting.h"
#include "common/process/process.h"
#include "common/transport/transport.h"

// What the mains of all servers share: the command line, the settings, and the wait for a signal.
namespace conclave {

struct ServerProgram {
  std::string name;
  // The first lines of --help.
  std::string description;
  // Values of required settings, by key, for the command line that --help shows.
  std::map<std::string, std::string> example;
  // Lives as long as the process.
  const SettingsSchema& schema;
  // Serves until a signal comes, or tells why it cannot. All required settings are there.
  std::function<absl::Status(const Settings&, const TerminationSignals&)> run;
};

// Reads the command line (--config FILE, --set key=value) and the settings, and runs the program.
// Returns its exit code: 0 done, 1 with the reason on stderr, CLI11's own where the command line is
// wrong.
int ServerMain(int argc, char** argv, const ServerProgram& program);

// What others connect to: as configured; else what the server is bound to, with the port that was
// chosen for port 0.
std::string AdvertisedEndpoint(const std::optional<Endpoint>& configured, const Server& server);

// Says on stdout where the server listens, as "listening on host:port", which tools wait for; then
// waits for the signal to stop.
void AnnounceAndWait(const Server& server, const TerminationSignals& signals);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_PROCESS_SERVER_MAIN_H_
