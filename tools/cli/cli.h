#ifndef CONCLAVE_TOOLS_CLI_CLI_H_
#define CONCLAVE_TOOLS_CLI_CLI_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace conclave::tools {

using Json = nlohmann::ordered_json;

// What a command's process ends with.
enum ExitCode : int {
  kDone = 0,
  // The cluster, or this program, refused or failed.
  kRefused = 1,
  kWrongUsage = 2,
  kUnreachable = 3,
};

// What every command knows. Filled in by the parser before a command runs.
struct Globals {
  std::string bootstrap;
  std::string output = "table";
  int timeout_seconds = 30;

  bool json() const { return output == "json"; }
};

// A command, as the parser found it. Set by the subcommand that was named.
using Run = std::function<int()>;

// Each adds its noun, with its verbs, to the program. `globals` and `run` outlive the app.
void AddStorageCommands(CLI::App& app, const Globals& globals, Run& run);
void AddClusterCommands(CLI::App& app, const Globals& globals, Run& run);
void AddTopicCommands(CLI::App& app, const Globals& globals, Run& run);
// 'elect-leader', of `topic`.
void AddElectLeaderCommand(CLI::App& topic, const Globals& globals, Run& run);
void AddQuorumCommands(CLI::App& app, const Globals& globals, Run& run);
void AddBrokerCommands(CLI::App& app, const Globals& globals, Run& run);
void AddGroupCommands(CLI::App& app, const Globals& globals, Run& run);
void AddDumpCommands(CLI::App& app, const Globals& globals, Run& run);
// Verbs without a noun.
void AddProduceCommand(CLI::App& app, const Globals& globals, Run& run);
void AddConsumeCommand(CLI::App& app, const Globals& globals, Run& run);
void AddBenchCommands(CLI::App& app, const Globals& globals, Run& run);

// --- Output

// First of all: what is written to std::cout is watched from here on.
void StartOutput();
// Last of all. What `exit_code` becomes: as it is, or kRefused, reported, where stdout did not take
// all that was written. A reader that has gone away is no error.
int FinishOutput(int exit_code);

// Rows under headings, columns as wide as they need to be.
void PrintTable(const std::vector<std::string>& headings,
                const std::vector<std::vector<std::string>>& rows);
void PrintJson(const Json& json);
// On stderr: code, message and what to do. Returns the exit code that stands for it.
int Report(const absl::Status& status);
int ExitCodeFor(const absl::Status& status);

// The text form of an id's 16 bytes; empty for none.
std::string IdText(const std::string& bytes);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_CLI_H_
