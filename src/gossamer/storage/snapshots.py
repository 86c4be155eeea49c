"""Snapshots: the commit log of a crawl. The highest numbered document below `snapshots/` is the truth.

A job writes its files aside, names them in a manifest, and publishes one snapshot by creating the next number, which
fails if the number is taken. So after a crash the crawl is as before the job or as after it. A publish that lost the
race re-bases on the winner if the two wrote different tables, else it names the winner and gives up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import msgspec

from gossamer.errors import ConflictError, CorruptError, CrawlMissing, UsageError, VersionError
from gossamer.storage import leases
from gossamer.storage.files import Exists, Files, Missing, read_json
from gossamer.storage.parquet import FileEntry

FORMAT = 1
FOLDER = "snapshots"
MANIFEST = "_files-{attempt:03d}.json"
NAME = re.compile(r"([0-9]{8,})\.json")
PUBLISH_TRIES = 100


@dataclass(frozen=True)
class FileSet:
    """What one run wrote for one table: a folder with a manifest of its files."""

    folder: str
    version: int  # of the table's schema
    rows: int
    bytes: int
    files: int
    delta: bool = False  # a change set to be merged, not rows of their own
    deletes: int = 0
    segment: str | None = None
    layout: str = ""  # fingerprint of the columns; sets of one layout are read in one go
    attempt: int = 1  # of the run; each has a manifest of its own, so one that should be dead cannot change ours

    @property
    def manifest(self) -> str:
        """Where the names of its files are."""
        return manifest_path(self.folder, self.attempt)


@dataclass(frozen=True)
class Snapshot:
    """One version of the whole crawl."""

    id: int
    parent: int | None
    run: str
    stage: str
    at: str
    shards: int
    tables: dict[str, tuple[FileSet, ...]] = field(default_factory=dict)
    segments: dict[str, tuple[str, ...]] = field(default_factory=dict)  # segment → stages applied to it, in order
    columns: list[dict[str, Any]] = field(default_factory=list)  # plugin columns that files hold
    counters: dict[str, int] = field(default_factory=dict)
    note: str = ""
    restores: int | None = None  # a rollback: the snapshot whose content this is

    def sets(self, table: str, segment: str | None = None) -> tuple[FileSet, ...]:
        """File sets of a table, in the order they were published."""
        found = self.tables.get(table, ())
        return found if segment is None else tuple(s for s in found if s.segment == segment)

    def folders(self) -> set[str]:
        """Folders of all file sets this snapshot names."""
        return {s.folder for sets in self.tables.values() for s in sets}


@dataclass(frozen=True)
class Change:
    """What one run wants to publish."""

    run: str
    stage: str
    at: str
    append: dict[str, tuple[FileSet, ...]] = field(default_factory=dict)
    replace: dict[str, tuple[FileSet, ...]] = field(default_factory=dict)  # what the table (or its segment) had goes
    segments: dict[str, tuple[str, ...]] = field(default_factory=dict)
    columns: list[dict[str, Any]] = field(default_factory=list)  # plugin columns the new files hold
    shards: int | None = None
    counters: dict[str, int] = field(default_factory=dict)
    note: str = ""

    def written(self) -> set[str]:
        """Tables (of a segment) this change touches, for finding conflicts."""
        pairs = [*self.append.items(), *self.replace.items()]
        touched = {_name(table, s) for table, sets in pairs for s in sets}
        touched |= {table for table, sets in self.replace.items() if not sets}
        return touched | ({"*"} if self.shards is not None else set())


def path_of(number: int) -> str:
    """Where a snapshot lies."""
    return f"{FOLDER}/{number:08d}.json"


def numbers(files: Files) -> list[int]:
    """All published snapshots, oldest first."""
    names = (NAME.fullmatch(path.removeprefix(f"{FOLDER}/")) for path, _ in files.list(FOLDER))
    return sorted(int(name[1]) for name in names if name)


def latest(files: Files) -> Snapshot:
    """The snapshot that holds now."""
    while found := numbers(files):
        try:
            return _load(files, found[-1])
        except Missing:  # it got old and was collected since we looked
            continue
    raise CrawlMissing(f"{files.root}: no crawl here; make one with `gossamer init {files.root}`")


def load(files: Files, number: int) -> Snapshot:
    """One published snapshot."""
    try:
        return _load(files, number)
    except Missing:
        raise UsageError(f"there is no snapshot {number}; see `gossamer snapshots list`") from None


def _load(files: Files, number: int) -> Snapshot:
    document = read_json(files, path_of(number))
    try:
        if document.pop("format") > FORMAT:
            raise VersionError(
                f"{files.root}: snapshot {number} was written by a newer Gossamer; upgrade with `pip install -U gossamer`"
            )
        missing = [name for name in ("tables", "segments") if name not in document]
        if missing:
            raise KeyError(missing[0])
        snapshot = msgspec.convert(document, Snapshot)
        if snapshot.id != number:
            raise KeyError(f"its id is {snapshot.id}")
        return snapshot
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise CorruptError(
            f"{files.url(path_of(number))}: not a snapshot ({error}); restore it or roll back"
        ) from error


def encode(snapshot: Snapshot) -> bytes:
    """A snapshot as it is stored."""
    return json.dumps({"format": FORMAT} | asdict(snapshot), indent=1, sort_keys=True).encode()


def publish_first(files: Files, shards: int, at: str) -> Snapshot:
    """Begin a crawl: snapshot 0, empty."""
    first = Snapshot(0, None, "00000000-init", "init", at, shards)
    try:
        files.create(path_of(0), encode(first))
    except Exists:
        raise UsageError(f"{files.root}: there is a crawl already; choose another directory") from None
    return first


def publish(files: Files, change: Change, parent: Snapshot) -> Snapshot:
    """Make a change the latest snapshot, re-basing on what others published since `parent`."""
    for _ in range(PUBLISH_TRIES):
        base = latest(files)
        _refuse_conflict(files, change, parent, base)
        ours = _applied(change, base)
        try:
            files.create(path_of(ours.id), encode(ours))
        except Exists:
            continue
        return ours
    raise ConflictError(f"{change.stage}: other jobs keep publishing; run the same command again")


def _refuse_conflict(files: Files, change: Change, parent: Snapshot, base: Snapshot) -> None:
    """Raise if somebody published to one of our tables since `parent`, and say who."""
    theirs = touched_between(parent, base)
    clash = sorted(name for name in theirs if any(_overlap(name, ours) for ours in change.written()))
    if clash:
        winner = _toucher(files, parent, base, clash[0])
        what = "all tables" if clash[0] == "*" else clash[0]
        raise ConflictError(
            f"{change.stage}: run {winner.run} published {what} first (snapshot {winner.id}); "
            "nothing was changed, run the same command again to work on top of it"
        )


def _overlap(one: str, other: str) -> bool:
    """Whether two names of tables, or of a table's segment, have files in common."""
    return "*" in (one, other) or one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _toucher(files: Files, parent: Snapshot, base: Snapshot, name: str) -> Snapshot:
    """The last snapshot between two that changed a table, as far as the log still goes back."""
    newer = base
    try:
        while newer.parent not in (None, parent.id):
            older = load(files, newer.parent or 0)
            if name in touched_between(older, newer):
                break
            newer = older
    except UsageError:  # collected
        return newer
    return newer


