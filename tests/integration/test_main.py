"""Runs a module's unittest cases and writes the JUnit file that Bazel asks for, so that every case
is counted."""

import os
import sys
import time
import unittest
from xml.sax.saxutils import quoteattr


class _Recorder(unittest.TextTestResult):
    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.cases = []

    def startTest(self, test):
        self._began = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        failed = any(test is t for t, _ in self.failures + self.errors)
        self.cases.append((test.id(), time.monotonic() - self._began, failed))
        super().stopTest(test)


def main(module_name):
    module = sys.modules[module_name]
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=2, resultclass=_Recorder).run(suite)
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write('<?xml version="1.0"?>\n<testsuites><testsuite name="integration">\n')
            for name, seconds, failed in result.cases:
                file.write(f'<testcase name={quoteattr(name)} time="{seconds:.3f}">')
                if failed:
                    file.write('<failure message="see the log"/>')
                file.write("</testcase>\n")
            file.write("</testsuite></testsuites>\n")
    sys.exit(0 if result.wasSuccessful() and result.cases else 1)
