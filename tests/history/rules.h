#ifndef CONCLAVE_TESTS_HISTORY_RULES_H_
#define CONCLAVE_TESTS_HISTORY_RULES_H_

#include "tests/history/eras.h"
#include "tests/history/findings.h"
#include "tests/history/key_view.h"

// The rules of check.h by family, each of which adds what it finds.
namespace conclave::history {

// 2 to 5, 9 and 10, of one log in one era.
void CheckSends(const KeyView& view, Findings& findings);
// 1, 6 to 8 and 11, of one log in one era.
void CheckPolls(const KeyView& view, Findings& findings);
// 12 to 14.
void CheckGroups(const History& history, const Eras& eras, const Views& views, Findings& findings);
// 15.
void CheckMetadata(const History& history, Findings& findings);
// 16.
void CheckDumps(const History& history, Findings& findings);

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_RULES_H_
