"""Watching processes come and go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import psutil


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def gone(processes: Iterable[psutil.Process]) -> bool:
    """Whether none of them runs any more."""
    return not any(map(_runs, processes))


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
