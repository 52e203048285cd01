#ifndef CONCLAVE_TOOLS_CLUSTER_FREE_PORT_H_
#define CONCLAVE_TOOLS_CLUSTER_FREE_PORT_H_

#include <set>

#include "absl/status/statusor.h"

namespace conclave::tools {

// Whether nobody listens on the port of 127.0.0.1. False also where that cannot be found out.
bool PortIsFree(int port);

// Finds ports on 127.0.0.1 that nobody listens on, each once. Nothing keeps another process from
// taking one before it is used; the node's start then says so.
class PortChooser {
 public:
  // `preferred` if it is free, else any.
  absl::StatusOr<int> Choose(int preferred);

 private:
  std::set<int> chosen_;
};

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLUSTER_FREE_PORT_H_