def touched_between(before: Snapshot, after: Snapshot) -> dict[str, str]:
    """Tables (of a segment) whose file sets differ between two snapshots, with the run that wrote what is there now."""
    if before.shards != after.shards:
        return {"*": after.run}
    touched: dict[str, str] = {}
    for table in before.tables.keys() | after.tables.keys():
        gone, new = set(before.sets(table)) - set(after.sets(table)), set(after.sets(table)) - set(before.sets(table))
        touched |= {_name(table, s): after.run for s in gone}
        touched |= {_name(table, s): s.folder.rsplit("/", 1)[-1] for s in sorted(new, key=lambda s: s.folder)}
    return touched


def _name(table: str, file_set: FileSet) -> str:
    return f"{table}/{file_set.segment}" if file_set.segment else table


def _applied(change: Change, base: Snapshot) -> Snapshot:
    """The snapshot that follows `base` when `change` is applied to it."""
    tables = dict(base.tables)
    for table, sets in change.replace.items():
        anew = {s.segment for s in sets if s.segment}
        kept = tuple(s for s in tables.get(table, ()) if anew and s.segment not in anew)
        tables[table] = kept + sets
    for table, sets in change.append.items():
        tables[table] = tables.get(table, ()) + sets
    segments = dict(base.segments)
    for name, stages in change.segments.items():
        segments[name] = segments.get(name, ()) + tuple(s for s in stages if s not in segments.get(name, ()))
    return Snapshot(
        id=base.id + 1,
        parent=base.id,
        run=change.run,
        stage=change.stage,
        at=change.at,
        shards=change.shards or base.shards,
        tables={name: sets for name, sets in tables.items() if sets},
        segments=segments,
        columns=[c for c in base.columns if c["name"] not in {new["name"] for new in change.columns}] + change.columns,
        counters=change.counters,
        note=change.note,
    )


def rollback(files: Files, number: int, at: str) -> Snapshot:
    """Publish an older snapshot's content as a new, higher one; this also cures a damaged latest one."""
    lease = leases.acquire(files, "rollback", {"run": None, "snapshot": number})  # keeps a collection off its files
    try:
        old = load(files, number)
        current = numbers(files)[-1]
        again = replace(
            old,
            id=current + 1,
            parent=current,
            run=f"{current:08d}-rollback",
            stage="rollback",
            at=at,
            counters={},
            note=f"back to snapshot {number}",
            restores=number,
        )
        files.create(path_of(again.id), encode(again))
    except Exists:
        raise ConflictError(
            "rollback: another job published meanwhile; look at `gossamer snapshots list` and decide again"
        ) from None
    finally:
        lease.release()
    return again


def manifest_path(folder: str, attempt: int) -> str:
    """The manifest of what one attempt of a run wrote into a folder."""
    return f"{folder}/{MANIFEST.format(attempt=attempt)}"


def write_manifest(files: Files, folder: str, entries: Iterable[FileEntry], attempt: int) -> None:
    """Name the files of a set durably."""
    document = {"format": FORMAT, "attempt": attempt, "files": [asdict(entry) for entry in entries]}
    files.replace(manifest_path(folder, attempt), json.dumps(document, indent=1).encode())


def read_manifest(files: Files, file_set: FileSet) -> list[FileEntry]:
    """The files of a set."""
    path = file_set.manifest
    try:
        return [FileEntry(**entry) for entry in read_json(files, path)["files"]]
    except (KeyError, TypeError) as error:
        raise CorruptError(f"{files.url(path)}: not a manifest ({error}); restore it or roll back") from error
