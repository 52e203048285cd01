"""What tests/bench/run is told to do; what it could not do is refused before anything is measured,
which takes an hour."""

import argparse
import glob
import json
import os

ROUNDS = 5
# Of what --json writes, as far as the page is made of it.
EARLIER = {"quick": bool, "rounds": int, "seconds": (int, float), "machine": dict, "notes": dict,
           "shares": dict, "figures": dict}


def parse(parts, description, words=None):
    """`parts`: the names of all. Of `earlier` there is what the file holds, or None."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, help=f"how many (default {ROUNDS}; --quick: 1)")
    parser.add_argument("--quick", action="store_true", help="small amounts: does it all work?")
    parser.add_argument("--only", default="", metavar="PART[,PART...]",
                        help="some parts: " + ", ".join(parts))
    parser.add_argument("--kafka", metavar="DIR", help="the jars of a Kafka release "
                        "('libs'): with Java, three brokers and three "
                        "controllers of their own are started from them")
    parser.add_argument("--dir", metavar="DIR", help="where everything writes: on the disk that "
                        "is to be measured (default: the directory for temporary files)")
    parser.add_argument("--json", metavar="FILE", help="where to write all that was measured")
    parser.add_argument("--docs", action="store_true",
                        help="write docs/benchmarks.md and .svg, not standard output")
    parser.add_argument("--from", dest="earlier", metavar="FILE", help="measure nothing: tell what "
                        "an earlier run wrote by --json")
    parser.add_argument("--no-build", action="store_true", help="the programs are built")
    arguments = parser.parse_args(words)
    chosen = arguments.only.split(",") if arguments.only else list(parts)
    for part in chosen:
        if part not in parts:
            parser.error(f"--only: there is no part '{part}'; there are {', '.join(parts)}")
    arguments.parts = [p for p in parts if p in chosen]
    if arguments.rounds is None:
        arguments.rounds = 1 if arguments.quick else ROUNDS
    elif arguments.rounds < 1:
        parser.error(f"--rounds: {arguments.rounds} measures nothing; give 1 or more")
    if arguments.json is not None:
        _check_output(parser, arguments.json)
    if arguments.earlier is not None:
        arguments.earlier = _earlier(parser, arguments.earlier)
        return arguments
    _check_directory(parser, arguments)
    if arguments.kafka is not None:
        _check_jars(parser, arguments.kafka)
    elif "kafka" in arguments.only.split(","):
        parser.error("--only: kafka is measured from the jars of one of its releases; name their "
                     "directory by --kafka")
    return arguments


def _check_output(parser, path):
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not path:
        parser.error(f"--json: '{path}' is no name of a file; name one to write to")
    if not os.path.isdir(folder):
        parser.error(f"--json: '{path}' cannot be written: there is no directory {folder}; "
                     "make it first")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        parser.error(f"--json: '{path}' cannot be written: no permission")


def _earlier(parser, path):
    try:
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
    except OSError as failure:
        parser.error(f"--from: '{path}' cannot be read: {failure.strerror}")
    except ValueError as failure:
        parser.error(f"--from: '{path}' is not what --json writes: {failure}")
    wrong = [name for name, kind in EARLIER.items()
             if not isinstance(run, dict) or not isinstance(run.get(name), kind)]
    if wrong:
        parser.error(f"--from: '{path}' is not what --json writes: it does not tell "
                     f"{', '.join(wrong)}")
    return run


def _check_directory(parser, arguments):
    given = arguments.dir is not None
    path = arguments.dir if given else os.environ.get("TMPDIR") or "/var/tmp"
    what = "--dir: " if given else "the directory for temporary files (TMPDIR): "
    if not os.path.isdir(path):
        parser.error(f"{what}there is no directory '{path}'; name one on the disk that is to be "
                     "measured by --dir")
    if not os.access(path, os.W_OK | os.X_OK):
        parser.error(f"{what}'{path}' cannot be written to: no permission")
    arguments.dir = os.path.abspath(path)


def _check_jars(parser, path):
    if not os.path.isdir(path):
        parser.error(f"--kafka: there is no directory '{path}'; name the 'libs' of an unpacked "
                     "release")
    if not glob.glob(os.path.join(glob.escape(path), "*.jar")):
        parser.error(f"--kafka: there are no jars in '{path}'; name the 'libs' of an unpacked "
                     "release")
