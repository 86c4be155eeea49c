"""Crash tests: an operation is made to fail at every single step of its I/O, in every way we can think of.

    every_crash_point("publish", tmp_path, make_crawl, operation, state)

runs `operation` undisturbed to learn the state it leads to. Then, for every step and every kind of fault, on a fresh
copy of the crawl: the operation meets the fault; on a healthy disk the crawl must be as before it or as after it; run
again, it must be as after it. Every later stage is tested with the same call. Different faults often leave the same
files behind; those are judged once.

Stages take seconds where storage takes milliseconds. With `recorded=True` what deaths and power cuts leave behind is
taken from a single run instead of one for each crash point; see `recording.py`.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from gossamer.errors import GossamerError, StorageError
from gossamer.storage.files import Files
from gossamer.storage.local import LocalFiles
from tests.faults.disk import DEADLY, KINDS, POWER, CalmDisk, FaultyDisk, Journal, Killed
from tests.faults.recording import RECORDABLE, RecordingDisk
from tests.faults.requests import DEADLY_REQUESTS, REQUEST_KINDS, FaultyFiles

Operation = Callable[[Any], object]  # gets the Files of a crawl; when it finds its work done it must not do it again
State = Callable[[Any], object]  # what must be as before or as after: stable columns of tables, for instance
Points = dict[str, int]
PASSING = re.compile(
    rb"[0-9a-f]{32}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z|\d+\.\d+(e-\d+)?"
)  # random names, times, seconds
TRIED: dict[str, Points] = {}  # operation → kind → crash points, for the summary at the end of the tests
LEFT: dict[str, int] = {}  # operation → different states the faults left behind


class Trial:
    """An operation, and the states it may leave behind."""

    def __init__(self, name: str, operation: Operation, state: State, settled: State | None) -> None:
        self.name, self.operation, self.state, self.settled = name, operation, state, settled or state
        self.judged: set[tuple[str, bool]] = set()

    def learn(self, calm: Any) -> None:
        """Run undisturbed, twice, and remember what is before, after, and at the end."""
        self.before = self.state(calm)
        self.operation(calm)
        self.after, self.end = self.state(calm), self.settled(calm)
        self.operation(calm)
        assert self.settled(calm) == self.end, f"{self.name}: a second run changes what the first one did"

    def run(self, files: Any, kind: str) -> bool:
        """Run under a fault; whether it came to its end. Any failure but the injected one is an error."""
        try:
            self.operation(files)
        except Killed:
            return False
        except StorageError as error:
            if kind in (*DEADLY, *DEADLY_REQUESTS) or "\n" in str(error):
                raise
            return False
        return True

    def judge(self, where: str, healthy: Any, *, finished: bool) -> None:
        """The crawl is as before or as after, and the same command ends where an undisturbed one does."""
        left = (digest(healthy), finished)
        if left in self.judged:
            return
        self.judged.add(left)
        LEFT[self.name] = len(self.judged)
        try:
            found = self.state(healthy)
        except GossamerError as error:
            raise AssertionError(f"{where}: the crawl cannot be read: {error}") from error
        allowed = [self.after] if finished else [self.before, self.after]
        assert found in allowed, f"{where}: the crawl is neither as before nor as after"
        self.operation(healthy)
        assert self.settled(healthy) == self.end, f"{where}: a second run ended elsewhere"


def every_crash_point(
    name: str,
    folder: Path,
    make_crawl: Callable[[LocalFiles], object],
    operation: Operation,
    state: State,
    *,
    kinds: Iterable[str] = tuple(KINDS),
    settled: State | None = None,
    recorded: bool = False,
) -> Points:
    """Try all crash points of an operation on the local disk; after its second run `settled` is compared, or `state`."""
    template = folder / "template"
    make_crawl(LocalFiles(str(template), CalmDisk()))
    trial = Trial(name, operation, state, settled)
    trial.learn(_copy(template, folder / "calm"))
    ways = {kind: _recorded_crashes if recorded and kind in RECORDABLE else _crashes for kind in kinds}
    TRIED[name] = {kind: sum(crashes(trial, folder / "copy", template, kind)) for kind, crashes in ways.items()}
    return TRIED[name]


def _crashes(trial: Trial, folder: Path, template: Path, kind: str) -> Iterator[bool]:
    """Whether the fault applied at the first step, the second, and so on until the operation has no more steps."""
    for number in count(1):
        healthy = _copy(template, folder / "crawl")
        disk = FaultyDisk(Journal(folder / "inodes"), kind, number)
        finished = trial.run(LocalFiles(healthy.root, disk), kind)
        ended = len(disk.trace) < number
        where = f"{trial.name}, {kind} at step {number}: {' → '.join(disk.trace[max(0, number - 3) : number])}"
        assert not (finished and disk.dead), f"{where}: somebody caught the kill"
        assert finished or disk.fired, f"{where}: it failed without a fault"
        if kind == "relapse":
            trial.operation(LocalFiles(healthy.root, FaultyDisk(disk.journal)))
            disk.journal.cut_power("lost")
            finished = True
        elif kind in POWER and ended:
            disk.journal.cut_power(kind)  # right after the operation has returned
        trial.judge(where, healthy, finished=finished)
        shutil.rmtree(folder)
        yield disk.fired or (kind in POWER and ended)
        if ended:
            return


def _recorded_crashes(trial: Trial, folder: Path, template: Path, kind: str) -> Iterator[bool]:
    """The same from one run: every step at which it could have died, and its end."""
    copies = folder.with_name("copies")
    files = _copy(template, folder / "crawl")
    disk = RecordingDisk(Journal(folder / "inodes"), kind, folder, copies)
    trial.operation(LocalFiles(files.root, disk))
    disk.keep(ended=True)
    for number in disk.kept:
        shutil.rmtree(folder)
        (copies / str(number)).rename(folder)  # where it was made
        ended = number > len(disk.trace)
        where = f"{trial.name}, {kind} at step {number}: {' → '.join(disk.trace[max(0, number - 3) : number])}"
        trial.judge(where, LocalFiles(files.root, CalmDisk()), finished=ended)
        yield not ended or kind in POWER
    shutil.rmtree(folder)
    copies.rmdir()


def every_request_point(
    name: str,
    new_files: Callable[[], Files],
    make_crawl: Callable[[Files], object],
    operation: Operation,
    state: State,
    *,
    kinds: Iterable[str] = tuple(REQUEST_KINDS),
    settled: State | None = None,
) -> Points:
    """The same for any file system, request by request; `new_files` gives an empty place each time."""
    trial = Trial(name, operation, state, settled)
    calm = new_files()
    make_crawl(calm)
    template = {path: calm.read(path) for path, _ in calm.list("")}
    trial.learn(calm)
    TRIED[name] = {kind: sum(_failed_requests(trial, new_files, template, kind)) for kind in kinds}
    return TRIED[name]


def _failed_requests(
    trial: Trial, new_files: Callable[[], Files], template: dict[str, bytes], kind: str
) -> Iterator[bool]:
    for number in count(1):
        healthy = new_files()
        for path, data in template.items():
            healthy.replace(path, data)
        faulty = FaultyFiles(healthy, kind, number)
        finished = trial.run(faulty, kind)
        where = f"{trial.name}, {kind} at request {number}: {' → '.join(faulty.trace[max(0, number - 3) : number])}"
        assert not (finished and faulty.dead), f"{where}: somebody caught the kill"
        assert finished or faulty.fired, f"{where}: it failed without a fault"
        trial.judge(where, healthy, finished=finished)
        yield faulty.fired
        if len(faulty.trace) < number:
            return


def digest(files: Files, apart_from: str = "/") -> str:
    """A name for all that lies in a crawl, up to what differs between two equal runs."""
    found = []
    for path in (path for path, _ in files.list("") if not path.startswith(apart_from)):
        data, text = files.read(path), not path.endswith(".parquet")
        found.append((PASSING.sub(b"#", path.encode()), PASSING.sub(b"#", data) if text else data))
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()


def _copy(template: Path, target: Path) -> LocalFiles:
    target.parent.mkdir(exist_ok=True)
    if template.exists():
        shutil.copytree(template, target)
    return LocalFiles(str(target), CalmDisk())
