#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_COVERAGE_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_COVERAGE_H_

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>

namespace conclave::cluster_sim {

// How often each kind of thing happened: faults by kind, branches of the protocols, what clients
// were told. A simulation in which something never happens proves nothing about it.
class Coverage {
 public:
  void Count(std::string_view what, uint64_t times = 1) {
    const auto it = counts_.find(what);
    if (it == counts_.end()) {
      counts_.emplace(what, times);
    } else {
      it->second += times;
    }
  }
  uint64_t operator[](std::string_view what) const {
    const auto it = counts_.find(what);
    return it == counts_.end() ? 0 : it->second;
  }
  Coverage& operator+=(const Coverage& other) {
    for (const auto& [what, times] : other.counts_) Count(what, times);
    return *this;
  }
  const std::map<std::string, uint64_t, std::less<>>& counts() const { return counts_; }

 private:
  std::map<std::string, uint64_t, std::less<>> counts_;
};

inline std::ostream& operator<<(std::ostream& out, const Coverage& coverage) {
  const char* separator = "";
  for (const auto& [what, times] : coverage.counts()) {
    out << separator << times << " " << what;
    separator = ", ";
  }
  return out;
}

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_COVERAGE_H_
