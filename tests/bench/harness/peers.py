"""Other logs on the same machine, doing the same work: NATS JetStream and Redis Streams, as Debian
packages them. What an acknowledgement means there is told in the report."""

import contextlib
import os
import shutil
import subprocess

from context import MIB, RECORD
from processes import check_alive, free_ports, listens, run_json, running
from waiting import wait_until

EXTRA_PATH = "/usr/sbin:/usr/bin:/usr/local/bin"
WINDOW = 4000


class NotFound(Exception):
    """A peer that is not installed."""


def find(program, package):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":" + EXTRA_PATH)
    if path is None:
        raise NotFound(f"{program} is not installed; on Debian: apt-get install {package}")
    return path


def version(program, *arguments):
    try:
        result = subprocess.run([program, *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=30, check=False)
    except OSError:
        return None
    return result.stdout.strip().splitlines()[0] if result.stdout.strip() else None


# --- NATS JetStream

@contextlib.contextmanager
def _nats_servers(context, count):
    """The address of one of the servers, which is all that a client needs."""
    program = find("nats-server", "nats-server")
    ports = free_ports(2 * count)
    clients, routes = ports[:count], ports[count:]
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(context.scratch("nats"))
        for i in range(count):
            config = f"{directory}/{i}.conf"
            with open(config, "w", encoding="ascii") as file:
                file.write(f'server_name: bench-{i}\nlisten: "127.0.0.1:{clients[i]}"\n'
                           f'jetstream {{ store_dir: "{directory}/{i}" }}\n')
                if count > 1:
                    others = ", ".join(f'"nats://127.0.0.1:{p}"' for p in routes)
                    file.write(f'cluster {{ name: bench, listen: "127.0.0.1:{routes[i]}", '
                               f'routes: [{others}] }}\n')
            log = f"{directory}/{i}.log"
            server = stack.enter_context(running([program, "-c", config], log))
            wait_until(lambda at=clients[i], it=server, of=log: check_alive(it, of) or listens(at),
                       f"NATS server {i} listens")
        yield f"127.0.0.1:{clients[0]}"


def nats(context):
    program = context.program("tests/bench/peers/nats_load")
    messages = context.amount(512, 32) * MIB // RECORD

    def load(what, server, replicas, streams, *arguments):
        return context.keep(what, run_json(
            program, "--server", server, "--replicas", replicas, "--streams", streams,
            "--size", RECORD, "--warm-up", context.amount(1000, 300), *arguments))

    written = messages * RECORD // MIB
    with _nats_servers(context, 1) as server:
        context.settle(written + 256)
        output = load("nats R1", server, 1, 1, "--messages", messages, "--window", WINDOW)
        context.add("nats.produce_r1_mb", output["mb_per_second"])
    for streams in (1, 6):
        with _nats_servers(context, 3) as server:
            context.settle(3 * written + 256)
            output = load(f"nats R3, {streams} streams", server, 3, streams, "--messages",
                          messages, "--window", WINDOW)
            context.add(f"nats.produce_r3_{streams}_streams_mb", output["mb_per_second"])
    with _nats_servers(context, 3) as server:
        output = load("nats R3 one in flight", server, 3, 1, "--window", 1, "--messages",
                      context.amount(5000, 1000))
        context.add("nats.ack_r3_one_p50_us", output["ack_us"]["p50"])
    for streams in (1, 6):
        with _nats_servers(context, 3) as server:
            output = load(f"nats R3 1,000/s, {streams} streams", server, 3, streams, "--rate", 1000,
                          "--messages", context.amount(10000, 3000))
            context.add(f"nats.ack_r3_{streams}_streams_1000_p50_us", output["ack_us"]["p50"])
    with _nats_servers(context, 3) as server:
        output = load("nats R3 1,000/s consumed", server, 3, 6, "--rate", 1000, "--messages",
                      context.amount(10000, 3000), "--end-to-end")
        context.add("nats.consumed_r3_1000_p50_us", output["end_to_end_us"]["p50"])


# --- Redis Streams

@contextlib.contextmanager
def _redis_server(context, fsync):
    program = find("redis-server", "redis-server")
    port, = free_ports(1)
    with context.scratch("redis") as directory:
        log = f"{directory}/log"
        with running([program, "--port", port, "--bind", "127.0.0.1", "--dir", directory,
                      "--appendonly", "yes", "--appendfsync", fsync, "--save", "",
                      "--daemonize", "no"], log) as server:
            wait_until(lambda: check_alive(server, log) or listens(port), "Redis listens")
            yield f"127.0.0.1:{port}"


def redis(context):
    program = context.program("tests/bench/peers/redis_load")
    messages = context.amount(512, 32) * MIB // RECORD
    for fsync in ("everysec", "always"):
        with _redis_server(context, fsync) as server:
            # Redis keeps the stream in memory, too.
            context.settle(2 * messages * RECORD // MIB + 256)
            output = context.keep(f"redis {fsync}", run_json(
                program, "--server", server, "--size", RECORD, "--messages", messages,
                "--window", WINDOW, "--warm-up", context.amount(1000, 300)))
            context.add(f"redis.produce_{fsync}_mb", output["mb_per_second"])
        with _redis_server(context, fsync) as server:
            output = context.keep(f"redis {fsync} 1,000/s", run_json(
                program, "--server", server, "--size", RECORD, "--rate", 1000,
                "--messages", context.amount(10000, 3000),
                "--warm-up", context.amount(1000, 300)))
            context.add(f"redis.ack_{fsync}_1000_p50_us", output["ack_us"]["p50"])
