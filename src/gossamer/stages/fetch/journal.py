"""The journal: which queue was asked last, when, and how long it must be left alone; written before each request is sent,
and when a server asks for time.

It is what keeps a crawler that was killed and started again polite: a kill takes nothing from a file that was written. It
need not be synced, as no machine starts again faster than a delay passes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gossamer.errors import storage_error
from gossamer.urls.keys import fingerprint

RECORD = struct.Struct("<qqi")  # fingerprint of the queue, microseconds since 1970, delay in milliseconds
LAYOUT = np.dtype([("queue", "<i8"), ("at", "<i8"), ("delay", "<i4")])
LONGEST_MS = 2**31 - 1


class Journal:
    """An append-only file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        # The same attempt may have begun before and been killed: what comes next must not be torn as well.
        size = os.fstat(self._fd).st_size
        os.ftruncate(self._fd, size - size % RECORD.size)
        self._waiting = bytearray()
        self._keys: dict[str, int] = {}

    def note(self, queue: str, at: float, delay: float) -> None:
        """A request of a queue is about to be sent, or has been answered: leave it alone for so long."""
        key = self._keys.get(queue)
        if key is None:
            key = self._keys[queue] = fingerprint(queue)
        self._waiting += RECORD.pack(key, int(at * 1e6), min(int(delay * 1000), LONGEST_MS))

    def flush(self) -> None:
        """Hand over what was noted; before this, nothing may be sent."""
        if self._waiting:
            self._write(self._fd)

    def _write(self, fd: int) -> None:
        while self._waiting:
            try:
                written = os.write(fd, self._waiting)
            except OSError as error:
                raise storage_error(error, str(self._path)) from error
            del self._waiting[:written]  # a full disk takes a part of it

    def close(self) -> None:
        """End; once more does no harm."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            try:
                self._write(fd)
            finally:
                os.close(fd)


def last_requests(paths: Iterable[Path]) -> dict[int, tuple[float, float]]:
    """Of each queue, by its fingerprint, when it was noted last and for how long it must be left alone then, in seconds."""
    last: dict[int, tuple[float, float]] = {}
    for path in paths:
        data = path.read_bytes()
        records = np.frombuffer(data[: len(data) // LAYOUT.itemsize * LAYOUT.itemsize], LAYOUT)  # the last may be torn
        keys, which = np.unique(records["queue"], return_inverse=True)
        at, until = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        np.maximum.at(at, which, records["at"])
        np.maximum.at(until, which, records["at"] + records["delay"].astype(np.int64) * 1000)
        for key, noted, free in zip(keys.tolist(), at.tolist(), until.tolist(), strict=True):
            before, wait = last.get(key, (noted / 1e6, 0.0))
            latest = max(before, noted / 1e6)
            last[key] = (latest, max(before + wait, free / 1e6) - latest)
    return last
