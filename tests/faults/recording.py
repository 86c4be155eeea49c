"""A disk that does not fail but keeps, before each of its operations, a copy of what a crash there would leave behind.

Nothing a process does after its death reaches the disk: so one undisturbed run shows what every crash leaves, where
replaying them takes one run for each. `test_harness.py` proves that both leave the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.faults.disk import POWER, FaultyDisk, Journal

RECORDABLE = ("kill", "torn", *POWER)  # the process is dead afterwards, and the next one finds a healthy disk


class RecordingDisk(FaultyDisk):
    """Keeps a copy of `folder`, which holds the crawl and the journal's inodes, for every step at which it may crash."""

    def __init__(self, journal: Journal, kind: str, folder: Path, copies: Path) -> None:
        super().__init__(journal)
        self.dies_by, self.folder, self.copies = kind, folder, copies
        self.kept: list[int] = []  # the steps, by their numbers

    def _step(self, name: str, what: str, torn: Callable[[], None] | None = None) -> None:
        super()._step(name, what)
        if self.dies_by != "torn":
            self.keep()
        elif torn:
            start = os.lseek(int(what), 0, os.SEEK_CUR)
            torn()
            self.keep()
            os.ftruncate(int(what), start)
            os.lseek(int(what), start, os.SEEK_SET)

    def keep(self, *, ended: bool = False) -> None:
        """What is left if it dies now: in the last step begun, or after the operation has ended."""
        self.kept.append(len(self.trace) + ended)
        copy = self.copies / str(self.kept[-1])
        _copy_links(self.folder, copy)
        if self.dies_by in POWER:
            self.journal.cut_power(self.dies_by, lambda path: str(copy / Path(path).relative_to(self.folder)))


def _copy_links(source: Path, target: Path) -> None:
    """A copy of a folder in which what was one file under two names is so again."""
    seen: dict[int, str] = {}
    for folder, _, names in os.walk(source):
        to = target / Path(folder).relative_to(source)
        to.mkdir(parents=True)
        for name in names:
            inode = Path(folder, name).stat().st_ino
            if inode in seen:
                os.link(seen[inode], to / name)
            else:
                seen[inode] = shutil.copy2(Path(folder, name), str(to / name))
