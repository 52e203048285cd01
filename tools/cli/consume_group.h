#ifndef CONCLAVE_TOOLS_CLI_CONSUME_GROUP_H_
#define CONCLAVE_TOOLS_CLI_CONSUME_GROUP_H_

#include <cstdint>
#include <string>

#include "common/types/time.h"
#include "tools/cli/cli.h"

namespace conclave::tools {

struct GroupConsumeArguments {
  std::string topic;
  std::string group;
  // Where the group has committed nothing; else at the end.
  bool from_beginning = false;
  // -1: without end.
  int64_t count = -1;
  bool exit_at_end = false;
  std::string format;
  Duration session_timeout;
  std::string instance_id;
  std::string assignor;
};

// Prints as a member of the group, commits what was printed, and leaves: at the end that was asked
// for, at SIGINT and SIGTERM, or where it cannot go on. Returns the exit code.
int ConsumeAsMember(const Globals& globals, const GroupConsumeArguments& arguments);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_CONSUME_GROUP_H_
