"""What every file system must do, and what only one of them has to."""

from __future__ import annotations

import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from gossamer.errors import CorruptError, StorageError, UsageError
from gossamer.storage.disk import Disk
from gossamer.storage.files import Exists, Files, Missing, open_files
from gossamer.storage.local import LocalFiles
from tests.storage.building import descriptors, hear, names, say, start

if TYPE_CHECKING:
    from typing_extensions import Buffer

RACER = """
import sys
from gossamer.storage.files import Exists, open_files
root, me = sys.argv[1:]
files = open_files(root)
files.exists("x")
print("ready", flush=True)
sys.stdin.readline()
won = []
for n in range(20):
    try:
        files.create(f"log/{n}", me.encode())
        won.append(str(n))
    except Exists:
        pass
print(" ".join(won), flush=True)
"""


def test_create_writes_a_file_once(files: Files):
    files.create("a/b/c.json", b"one")
    with pytest.raises(Exists):
        files.create("a/b/c.json", b"two")
    assert files.read("a/b/c.json") == b"one"


def test_replace_writes_over_what_is_there(files: Files):
    files.replace("x.json", b"one")
    files.replace("x.json", b"two, which is longer")
    files.replace("x.json", b"3")
    assert files.read("x.json") == b"3"


def test_one_of_many_threads_creates_a_file(files: Files):
    start_line = Barrier(16)

    def race(me: int) -> list[int]:
        start_line.wait()
        won = []
        for n in range(10):
            try:
                files.create(f"log/{n}", b"%d" % me)
            except Exists:
                continue
            won.append(n)
        return won

    with ThreadPoolExecutor(16) as pool:
        wins = list(pool.map(race, range(16)))
    winners = {n: me for me, won in enumerate(wins) for n in won}
    assert sum(map(len, wins)) == len(winners) == 10
    assert {n: int(files.read(f"log/{n}")) for n in range(10)} == winners
    assert names(files, "log") == [f"log/{n}" for n in range(10)]  # nothing hidden stays behind


def test_one_of_many_processes_creates_a_file(files: Files):
    racers = [start(RACER, files.root, str(me)) for me in range(3)]
    assert [hear(racer) for racer in racers] == ["ready"] * 3
    for racer in racers:
        say(racer)
    wins = [[int(n) for n in racer.communicate()[0].split()] for racer in racers]
    winners = {n: me for me, won in enumerate(wins) for n in won}
    assert sum(map(len, wins)) == len(winners) == 20
    assert {n: int(files.read(f"log/{n}")) for n in range(20)} == winners


def test_a_writer_writes_in_pieces(files: Files):
    writer = files.writer("t/part.bin")
    for piece in (b"ab", b"", b"cd" * 100_000):
        assert writer.write(piece) == len(piece)
    writer.close()
    writer.close()  # twice is fine
    assert files.read("t/part.bin") == b"ab" + b"cd" * 100_000


def test_a_writer_may_write_nothing(files: Files):
    files.writer("t/empty").close()
    assert files.read("t/empty") == b""
    assert list(files.list("t")) == [("t/empty", 0)]


def test_an_aborted_writer_leaves_nothing(files: Files):
    writer = files.writer("t/part.bin")
    writer.write(b"x" * 1000)
    writer.abort()
    writer.abort()
    del writer
    gc.collect()
    assert not files.exists("t/part.bin")
    assert names(files, "t") == []


def test_list_names_files_below_a_folder_and_their_sizes(files: Files):
    for path, data in {"t/b": b"22", "t/a/x": b"1", "t/c": b"", "tt/no": b"", "top": b""}.items():
        files.replace(path, data)
    assert sorted(files.list("t")) == [("t/a/x", 1), ("t/b", 2), ("t/c", 0)]
    assert sorted(names(files, "")) == ["t/a/x", "t/b", "t/c", "top", "tt/no"]
    assert names(files, "nothing/here") == []


def test_list_goes_past_a_thousand_names(files: Files):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: files.replace(f"many/{n:04}", b""), range(1050)))
    assert len(names(files, "many")) == 1050
    files.delete(*names(files, "many"))
    assert names(files, "many") == []


def test_exists(files: Files):
    files.create("a/b", b"")
    assert files.exists("a/b")
    assert not files.exists("a/c")
    assert not files.exists("b")


def test_delete_takes_many_and_minds_no_missing_ones(files: Files):
    for path in ("t/a", "t/b", "u/c", "u/d"):
        files.create(path, b"")
    files.delete("t/a", "t/b", "t/never", "u/c", "nowhere/x")
    files.delete("t/a")
    files.delete()
    assert names(files, "t") == []
    assert names(files, "u") == ["u/d"]
    files.create("t/a", b"again")


