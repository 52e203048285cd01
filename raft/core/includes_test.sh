#!/bin/bash
# The core includes values, messages and checks, and nothing that does something: Bazel's visibility
# cannot refuse a system header.
set -eu
allowed='^#include ("(raft/core|common/types|common/random|conclave/v1|absl/status|absl/strings)/[a-z0-9_./]+"'
allowed+='|<glog/logging\.h>|<(algorithm|array|compare|cstddef|cstdint|deque|functional|iterator|map'
allowed+='|memory|optional|ostream|set|string|string_view|utility|vector)>)$'
bad=0
for file in raft/core/*.h raft/core/*.cc; do
  case "$file" in *_test.cc | *test_cluster.*) continue ;; esac
  if grep -nE '^\s*#\s*include' "$file" | sed 's/^[0-9]*://' | grep -vE "$allowed"; then
    echo "$file may not include the above; see raft/core/README.md"
    bad=1
  fi
  if grep -nE '\bunordered_(map|set)\b|\bstd::(thread|mutex|chrono)\b|_service\.pb' "$file"; then
    echo "$file may not use the above; see raft/core/README.md"
    bad=1
  fi
done
exit $bad
