"""A folder for temporary files that a killed process does not leave behind for good.

Its owner holds a lock on it, which death frees; whoever makes the next folder beside it removes those without an owner.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX, LOCK = "gossamer-", "owner"


class Scratch:
    """A temporary folder of this process."""

    def __init__(self, parent: str | None = None) -> None:
        place = Path(parent or tempfile.gettempdir())
        for old in place.glob(f"{PREFIX}*"):
            _sweep(old)
        unlocked = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=place))  # nobody sweeps it under this name
        self._lock: int | None = os.open(unlocked / LOCK, os.O_WRONLY | os.O_CREAT)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = str(unlocked.rename(place / unlocked.name.removeprefix(".")))

    def remove(self) -> None:
        """Drop the folder and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _sweep(folder: Path) -> None:
    """Remove a folder whose owner is dead; one of another user or of another kind stays."""
    try:
        lock = os.open(folder / LOCK, os.O_WRONLY)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return
    finally:
        os.close(lock)
