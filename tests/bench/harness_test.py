"""What the benchmark's figures are made into: ratios within rounds, verdicts, the page; and what it
refuses before it measures anything."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

for folder in ("tests/integration", "tests/bench/harness"):
    sys.path.insert(0, os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
                                    folder))
import failures  # noqa: E402
import options  # noqa: E402
import plot  # noqa: E402
from processes import ProgramFailed  # noqa: E402
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

    def test_who_calls_is_told_what_was_measured(self):
        page = report.page(self.run, for_docs=False)
        self.assertEqual(page.count("| ≤ "), 2)
        self.assertIn(f"{len(targets.TARGETS) - 2} not measured", page)
        self.assertNotIn("benchmarks.svg", page)
        self.assertIn("in 60 s", page)

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


class GapsOfKillsTest(unittest.TestCase):

    KILLS = [(1_000, 1_300), (5_000, 5_400)]

    @staticmethod
    def gap(begin, ms, partition=0):
        return {"begin_unix_ms": begin, "ms": ms, "partition": partition}

    def test_each_kill_has_the_greatest_of_its_gaps(self):
        # The last acknowledgement before a kill may be older than it; other partitions count.
        first = [self.gap(980, 250), self.gap(1_010, 400, partition=3)]
        second = [self.gap(5_001, 300)]
        other = [self.gap(3_000, 60)]
        self.assertEqual(failures.gaps_of_kills(first + other + second, self.KILLS),
                         ([400, 300], other))

    def test_a_gap_before_a_kill_or_after_the_next_leader_is_not_its_own(self):
        others = [self.gap(700, 299), self.gap(1_301, 900)]
        kept = [self.gap(1_000, 200), self.gap(5_000, 100)]
        self.assertEqual(failures.gaps_of_kills(kept + others, self.KILLS), ([200, 100], others))

    def test_a_kill_that_nothing_shows_fails(self):
        gaps = [self.gap(1_000, 200), self.gap(5_000, 100, partition=2)]
        with self.assertRaisesRegex(ProgramFailed, "killed at 5000 .*no gap of 50 ms"):
            failures.gaps_of_kills(gaps, self.KILLS)


class OptionsTest(unittest.TestCase):

    PARTS = ["ceilings", "throughput", "failover"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def parse(self, *words):
        return options.parse(self.PARTS, "measures", ["--dir", self.folder, *words])

    def refused(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
            self.parse(*words)
        self.assertEqual(ended.exception.code, 2)
        return said.getvalue()

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def test_what_is_not_said(self):
        chosen = self.parse()
        self.assertEqual((chosen.parts, chosen.rounds), (self.PARTS, 5))
        self.assertEqual(self.parse("--quick").rounds, 1)
        self.assertEqual(self.parse("--quick", "--rounds", "3").rounds, 3)

    def test_parts_are_measured_in_their_order(self):
        self.assertEqual(self.parse("--only", "failover,ceilings").parts, ["ceilings", "failover"])
        self.assertIn("there is no part 'latency'; there are ceilings, throughput, failover",
                      self.refused("--only", "ceilings,latency"))
        self.assertIn("there is no part ''", self.refused("--only", "ceilings,,failover"))

    def test_rounds_that_measure_nothing(self):
        for rounds in ("0", "-1"):
            self.assertIn(f"--rounds: {rounds} measures nothing", self.refused("--rounds", rounds))

    def test_a_file_that_could_not_be_written_in_the_end(self):
        self.assertEqual(self.parse("--json", self.path("new.json")).json, self.path("new.json"))
        self.assertIn("is no name of a file", self.refused("--json", self.folder))
        self.assertIn("there is no directory", self.refused("--json", self.path("none/run.json")))

    def test_directories_that_are_not_there(self):
        self.assertIn("there is no directory", self.refused("--dir", self.path("none")))
        self.assertIn("there is no directory", self.refused("--kafka", self.path("none")))
        self.assertIn("there are no jars", self.refused("--kafka", self.folder))
        self.path("kafka.jar", "")
        self.assertEqual(self.parse("--kafka", self.folder).kafka, self.folder)

    def test_kafka_is_not_asked_for_without_its_jars(self):
        self.PARTS = [*self.PARTS, "kafka"]
        self.assertIn("name their directory by --kafka", self.refused("--only", "kafka"))
        self.path("kafka.jar", "")
        self.assertEqual(self.parse("--only", "kafka", "--kafka", self.folder).parts, ["kafka"])
        self.assertIn("kafka", self.parse().parts)

    def test_an_earlier_run(self):
        run = {"quick": False, "rounds": 5, "seconds": 3_000.5, "machine": {}, "notes": {},
               "shares": {}, "figures": {}}
        self.assertEqual(self.parse("--from", self.path("run", json.dumps(run))).earlier, run)
        self.assertIn("cannot be read", self.refused("--from", self.path("none")))
        self.assertIn("is not what --json writes", self.refused("--from", self.path("bad", "{")))
        del run["figures"]
        self.assertIn("it does not tell figures",
                      self.refused("--from", self.path("part", json.dumps(run))))


if __name__ == "__main__":
    test_main.main(__name__)
