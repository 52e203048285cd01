#include "tests/history/check.h"

#include <utility>

#include "tests/history/eras.h"
#include "tests/history/findings.h"
#include "tests/history/key_view.h"
#include "tests/history/rules.h"

namespace conclave::history {

CheckReport Check(const History& history, const CheckOptions& options) {
  Findings findings(history, options);
  const Eras eras(history, options);
  const Views views = MakeViews(history, eras);
  for (const KeyView& view : views.views) {
    CheckSends(view, findings);
    CheckPolls(view, findings);
  }
  CheckGroups(history, eras, views, findings);
  CheckMetadata(history, findings);
  CheckDumps(history, findings);
  return std::move(findings).Take();
}

}  // namespace conclave::history
