#ifndef CONCLAVE_TOOLS_CLI_BENCH_LATENCY_H_
#define CONCLAVE_TOOLS_CLI_BENCH_LATENCY_H_

#include "tools/cli/cli.h"

namespace conclave::tools {

// Adds 'latency' to 'bench'. All of them outlive the app.
void AddBenchLatencyCommand(CLI::App* bench, const Globals& globals, Run& run);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_BENCH_LATENCY_H_
