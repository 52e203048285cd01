"""What the benchmark's figures are made into: ratios within rounds, verdicts, the page."""

import os
import sys
import unittest

for folder in ("tests/integration", "tests/bench/harness"):
    sys.path.insert(0, os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
                                    folder))
import plot  # noqa: E402
import report  # noqa: E402
import targets  # noqa: E402
import test_main  # noqa: E402


def line(target, figures):
    return target.judge(figures)


class TargetsTest(unittest.TestCase):

    def test_ratios_are_taken_within_a_round(self):
        target = targets.Target("g", "t", targets.ratio("a", "b"), ">=", 0.5)
        # Round 1 was slow for both; a round where one is missing does not count.
        judged = line(target, {"a": [[0, 60], [1, 6], [2, 50], [3, 9]],
                               "b": [[0, 100], [1, 10], [2, 100]]})
        self.assertEqual(judged["values"], [0.6, 0.6, 0.5])
        self.assertEqual((judged["median"], judged["least"], judged["most"]), (0.6, 0.5, 0.6))
        self.assertIs(judged["met"], True)

    def test_a_peer_counts_at_its_best(self):
        self.assertEqual(targets.ratio("a", ["one", "six"])(
            {"a": [[0, 100]], "one": [[0, 10]], "six": [[0, 20]]}), [5])
        self.assertEqual(targets.ratio("a", ["one", "six"], best=min)(
            {"a": [[0, 100]], "one": [[0, 10]], "six": [[0, 20]]}), [10])

    def test_both_senses(self):
        for sense, met in ((">=", False), ("<=", True)):
            judged = line(targets.Target("g", "t", targets.value("a"), sense, 3), {"a": [[0, 2]]})
            self.assertIs(judged["met"], met)

    def test_what_was_not_measured_is_neither_met_nor_missed(self):
        for judged in targets.judge({}):
            self.assertIsNone(judged["met"], judged["target"])

    def test_the_worst_of_all_counts_where_it_is_asked_for(self):
        self.assertEqual(targets.worst("gap")({"gap": [[0, 200], [0, 900], [1, 300]]}), [900])

    def test_a_synced_acknowledgement_is_held_against_its_parts(self):
        target = next(t for t in targets.TARGETS if "fdatasync" in t.text)
        judged = line(target, {"conclave.ack_fsync_one_p50_us": [[0, 1300]],
                               "ceiling.echo_p50_us": [[0, 200]],
                               "ceiling.fdatasync_p50_us": [[0, 400]]})
        self.assertEqual(judged["median"], 1.0)
        self.assertIs(judged["met"], True)

    def test_small_records_are_judged_in_proportion_to_the_machine(self):
        target = next(t for t in targets.TARGETS if "100-byte" in t.text)
        judged = line(target, {"conclave.produce_100b_per_second": [[0, 1.25e6]],
                               "ceiling.append_256k_mb": [[0, 400]]})
        self.assertAlmostEqual(judged["median"], 1.0)


class PageTest(unittest.TestCase):

    def setUp(self):
        figures = {"conclave.idle_cpu_percent": [[0, 5.0]], "conclave.idle_broker_mib": [[0, 20.0]]}
        self.run = {"quick": False, "rounds": 1, "seconds": 60, "machine": {"cpu": "2 x fast"},
                    "targets": targets.judge(figures), "notes": {"kafka": "not found: no jars"},
                    "shares": {0: {"idle": {"steal_percent": 1.0, "busy_percent": 9.0}}},
                    "figures": figures}

    def test_every_target_has_its_line(self):
        page = report.page(self.run)
        for target in targets.TARGETS:
            self.assertEqual(page.count(f"| {target.text} |"), 1, target.text)
        self.assertIn("1 targets met, 1 missed", page)
        self.assertIn("| 5 % | 5 to 5 (1) | **no** |", page)
        self.assertIn("kafka: not found: no jars", page)
        self.assertNotIn("quick run:", page)

    def test_a_quick_run_says_so(self):
        self.assertIn("quick run", report.page({**self.run, "quick": True}))

    def test_the_plot_has_a_bar_or_a_word_for_each(self):
        drawn = plot.svg(self.run["targets"], "title")
        self.assertEqual(drawn.count("not measured"), len(targets.TARGETS) - 2)
        self.assertEqual(drawn.count(plot.COLOURS[True]), 1)
        self.assertEqual(drawn.count(plot.COLOURS[False]), 1)

    def test_longer_bars_are_better_in_both_senses(self):
        self.assertGreater(plot._achieved({"sense": ">=", "bound": 2}, 4), 1)
        self.assertLess(plot._achieved({"sense": "<=", "bound": 2}, 4), 1)


if __name__ == "__main__":
    test_main.main(__name__)
