"""The machine that is measured on, and what others took of it meanwhile."""

import datetime
import os
import platform
import re
import subprocess


def _first_line(*command):
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=30, check=False)
    except OSError:
        return None
    return result.stdout.splitlines()[0].strip() if result.stdout.strip() else None


def _cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"model name\s*:\s*(.+)", file.read())
    return found[1] if found else platform.machine()


def _memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _filesystem(directory):
    best = ("", "unknown")
    with open("/proc/mounts", encoding="utf-8") as file:
        for line in file:
            _, where, kind = line.split()[:3]
            inside = os.path.realpath(directory).startswith(where.rstrip("/") + "/")
            if inside and len(where) >= len(best[0]):
                best = (where, kind)
    return best[1]


def _package(name):
    version = _first_line("dpkg-query", "-W", "-f", "${Version}", name)
    return version if version and "no packages" not in version else None


def describe(directory, root):
    """For the report; `directory` is where data is written."""
    commit = _first_line("git", "-C", root, "rev-parse", "--short=12", "HEAD")
    changed = _first_line("git", "-C", root, "status", "--porcelain", "--untracked-files=no")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": f"{os.cpu_count()} x {_cpu_model()}",
        "memory": f"{_memory_gib():.0f} GiB",
        "kernel": platform.release(),
        "filesystem": _filesystem(directory),
        "compiler": _first_line("g++", "--version"),
        "grpc": _package("libgrpc++1.51"),
        "conclave": (commit or "unknown") + (" with changes" if changed else ""),
    }


def cpu_ticks():
    """Of all processors together: (stolen, busy, all)."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(f) for f in file.readline().split()[1:9]]
    return fields[7], sum(fields) - fields[3] - fields[4], sum(fields)


def shares(before, after):
    """Percent that was stolen and that was busy (stolen time included) between two cpu_ticks."""
    total = max(1, after[2] - before[2])
    return {"steal_percent": round(100 * (after[0] - before[0]) / total, 1),
            "busy_percent": round(100 * (after[1] - before[1]) / total, 1)}
