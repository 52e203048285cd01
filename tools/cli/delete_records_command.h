#ifndef CONCLAVE_TOOLS_CLI_DELETE_RECORDS_COMMAND_H_
#define CONCLAVE_TOOLS_CLI_DELETE_RECORDS_COMMAND_H_

#include "tools/cli/cli.h"

namespace conclave::tools {

// Adds "delete-records" to the noun "topic".
void AddDeleteRecords(CLI::App& topic, const Globals& globals, Run& run);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_DELETE_RECORDS_COMMAND_H_
