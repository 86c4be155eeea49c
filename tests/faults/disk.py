"""A disk that fails at its n-th operation, and remembers what a power cut would take away.

A name is durable when its folder was synced after it changed, bytes when their file was; nothing else is believed. To
undo what was not synced, every inode that was made, replaced or unlinked keeps a second name in a folder outside.
"""

# It speaks to os, in strings, as the disk it stands for does.
# ruff: noqa: PTH102, PTH108, PTH110, PTH112, PTH116, PTH119, PTH120

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, NoReturn

from gossamer.storage.disk import Disk

if TYPE_CHECKING:
    from typing_extensions import Buffer

KINDS = {
    "kill": "the process dies before the operation",
    "torn": "the process dies in the middle of a write",
    "lost": "the power fails: every byte and every name that was not synced is gone",
    "zeroed": "the power fails: bytes that were not synced are gone, but all names are there",
    "reordered": "the power fails: the folder with the oldest change not synced lost its changes, all later ones are there",
    "relapse": "the process dies, the command is run again to its end, and then the power fails",
    "enospc": "the disk is full, this once",
    "full": "the disk is full from now on; only removing works",
    "eio": "the device reports an error, this once",
}
POWER = ("lost", "zeroed", "reordered")
DEADLY = ("kill", "torn", "relapse", *POWER)
NEEDS_SPACE = ("open_new", "write", "sync", "make_dir", "sync_dir", "link", "rename")


At = Callable[[str], str]  # where a path lies on the disk that is to be changed: as it is, or on a copy
Undo = Callable[[At], None]


class Killed(BaseException):
    """The process is dead: nothing it does from here on reaches the disk."""


@dataclass
class Journal:
    """What is on the disk but not yet durable."""

    inodes: Path  # where every inode we may need again keeps a name
    names: list[tuple[str, Undo]] = field(default_factory=list)  # folder and how to undo its change, in order
    bytes: dict[int, tuple[Path, int]] = field(default_factory=dict)  # inode → its name here, and how much is synced
    kept: int = 0

    def keep(self, path: str) -> Path:
        """Give an inode another name, so that it outlives its own."""
        self.kept += 1
        self.inodes.mkdir(parents=True, exist_ok=True)
        name = self.inodes / str(self.kept)
        os.link(path, name)
        return name

    def changed(self, path: str, undo: Undo) -> None:
        self.names.append((os.path.dirname(path), undo))

    def synced(self, folder: str) -> None:
        self.names = [(changed, undo) for changed, undo in self.names if changed != folder]

    def cut_power(self, kind: str, at: At = str) -> None:
        """Leave on the disk, or on a copy of it, what a power cut of this kind would."""
        victims = {folder for folder, _ in self.names} if kind == "lost" else set()
        if kind == "reordered" and self.names:
            victims = {self.names[0][0]}
        for folder, undo in reversed(self.names):
            if folder in victims:
                undo(at)
        if kind != "reordered":
            for name, durable in self.bytes.values():
                if os.stat(at(str(name))).st_size > durable:
                    os.truncate(at(str(name)), durable)


class FaultyDisk(Disk):
    """Counts its operations and lets the n-th of them fail; without a kind it only counts."""

    def __init__(self, journal: Journal, kind: str | None = None, at: int = 0) -> None:
        self.journal, self.kind, self.at = journal, kind, at
        self.trace: list[str] = []
        self.fired = self.dead = False
        self._one_at_a_time = RLock()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a faulty disk counts in one process only: run the engine without workers")

    def open_new(self, path: str) -> int:
        with self._one_at_a_time:
            self._step("open_new", path)
            fd = super().open_new(path)
            self.journal.bytes[os.fstat(fd).st_ino] = self.journal.keep(path), 0
            self.journal.changed(path, lambda at: _gone(at(path)))
            return fd

    def write(self, fd: int, data: Buffer) -> None:
        with self._one_at_a_time:
            half = memoryview(data).cast("B")
            half = half[: len(half) // 2]
            self._step("write", str(fd), torn=lambda: super(FaultyDisk, self).write(fd, half))
            super().write(fd, data)

    def sync(self, fd: int) -> None:
        with self._one_at_a_time:
            self._step("sync", str(fd))
            there = os.fstat(fd)
            self.journal.bytes[there.st_ino] = self.journal.bytes[there.st_ino][0], there.st_size

    def make_dir(self, path: str) -> None:
        with self._one_at_a_time:
            self._step("make_dir", path)
            if not os.path.isdir(path):
                super().make_dir(path)
                self.journal.changed(path, lambda at: shutil.rmtree(at(path), ignore_errors=True))

    def remove_dir(self, path: str) -> None:
        with self._one_at_a_time:
            self._step("remove_dir", path)
            super().remove_dir(path)
            self.journal.changed(path, lambda at: _folder_back(at(path)))

    def sync_dir(self, path: str) -> None:
        with self._one_at_a_time:
            self._step("sync_dir", path)
            os.stat(path)
            self.journal.synced(path)

    def link(self, source: str, target: str) -> None:
        with self._one_at_a_time:
            self._step("link", target)
            super().link(source, target)
            self.journal.changed(target, lambda at: _gone(at(target)))

    def rename(self, source: str, target: str) -> None:
        with self._one_at_a_time:
            self._step("rename", target)
            assert os.path.dirname(source) == os.path.dirname(target), "a rename between folders is not one change"
            moved, old = self.journal.keep(source), self.journal.keep(target) if os.path.exists(target) else None
            super().rename(source, target)

            def undo(at: At) -> None:
                _gone(at(target))
                _back(moved, source, at)
                if old:
                    _back(old, target, at)

            self.journal.changed(target, undo)

    def unlink(self, path: str) -> None:
        with self._one_at_a_time:
            self._step("unlink", path)
            old = self.journal.keep(path) if os.path.exists(path) else None
            super().unlink(path)
            self.journal.changed(path, lambda at: _back(old, path, at))

    def _step(self, name: str, what: str, torn: Callable[[], None] | None = None) -> None:
        """Count one operation and let it fail if it is its turn."""
        if self.dead:
            raise Killed
        self.trace.append(f"{name} {os.path.basename(what)}")
        number = len(self.trace)
        if number != self.at and not (self.kind == "full" and number > self.at):
            return
        if (self.kind == "torn" and name != "write") or (self.kind in ("enospc", "full") and name not in NEEDS_SPACE):
            return
        self.fired = True
        if torn and self.kind in ("torn", "enospc", "full"):
            torn()
        if self.kind in POWER:
            self.journal.cut_power(self.kind)
        if self.kind in DEADLY:
            self.dead = True
            raise Killed
        code = errno.EIO if self.kind == "eio" else errno.ENOSPC
        raise OSError(code, os.strerror(code), what)


class CalmDisk(Disk):
    """A healthy disk that does not wait for the device."""

    def sync(self, fd: int) -> None:
        """Nothing here survives the test anyway."""

    def sync_dir(self, path: str) -> None:
        os.stat(path)


def _gone(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _back(kept: Path | None, path: str, at: At) -> None:
    """Put a name back, unless the folder it was in is gone as well."""
    with suppress(FileNotFoundError):
        if kept:
            os.link(at(str(kept)), at(path))


def _folder_back(path: str) -> None:
    with suppress(FileExistsError, FileNotFoundError):
        os.mkdir(path)
