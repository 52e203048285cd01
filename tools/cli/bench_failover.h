#ifndef CONCLAVE_TOOLS_CLI_BENCH_FAILOVER_H_
#define CONCLAVE_TOOLS_CLI_BENCH_FAILOVER_H_

#include "tools/cli/cli.h"

namespace conclave::tools {

// Adds 'failover' to 'bench'. All of them outlive the app.
void AddBenchFailoverCommand(CLI::App* bench, const Globals& globals, Run& run);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_BENCH_FAILOVER_H_