def test_a_missing_file_is_named(files: Files):
    with pytest.raises(Missing, match=r"no/such: .*missing.*rollback") as raised:
        files.read("no/such")
    assert isinstance(raised.value, CorruptError)
    assert files.root in str(raised.value)
    with pytest.raises(Missing):
        files.open("no/such")


def test_open_reads_and_seeks(files: Files):
    files.create("x.gz", b"0123456789")  # the name must not make anybody unpack it
    with files.open("x.gz") as stream:
        assert stream.read(3) == b"012"
        stream.seek(-2, 2)
        assert stream.read() == b"89"


def test_a_file_is_young_after_it_was_written(files: Files):
    files.create("x/y", b"")
    assert -2 < files.ages("x")["x/y"] < 60
    assert files.ages("nowhere") == {}


def test_settle_takes_any_folder(files: Files):
    files.create("a/b", b"")
    files.settle("a")
    files.settle("nowhere")


def test_files_travel_to_workers(files: Files):
    files.create("a", b"1")
    copy = pickle.loads(pickle.dumps(files))
    assert copy.read("a") == b"1"
    copy.create("b/c", b"2")
    assert files.read("b/c") == b"2"


def test_only_directories_and_buckets_are_known(tmp_path: Path):
    assert isinstance(open_files(str(tmp_path)), LocalFiles)
    with pytest.raises(UsageError, match="gs:// is not supported"):
        open_files("gs://bucket/x")


def test_folders_go_with_their_last_file(tmp_path: Path):
    files = LocalFiles(str(tmp_path / "crawl"))
    files.create("tables/t/run-1/a", b"")
    files.create("tables/t/run-2/b", b"")
    files.delete("tables/t/run-1/a")
    assert sorted(p.name for p in tmp_path.glob("crawl/tables/t/*")) == ["run-2"]
    files.delete("tables/t/run-2/b")
    assert list(tmp_path.glob("crawl/*")) == []
    files.create("tables/t/run-1/a", b"")


def test_writers_and_deleters_of_one_folder_do_not_disturb_each_other(tmp_path: Path):
    files = [LocalFiles(str(tmp_path / "crawl")) for _ in range(4)]

    def churn(me: int) -> None:
        for n in range(200):
            files[me].create(f"a/b/{me}-{n}", b"")
            files[me].delete(f"a/b/{me}-{n}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(churn, range(4)))
    assert names(files[0], "") == []


def test_a_closed_writer_never_touches_the_next_file_of_its_descriptor(tmp_path: Path):
    files = LocalFiles(str(tmp_path))
    first = files.writer("first")
    first.abort()
    second = files.writer("second")  # gets the number of the descriptor just closed
    with pytest.raises(ValueError, match="closed"):
        first.write(b"stray")
    second.write(b"mine")
    second.close()
    assert files.read("second") == b"mine"


@pytest.mark.parametrize("call", ["scandir", "stat"])
def test_what_cannot_be_looked_at_is_not_taken_for_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str):
    def denied(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    files = LocalFiles(str(tmp_path))
    files.create("snapshots/x", b"")
    with monkeypatch.context() as patch:  # root, as whom tests may run, is denied nothing
        patch.setattr(os, call, denied)
        with pytest.raises(StorageError, match=r"(?i)snapshots.*permission denied"):
            names(files, "snapshots") if call == "scandir" else files.exists("snapshots/x")


class FullOnce(Disk):
    """A disk whose first write fails half-way."""

    def __init__(self) -> None:
        self.failed = False

    def write(self, fd: int, data: Buffer) -> None:
        if not self.failed:
            self.failed = True
            super().write(fd, memoryview(data)[:1])
            raise OSError(28, "No space left on device")
        super().write(fd, data)


def test_a_file_with_a_hole_cannot_be_closed(tmp_path: Path):
    files = LocalFiles(str(tmp_path), FullOnce())
    before = descriptors()
    writer = files.writer("part")
    with pytest.raises(StorageError, match="the disk is full"):
        writer.write(b"xyz")
    with pytest.raises(ValueError, match="after it was closed"):
        writer.write(b"y")
    with pytest.raises(ValueError, match="after it was dropped"):
        writer.close()
    assert names(files, "") == []
    assert descriptors() == before


class ClosedAbove(Disk):
    """A disk on which we may not open what lies above the crawl."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def sync_dir(self, path: str) -> None:
        if not path.startswith(self.root):
            raise PermissionError(13, "Permission denied", path)
        super().sync_dir(path)


def test_the_folder_above_the_crawl_may_be_closed_to_us(tmp_path: Path):
    (tmp_path / "crawl").mkdir()
    files = LocalFiles(str(tmp_path / "crawl"), ClosedAbove(tmp_path / "crawl"))
    files.create("a/b", b"1")
    assert files.read("a/b") == b"1"
