"""The write-ahead ledger: WARC files grow, and rows are published only when the bytes they point to are synced.

A part of rows is a small Parquet file below `fetching/<segment>`, created at once or not at all; it says how long each
WARC file was then. Recovery keeps every part, cuts the WARC files back to what the parts know, and what is left of the
list is fetched. On object storage both lie in a local spool first, and go up in pairs when a WARC file is full.

Syncing waits for the disk, so it happens in a thread, one part at a time.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.errors import CorruptError
from gossamer.stages.fetch.rows import Answered, Place, Row, fetch_rows, robots_rows
from gossamer.storage.files import Files
from gossamer.storage.local import LocalFiles, told
from gossamer.storage.warc import Exchange, pack, warcinfo

ROWS, SECONDS = 1_000, 30.0  # a part is published after so many rows, or so long
BUFFERED = 1 << 20
PIECE = 1 << 22
LENGTHS = b"gossamer.warc"  # in the metadata of a part: bytes of each WARC file that were synced before
FETCH, ROBOTS = "fetch", "robots"
PART = re.compile(r"(fetch|robots)-\d+-g\d+-\d+\.parquet")
GENERATION = re.compile(r"-g(\d+)[-.]")  # in the name of every file: which attempt at the segment wrote it


@dataclass(frozen=True)
class Home:
    """Where a segment's files are while it is fetched."""

    files: Files
    spool: LocalFiles  # the crawl itself, if it is on a disk
    segment: str

    @property
    def folder(self) -> str:
        """Where parts and journals lie."""
        return f"fetching/{self.segment}"

    @property
    def warc(self) -> str:
        """Where WARC files lie, for good."""
        return f"segments/{self.segment}/warc"

    @property
    def remote(self) -> bool:
        """Whether files have to be brought up."""
        return self.files is not self.spool and not isinstance(self.files, LocalFiles)

    def parts(self, kind: str) -> list[str]:
        """The published parts of one kind."""
        found = (path for path, _ in self.files.list(self.folder))
        return sorted(path for path in found if (name := PART.fullmatch(path.rsplit("/", 1)[-1])) and name[1] == kind)

    def generation(self) -> int:
        """A number that no file here has yet."""
        places = (
            (self.files, self.folder),
            (self.spool, self.folder),
            (self.files, self.warc),
            (self.spool, self.warc),
        )
        return max((generation_of(path) for files, folder in places for path, _ in files.list(folder)), default=0) + 1

    def journal(self, task: int, generation: int) -> Path:
        """The journal of one process; while it is there, the WARC files of its generation are not finished."""
        return Path(self.spool.url(f"{self.folder}/journal-{task:05d}-g{generation:03d}.bin"))

    def journals(self) -> list[Path]:
        """All journals."""
        found = (path for path, _ in self.spool.list(self.folder) if path.endswith(".bin"))
        return [Path(self.spool.url(path)) for path in found]


def generation_of(path: str) -> int:
    """Which attempt at its segment wrote a file."""
    found = GENERATION.search(path.rsplit("/", 1)[-1])
    return int(found[1]) if found else 0


