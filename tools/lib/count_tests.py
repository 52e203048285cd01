"""Counts the test cases of a Bazel run from its build events and prints 'N passed, N failed'.

usage: count_tests.py EVENTS BAZEL_EXIT_CODE
Exits 0 only if something passed and nothing failed, in Bazel's opinion too.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree


def cases(path):
    """(passed, failed) of one JUnit file."""
    passed = failed = 0
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        if case.get("status") == "notrun" or case.find("skipped") is not None:
            continue
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        else:
            passed += 1
    return passed, failed


def main(events_path, bazel_status):
    passed = failed = 0
    with open(events_path, encoding="utf-8") as events:
        for line in events:
            event = json.loads(line)
            if "testResult" not in event:
                continue
            label = event["id"]["testResult"]["label"]
            result = event["testResult"]
            logs = {o["name"]: o.get("uri", "") for o in result.get("testActionOutput", [])}
            these = (0, 0)
            if "test.xml" in logs:
                try:
                    these = cases(urllib.parse.unquote(urllib.parse.urlparse(logs["test.xml"]).path))
                except (OSError, xml.etree.ElementTree.ParseError) as error:
                    print(f"{label}: cannot read its result: {error}", file=sys.stderr)
            if result["status"] != "PASSED" and these[1] == 0:
                # It crashed, or ran out of time, before it could say which case failed.
                these = (these[0], 1)
                print(f"{label}: {result['status']}", file=sys.stderr)
            passed += these[0]
            failed += these[1]
    if bazel_status != 0 and failed == 0:
        # Something did not build.
        print(f"Bazel ended with exit code {bazel_status}", file=sys.stderr)
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
