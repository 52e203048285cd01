"""What the machine, its disk and gRPC allow, by the program tests/bench/ceilings."""

import json
import subprocess

from context import MIB
from processes import ProgramFailed, running, run_json


def measure(context):
    program = context.program("tests/bench/ceilings/ceilings")
    with context.scratch("ceilings") as directory:
        log = f"{directory}/log"
        with running([program, "serve", "--dir", directory], log, stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE) as server:
            line = server.stdout.readline()
            if not line:
                with open(log, encoding="utf-8", errors="replace") as file:
                    raise ProgramFailed(f"{program} serve did not start: {file.read()}")
            target = f"127.0.0.1:{json.loads(line)['port']}"

            def call(name, *arguments):
                return context.keep(f"ceilings {name}", run_json(
                    program, *arguments, "--target", target))

            warm = context.amount(2000, 500)
            echo = call("echo", "echo", "--size", 100, "--warm-up", warm,
                        "--messages", context.amount(10000, 3000))
            context.add("ceiling.echo_p50_us", echo["latency_us"]["p50"])
            paced = call("echo paced", "echo", "--size", 100, "--warm-up", warm, "--rate", 1000,
                         "--messages", context.amount(10000, 3000))
            context.add("ceiling.echo_1000_p50_us", paced["latency_us"]["p50"])
            total = context.amount(512, 256) * MIB
            for name, size in (("256k", MIB // 4), ("1m", MIB)):
                context.settle(total // MIB + 256)
                append = call(f"append {name}", "append", "--size", size, "--in-flight", 8,
                              "--warm-up", 64, "--messages", total // size)
                context.add(f"ceiling.append_{name}_mb", append["mb_per_second"])
            pull = call("pull", "pull", "--size", MIB // 4,
                        "--messages", context.amount(16000, 4000))
            context.add("ceiling.pull_mb", pull["mb_per_second"])
        total = context.amount(512, 128)
        context.settle(3 * total)
        disk = context.keep("ceilings sync3", run_json(
            program, "disk", "--dir", directory, "--size", MIB, "--sync-every", 16 * MIB,
            "--bytes", total * MIB))
        context.add("ceiling.sync3_mb", disk["share_mb_per_second"])
        small = context.keep("ceilings fdatasync", run_json(
            program, "disk", "--dir", directory, "--size", 4096, "--sync-every", 4096,
            "--bytes", context.amount(1000, 300) * 4096))
        context.add("ceiling.fdatasync_p50_us", small["sync_us"]["p50"])
