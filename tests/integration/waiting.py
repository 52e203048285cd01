"""Waiting for a condition; a span of time is waited for only where it is what is measured."""

import select
import time


def wait_until(condition, what, timeout=60):
    """Polls until the condition holds and returns what it returned."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what}")
        # A poll's interval, not a wait for something to have happened by then.
        select.select([], [], [], 0.02)


def span(seconds):
    """Returns once so much time has gone by: for a rate, which is of a span. Never in a test."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= end, "a span of time", timeout=seconds + 60)
