// Holds histories that were recorded elsewhere against the contract; see --help and text.h.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "tests/history/check.h"
#include "tests/history/history.h"
#include "tests/history/text.h"

namespace conclave::history {
namespace {

constexpr int kClean = 0;
constexpr int kViolated = 1;
constexpr int kUnusable = 2;

// False: it said why not.
bool ReadFile(const std::string& path, History& history) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  uint64_t number = 0;
  while (in && std::getline(in, line)) {
    ++number;
    const absl::Status read = ReadLine(line, history);
    if (read.ok()) continue;
    std::cerr << path << ":" << number << ": " << read.message() << "\n";
    return false;
  }
  if (in.eof() && !in.bad()) return true;
  std::cerr << path << ": cannot be read\n";
  return false;
}

int Main(int argc, char** argv) {
  std::vector<std::string> files;
  CheckOptions options;
  CLI::App app(
      "Checks histories of a cluster's clients, a JSON object a line (docs/testing.md), together. "
      "Exit code 0: they are clean; 1: rules are broken, each violation a line; 2: wrong usage, or "
      "a line that cannot be read.");
  app.add_option("files", files, "Files of one history, in any order")->required();
  const std::map<std::string, CheckOptions::FlushPolicy> policies = {
      {"fsync", CheckOptions::FlushPolicy::kFsync},
      {"replicated", CheckOptions::FlushPolicy::kReplicated}};
  app.add_option("--flush-policy", options.flush_policy,
                 "fsync, or replicated: what so many simultaneous losses of power as the minimum "
                 "ISR may lose is excused")
      ->transform(CLI::CheckedTransformer(policies));
  app.add_option("--min-insync-replicas", options.min_insync_replicas, "Of the topics")
      ->check(CLI::Range(1, 1'000));
  app.add_option("--max-violations", options.max_violations_per_rule,
                 "Of a rule; further ones are only counted")
      ->check(CLI::Range(size_t{1}, size_t{1'000'000}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kClean : kUnusable;
  }
  History history;
  for (const std::string& file : files) {
    if (!ReadFile(file, history)) return kUnusable;
  }
  const CheckReport report = Check(history, options);
  for (const Violation& violation : report.violations) {
    std::cout << "rule " << violation.rule << ": " << violation.message << "\n";
  }
  std::cout << history.operations() << " operations on " << history.keys() << " logs: ";
  if (report.clean()) std::cout << "clean";
  const char* separator = "violations of ";
  for (const auto& [rule, count] : report.counts) {
    std::cout << separator << "rule " << rule << " (" << count << ")";
    separator = ", ";
  }
  std::cout << std::endl;
  return report.clean() ? kClean : kViolated;
}

}  // namespace
}  // namespace conclave::history

int main(int argc, char** argv) { return conclave::history::Main(argc, argv); }
