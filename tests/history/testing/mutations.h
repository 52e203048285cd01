#ifndef CONCLAVE_TESTS_HISTORY_TESTING_MUTATIONS_H_
#define CONCLAVE_TESTS_HISTORY_TESTING_MUTATIONS_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/random/random.h"
#include "tests/history/history.h"

namespace conclave::history {

// Something that a cluster must never do, put into a generated history.
struct Mutation {
  std::string name;
  // The rules that notice, all of them and no others.
  std::set<int> rules;
  // False: the history has no place for it, and is as it was.
  std::function<bool(History&, Random&)> apply;
};

std::vector<Mutation> SendMutations();
std::vector<Mutation> PollMutations();
std::vector<Mutation> GroupMutations();
std::vector<Mutation> MetadataMutations();

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_TESTING_MUTATIONS_H_