@dataclass
class WarcFile:
    """A WARC file being written."""

    files: LocalFiles
    path: str
    size: int = 0
    _waiting: list[bytes] = field(default_factory=list)
    _waiting_bytes: int = 0

    def __post_init__(self) -> None:
        self._full = self.files.url(self.path)
        self._fd = self.files.open_new(self._full)

    @property
    def name(self) -> str:
        """The name without its folder."""
        return self.path.rsplit("/", 1)[-1]

    def write(self, data: bytes) -> int:
        """Append; where the data begins."""
        start = self.size
        self.size += len(data)
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= BUFFERED:
            self.flush()
        return start

    def flush(self) -> None:
        """Hand what waits to the operating system."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            told(self._full, self.files.disk.write, self._fd, b"".join(waiting))

    def sync(self) -> None:
        """Force what was flushed to the device."""
        told(self._full, self.files.disk.sync, self._fd)

    def settle(self) -> None:
        """Make sure the name is there after a power cut, too."""
        told(self._full, self.files.disk.sync_dir, str(Path(self._full).parent))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


@dataclass(frozen=True)
class Form:
    """How WARC files and rows are written."""

    info: dict[str, str]  # for warcinfo records
    warc_bytes: int
    with_requests: bool
    rules_version: int
    rows: int = ROWS
    seconds: float = SECONDS


class Ledger:
    """What one process has decided, on its way to the disk."""

    def __init__(self, home: Home, form: Form, task: int, generation: int) -> None:
        self.home, self.form = home, form
        self._task, self._generation = task, generation
        self._serial = self._number = 0
        self._rows: list[Row] = []
        self._answers: list[Answered] = []
        self._warc: WarcFile | None = None
        self._full: list[WarcFile] = []  # to be synced and closed with the next part
        self._since = time.monotonic()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gossamer-ledger")
        self._publishing: Future[None] | None = None
        self._up: list[str] = []  # paths in the spool that are to be brought up

    def archive(self, exchange: Exchange, at: float) -> Place:
        """Append a request and its answer to the WARC file."""
        if self._warc is None:
            self._warc = self._open(at)
        packed = pack(exchange, with_request=self.form.with_requests)
        start = self._warc.write(packed.data)
        place = Place(self._warc.name, start + packed.offset, packed.length)
        if self._warc.size >= self.form.warc_bytes:
            self._full.append(self._warc)
            self._warc = None
        return place

    def add(self, row: Row) -> None:
        """Take a row."""
        self._rows.append(row)

    def answered(self, answer: Answered) -> None:
        """Take what an origin said of its robots.txt."""
        self._answers.append(answer)

    def pump(self, now: float) -> None:
        """Publish what is due; raises what went wrong in the thread."""
        due = len(self._rows) >= self.form.rows or (
            now - self._since >= self.form.seconds and (self._rows or self._answers)
        )
        if due or len(self._full) > 1:
            self.publish()
        elif self._publishing is not None and self._publishing.done():
            self._publishing.result()

    def publish(self) -> None:
        """Publish all rows; waits only for the part before this one."""
        if self._publishing is not None:
            self._publishing.result()
            self._publishing = None
        self._since = time.monotonic()
        if not (self._rows or self._answers or self._full):
            return
        rows, self._rows = self._rows, []
        answers, self._answers = self._answers, []
        full, self._full = self._full, []
        written = [*full, self._warc] if self._warc else full
        for warc in written:
            warc.flush()
        lengths = {warc.name: warc.size for warc in written}
        self._number += 1
        self._publishing = self._thread.submit(self._write, rows, answers, full, self._warc, lengths, self._number)

    def close(self) -> None:
        """Publish the rest and wait until it is there."""
        if self._warc is not None:
            self._full.append(self._warc)
            self._warc = None
        try:
            self.publish()
            if self._publishing is not None:
                self._publishing.result()
        finally:
            self._thread.shutdown()

    def abandon(self) -> None:
        """Let go without publishing; what was published stays."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        for warc in [*self._full, self._warc] if self._warc else self._full:
            warc.close()

    def _open(self, at: float) -> WarcFile:
        name = f"{self.home.segment}-{self._task:05d}-g{self._generation:03d}-{self._serial:05d}.warc.gz"
        self._serial += 1
        warc = WarcFile(self.home.spool, f"{self.home.warc}/{name}")
        warc.write(warcinfo(name, at, self.form.info))
        return warc

    def _write(
        self,
        rows: list[Row],
        answers: list[Answered],
        full: list[WarcFile],
        current: WarcFile | None,
        lengths: dict[str, int],
        number: int,
    ) -> None:
        """In the thread: sync the WARC files, then publish the rows, then bring up what is complete."""
        try:
            for warc in [*full, current] if current else full:
                warc.sync()
                warc.settle()
        finally:
            for warc in full:
                warc.close()
        metadata = {LENGTHS: json.dumps(lengths).encode()}
        tables = []
        if rows:
            tables.append((FETCH, fetch_rows(rows, self.home.segment, self.form.rules_version)))
        if answers:
            tables.append((ROBOTS, robots_rows(answers)))
        for kind, table in tables:
            path = f"{self.home.folder}/{kind}-{self._task:05d}-g{self._generation:03d}-{number:06d}.parquet"
            self.home.spool.create(path, encoded(table.replace_schema_metadata(metadata)))
            self._up.append(path)
        if self.home.remote and (full or current is None):  # rows that point nowhere need no WARC file to go up with
            bring_up(self.home, [warc.path for warc in full])
            bring_up(self.home, self._complete(current))

    def _complete(self, current: WarcFile | None) -> list[str]:
        """Parts that point into no WARC file that still grows."""
        ready = [p for p in self._up if current is None or current.name not in _lengths(self.home.spool, p)]
        self._up = [path for path in self._up if path not in ready]
        return ready


