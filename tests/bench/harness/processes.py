"""Programs that a benchmark starts, and nobody else's: each is ended by its own process id."""

import contextlib
import json
import os
import socket
import subprocess
import sys

# Of a program that should end by itself.
PROGRAM_TIMEOUT_S = 1800
# Of one that is asked to end.
END_TIMEOUT_S = 20


class ProgramFailed(Exception):
    pass


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def run_json(*arguments, timeout=PROGRAM_TIMEOUT_S):
    """Runs a program to its end; it prints one JSON object."""
    words = [str(a) for a in arguments]
    result = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=timeout)
    if result.returncode != 0:
        raise ProgramFailed(f"{' '.join(words)} exited {result.returncode}: "
                            f"{(result.stdout + result.stderr).strip()}")
    return json.loads(result.stdout)


@contextlib.contextmanager
def running(arguments, log, stdin=None, stdout=None, cwd=None, env=None):
    """A program for as long as the block lasts."""
    with open(log, "ab") as out:
        process = subprocess.Popen([str(a) for a in arguments], stdin=stdin,
                                   stdout=stdout or out, stderr=out, cwd=cwd, env=env)
    try:
        yield process
    finally:
        end(process)


def end(process):
    if process.stdin:
        process.stdin.close()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()


def check_alive(process, log):
    if process.poll() is not None:
        with open(log, encoding="utf-8", errors="replace") as file:
            raise ProgramFailed(f"{process.args[0]} ended with {process.returncode} before it "
                                f"served: {file.read()[-2000:]}")


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_ports(count):
    """Ports that nobody had a moment ago: for programs that must be told."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


# --- What a process uses

def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        # The name in brackets may hold blanks; times follow it.
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    raise ProgramFailed(f"process {pid} has no resident memory: it has ended")
