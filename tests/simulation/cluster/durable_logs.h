#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_DURABLE_LOGS_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_DURABLE_LOGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "common/fs/sim_file_system.h"
#include "common/types/ids.h"

namespace conclave::cluster_sim {

// How far the logs on a broker's disk would outlive a loss of power, found from the bytes of their
// files and what the disk knows of syncs: apart from the code that is tested.
class DurableLogs {
 public:
  // `disk` outlives it.
  explicit DurableLogs(SimFileSystem& disk) : disk_(disk) {}

  // Whether the record at `offset` of the log in `directory` is synced.
  bool Holds(const std::string& directory, Offset offset);
  // The log was cut, or its process ended: what was found holds no more.
  void Forget(const std::string& directory) { found_.erase(directory); }

 private:
  struct Found {
    // Of the segment that was read last, and how far that was.
    Offset base;
    uint64_t position = 0;
    // Records below it are durable, from the log's start on.
    Offset end;
  };

  // False: the segment is not there any more.
  bool ReadOn(const std::string& directory, Found& found);
  // False: it has no such segment.
  bool FindStart(const std::string& directory, Found& found);

  SimFileSystem& disk_;
  std::map<std::string, Found> found_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_DURABLE_LOGS_H_
