"""Holds every include of a core against an allow-list: what neither Bazel's visibility nor clang's
layering check sees are system headers, which are everywhere."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
                                "tests/integration"))
import test_main  # noqa: E402

ROOT = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])

# The standard library without threads, clocks, files, streams to them, or randomness; and without
# containers whose order would show.
STANDARD = {
    "algorithm", "any", "array", "bit", "charconv", "cmath", "compare", "concepts", "cstddef",
    "cstdint", "cstring", "deque", "functional", "initializer_list", "iterator", "limits", "list",
    "map", "memory", "new", "numeric", "optional", "ostream", "queue", "set", "span", "sstream",
    "string", "string_view", "tuple", "type_traits", "utility", "variant", "vector",
}

LIBRARIES = [
    r"absl/(algorithm|base|container|functional|memory|meta|numeric|status|strings|types)/.*\.h",
    # Checks of invariants; logging is for the driver.
    r"glog/logging\.h",
]

COMMON = [
    r"common/(types|random|error|metadata|config|buffer|record|checksum|text)/[a-z0-9_]+\.h",
]

# Messages, and never services.
MESSAGES = [r"conclave/v1/(?!\w+_service)\w+\.pb\.h"]

CORES = {
    "raft/core": [r"raft/core/.*\.h"],
    "controller/core": [r"controller/core/.*\.h"],
    "broker/replication": [r"broker/replication/.*\.h"],
    "broker/group": [r"broker/group/.*\.h"],
    # The image is shared by cores, and so is one.
    "common/metadata": [r"common/.*\.h"],
}

TEST_FILE = re.compile(r"(_test|_harness|testing|test_cluster|test_\w+)\.(cc|h)$")


def includes(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if found:
                yield number, found.group(1)


def sources(core):
    folder = os.path.join(ROOT, core)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith((".h", ".cc")) and not TEST_FILE.search(name):
            yield os.path.join(folder, name)


class IncludeTest(unittest.TestCase):

    def test_cores_include_only_what_a_core_may(self):
        checked = 0
        wrong = []
        for core, own in CORES.items():
            allowed = [re.compile(p + "$") for p in LIBRARIES + COMMON + MESSAGES + own]
            for path in sources(core):
                checked += 1
                for number, header in includes(path):
                    if header in STANDARD or any(p.match(header) for p in allowed):
                        continue
                    wrong.append(f"{os.path.relpath(path, ROOT)}:{number}: {header}")
        self.assertEqual(wrong, [])
        self.assertGreater(checked, 60)

    def test_the_list_refuses_what_it_is_there_to_refuse(self):
        allowed = [re.compile(p + "$") for p in LIBRARIES + COMMON + MESSAGES]
        for header in ("thread", "mutex", "chrono", "fstream", "iostream", "random", "atomic",
                       "grpcpp/grpcpp.h", "rocksdb/db.h", "unistd.h", "absl/time/time.h",
                       "absl/synchronization/mutex.h", "conclave/v1/raft_service.pb.h",
                       "common/executor/executor.h", "common/transport/transport.h"):
            self.assertFalse(
                header in STANDARD or any(p.match(header) for p in allowed), header)


if __name__ == "__main__":
    test_main.main(__name__)
