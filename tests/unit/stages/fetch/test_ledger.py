"""The ledger: parts, rotation, errors of its thread, and object storage."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gossamer.errors import StorageError
from gossamer.stages.fetch import ledger as module
from gossamer.stages.fetch.ledger import FETCH, ROBOTS, Form, Home, Ledger, generation_of
from gossamer.stages.fetch.robots import parse_robots
from gossamer.stages.fetch.rows import Answered
from gossamer.storage.disk import Disk
from gossamer.storage.local import LocalFiles
from tests.unit.stages.fetch.ledgers import (
    AT,
    FORM,
    SEGMENT,
    begun,
    fetched,
    home_at,
    lengths,
    published,
    refused,
    url_of,
    warcs,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer


class TracingDisk(Disk):
    """Says what it did, and fails when it is told to."""

    def __init__(self) -> None:
        self.trace: list[str] = []
        self.fails: Callable[[str], bool] = lambda _: False
        self._names: dict[int, str] = {}

    def open_new(self, path: str) -> int:
        fd = super().open_new(path)
        self._names[fd] = Path(path).name
        return fd

    def write(self, fd: int, data: Buffer) -> None:
        self._step(f"write {self._names[fd]}")
        super().write(fd, data)

    def sync(self, fd: int) -> None:
        self._step(f"sync {self._names[fd]}")

    def sync_dir(self, path: str) -> None:
        self._step(f"sync_dir {Path(path).name}")

    def link(self, source: str, target: str) -> None:
        self._step(f"link {Path(target).name}")
        super().link(source, target)

    def _step(self, step: str) -> None:
        self.trace.append(step)
        if self.fails(step):
            raise OSError(errno.ENOSPC, "No space left on device")


def test_rows_are_published_after_the_bytes_they_point_to_are_synced(tmp_path: Path):
    disk = TracingDisk()
    ledger = Ledger(home_at(tmp_path, disk), FORM, 0, 1)
    fetched(ledger, 1)
    assert not any("parquet" in step for step in disk.trace)
    ledger.close()
    warc = f"{SEGMENT}-00000-g001-00000.warc.gz"
    steps = [
        disk.trace.index(step) for step in (f"write {warc}", f"sync {warc}", "link fetch-00000-g001-000001.parquet")
    ]
    assert steps == sorted(steps)
    assert "sync_dir warc" in disk.trace[steps[1] : steps[2]]  # the name of the file is there for good as well


def test_all_that_was_decided_is_there_in_the_end(tmp_path: Path):
    home = home_at(tmp_path)
    ledger = Ledger(home, FORM, 0, 1)
    for n in range(5):
        fetched(ledger, n)
    refused(ledger, 5)
    ledger.close()
    assert set(published(home)) == {url_of(n) for n in range(6)}
    assert lengths(home) == [warcs(home)]
    places = [row["warc_offset"] for row in published(home).values() if row["warc_file"]]
    assert len(places) == 5
    assert 0 not in places  # the first record is about the file itself


def test_a_ledger_without_anything_writes_nothing(tmp_path: Path):
    home = home_at(tmp_path)
    Ledger(home, FORM, 0, 1).close()
    assert list(home.files.list("")) == []


def test_parts_are_due_after_so_many_rows_or_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now = 1000.0
    monkeypatch.setattr("gossamer.stages.fetch.ledger.time.monotonic", lambda: now)
    home = home_at(tmp_path)
    ledger = Ledger(home, FORM, 0, 1)
    ledger.pump(now + 1e6)
    refused(ledger, -1)
    ledger.pump(now + module.SECONDS - 1)
    assert len(ledger._rows) == 1
    ledger.pump(now + module.SECONDS)
    assert len(ledger._rows) == 0
    for n in range(module.ROWS - 1):
        refused(ledger, n)
    ledger.pump(now)
    assert len(ledger._rows) == module.ROWS - 1
    refused(ledger, module.ROWS)
    ledger.pump(now)
    assert ledger._rows == []
    ledger.close()
    assert len(home.parts(FETCH)) == 2
    assert len(published(home)) == module.ROWS + 1


def test_files_are_rotated_and_each_part_knows_their_lengths(tmp_path: Path):
    home = home_at(tmp_path)
    ledger = Ledger(home, Form({}, 2_000, True, 1), 3, 7)
    for n in range(12):
        fetched(ledger, n, bytes(range(256)))
        ledger.publish()
    ledger.close()
    sizes = warcs(home)
    assert len(sizes) > 2
    assert sorted(sizes) == [f"{SEGMENT}-00003-g007-{n:05d}.warc.gz" for n in range(len(sizes))]
    assert all(size >= 2_000 for name, size in sizes.items() if name != max(sizes))
    known: dict[str, int] = {}
    for part in lengths(home):
        assert all(size <= sizes[name] for name, size in part.items())
        known |= part
    assert known == sizes
    assert len(published(home)) == 12


def test_what_robots_files_said_has_parts_of_its_own(tmp_path: Path):
    home = home_at(tmp_path)
    ledger = Ledger(home, FORM, 0, 1)
    ledger.answered(
        Answered("http://host.test", "host.test", AT, AT + 9, 200, parse_robots(b"", "bot"), b"Allow: /", None)
    )
    ledger.close()
    assert home.parts(FETCH) == []
    assert [path.rsplit("/", 1)[-1] for path in home.parts(ROBOTS)] == ["robots-00000-g001-000001.parquet"]


@pytest.mark.parametrize("step", ["sync r00001", "sync_dir warc", "write .tmp", "link fetch"])
def test_a_full_disk_in_the_thread_reaches_the_caller_and_publishes_nothing(tmp_path: Path, step: str):
    disk = TracingDisk()
    home = home_at(tmp_path, disk)
    ledger = Ledger(home, FORM, 0, 1)
    fetched(ledger, 1)
    disk.fails = lambda each: each.startswith(step)
    ledger.publish()
    while not ledger._publishing or not ledger._publishing.done():
        pass
    with pytest.raises(StorageError, match="No space left"):
        ledger.pump(0.0)
    ledger.abandon()
    assert home.parts(FETCH) == []


def test_a_full_disk_reaches_the_caller_of_close(tmp_path: Path):
    disk = TracingDisk()
    home = home_at(tmp_path, disk)
    ledger = Ledger(home, FORM, 0, 1)
    fetched(ledger, 1)
    disk.fails = lambda each: each.startswith("sync r00001")
    with pytest.raises(StorageError, match=r"warc\.gz: No space left"):
        ledger.close()
    ledger.abandon()
    assert home.parts(FETCH) == []


def test_what_is_abandoned_is_not_published(tmp_path: Path):
    home = home_at(tmp_path)
    ledger = Ledger(home, FORM, 0, 1)
    fetched(ledger, 1)
    ledger.publish()
    fetched(ledger, 2)
    ledger.abandon()
    assert set(published(home)) == {url_of(1)}


def test_generations_are_counted_from_all_files(tmp_path: Path):
    home = home_at(tmp_path)
    assert home.generation() == 1
    begun(home, 4)
    assert home.generation() == 5
    ledger = Ledger(home, FORM, 0, 9)
    fetched(ledger, 1)
    ledger.close()
    for path in home.parts(FETCH):
        home.files.delete(path)
    assert home.generation() == 10  # a WARC file alone counts
    assert [generation_of(name) for name in ("x-g012-1.warc.gz", "journal-00000-g003.bin", "stop")] == [12, 3, 0]


class Elsewhere:
    """Object storage, as far as a ledger sees it: files that are not those of the spool."""

    def __init__(self, root: Path) -> None:
        self._files = LocalFiles(str(root))
        self.root = "s3://bucket/crawl"

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)


def remote(tmp_path: Path) -> Home:
    return Home(Elsewhere(tmp_path / "far"), LocalFiles(str(tmp_path / "spool")), SEGMENT)  # type: ignore[arg-type]


def test_on_object_storage_files_go_up_in_pairs(tmp_path: Path):
    home = remote(tmp_path)
    ledger = Ledger(home, Form({}, 1_500, True, 1), 0, 1)
    for n in range(20):
        fetched(ledger, n, bytes(range(256)))
        ledger.publish()
        if ledger._publishing:
            ledger._publishing.result()
        published(home, home.files)  # no part is there before the bytes it points to
    ledger.close()
    assert len(published(home, home.files)) == 20
    assert list(home.spool.list("")) == []


def test_rows_without_a_warc_file_go_up_as_well(tmp_path: Path):
    home = remote(tmp_path)
    ledger = Ledger(home, FORM, 0, 1)
    refused(ledger, 1)
    ledger.close()
    assert set(published(home)) == {url_of(1)}
    assert list(home.spool.list("")) == []
