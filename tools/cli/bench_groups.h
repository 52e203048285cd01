#ifndef CONCLAVE_TOOLS_CLI_BENCH_GROUPS_H_
#define CONCLAVE_TOOLS_CLI_BENCH_GROUPS_H_

#include "tools/cli/cli.h"

namespace conclave::tools {

// Adds 'groups' to 'bench'. All of them outlive the app.
void AddBenchGroupsCommand(CLI::App* bench, const Globals& globals, Run& run);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_BENCH_GROUPS_H_