def encoded(table: pa.Table) -> bytes:
    """A table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", compression_level=1, use_dictionary=["segment", "protocol", "tls"])
    return bytes(sink.getvalue())


def _lengths(files: Files, path: str) -> dict[str, int]:
    """How long WARC files were when a part was published."""
    with files.open(path) as stream:
        metadata = pq.read_schema(stream).metadata or {}
    found: dict[str, int] = json.loads(metadata.get(LENGTHS, b"{}"))
    return found


def bring_up(home: Home, paths: Iterable[str]) -> None:
    """Copy files from the spool to object storage, then drop them here."""
    for path in paths:
        with home.spool.open(path) as source:
            target = home.files.writer(path)
            try:
                while piece := source.read(PIECE):
                    target.write(piece)
                target.close()
            except BaseException:
                target.abort()
                raise
        home.spool.delete(path)


def recover(home: Home) -> None:
    """Cut WARC files back to what published rows know of them, and drop those that no row points to."""
    unfinished = {generation_of(path.name) for path in home.journals()}
    known: dict[str, int] = {}
    local = [path for path, _ in home.spool.list(home.folder) if PART.fullmatch(path.rsplit("/", 1)[-1])]
    for path in local:
        for name, size in _lengths(home.spool, path).items():
            known[name] = max(known.get(name, 0), size)
    there = {path.rsplit("/", 1)[-1]: path for path, _ in (*home.spool.list(home.warc), *home.files.list(home.warc))}
    for name in sorted(known.keys() - there.keys()):
        raise _damaged(home, f"{home.warc}/{name}", "the file is missing, but rows point to it")
    for path, size in list(home.spool.list(home.warc)):
        expected = known.get(path.rsplit("/", 1)[-1])
        if expected is None:
            if generation_of(path) in unfinished:  # others belong to a snapshot, perhaps to one that was rolled back
                home.spool.delete(path)
        elif size < expected:
            raise _damaged(home, path, f"{size:,} bytes, but rows point to {expected:,}")
        elif size > expected:
            told(home.spool.url(path), home.spool.disk.cut, home.spool.url(path), expected)
    if home.remote:
        bring_up(home, [path for path, _ in list(home.spool.list(home.warc))])
        bring_up(home, local)


def _damaged(home: Home, path: str, what: str) -> CorruptError:
    cure = f"restore it from a copy, or delete {home.spool.url(home.folder)} to fetch the segment anew"
    return CorruptError(f"{home.spool.url(path)}: {what}; {cure}")


def spool_of(files: Files, chosen: str) -> LocalFiles:
    """Where a crawl's files are written first: its own directory, or a place on this machine."""
    if isinstance(files, LocalFiles):
        return files
    import tempfile

    from gossamer.urls.keys import fingerprint

    root = Path(chosen or tempfile.gettempdir()) / f"gossamer-spool-{fingerprint(files.root) & 0xFFFFFFFF:08x}"
    return LocalFiles(str(root))
