"""Time, CPU and memory of this process and all its children."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass
class Measured:
    seconds: float = 0.0
    cpu: float = 0.0
    peak_mb: float = 0.0


def _tree() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def _memory() -> float:
    """Private memory of the tree in MB: what pages shared between its processes cost is counted once (PSS)."""
    total = 0
    for process in _tree():
        try:
            for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        except OSError:
            continue
    return total / 1024


def _cpu() -> float:
    total = 0.0
    for process in _tree():
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
        if process.pid == psutil.Process().pid:
            total += times.children_user + times.children_system
    return total


@contextmanager
def measured() -> Iterator[Measured]:
    """Wall time, CPU time and peak memory of the block."""
    result, stop = Measured(), threading.Event()

    def watch() -> None:
        while not stop.is_set():
            result.peak_mb = max(result.peak_mb, _memory())
            stop.wait(0.1)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    cpu, start = _cpu(), time.perf_counter()
    try:
        yield result
    finally:
        result.seconds = time.perf_counter() - start
        result.cpu = _cpu() - cpu
        stop.set()
        thread.join()
