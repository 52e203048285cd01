"""Waiting for a condition, never for a time."""

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
