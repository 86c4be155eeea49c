"""The harness itself: every mistake it is there for must be found."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gossamer.storage import collect, parquet, snapshots
from gossamer.storage.local import LocalFiles, told
from gossamer.storage.snapshots import Change
from tests.faults import harness
from tests.faults.disk import DEADLY, KINDS, FaultyDisk, Journal, Killed
from tests.faults.harness import Trial, digest, every_crash_point, every_request_point
from tests.faults.recording import RECORDABLE
from tests.storage.building import AT, data_files, replace, whole, write_set


@pytest.fixture(autouse=True)
def out_of_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "TRIED", {})
    monkeypatch.setattr(harness, "LEFT", {})


def content(files: Any) -> object:
    return [(path, files.read(path)) for path, _ in files.list("a") if ".tmp-" not in path]


Write = Callable[[LocalFiles, str, bytes], object]


def found(folder: Path, write: Write, *, there: bool = True, recorded: bool = False) -> set[str]:
    """The kinds of fault that find, each alone, what is wrong with a way of writing a file."""

    def make(files: LocalFiles) -> None:
        if there:
            files.replace("a/x", b"before")

    def finds(kind: str) -> bool:
        (folder / kind).mkdir()
        try:
            every_crash_point(
                kind,
                folder / kind,
                make,
                lambda files: told("x", write, files, "a/x", b"after!"),
                content,
                kinds=[kind],
                recorded=recorded,
            )
        except AssertionError:
            return True
        return False

    return {kind for kind in (RECORDABLE if recorded else KINDS) if finds(kind)}


def hidden(files: LocalFiles, path: str, data: bytes, *, sync: bool = True) -> str:
    name = files.url(path) + ".tmp-x"
    fd = files.disk.open_new(name)
    try:
        files.disk.write(fd, data)
        if sync:
            files.disk.sync(fd)
    finally:
        os.close(fd)
    return name


def in_place(files: LocalFiles, path: str, data: bytes) -> None:
    files.delete(path)
    writer = files.writer(path)
    try:
        writer.write(data)
        writer.close()
    finally:
        writer.abort()


def folder_not_synced(files: LocalFiles, path: str, data: bytes) -> None:
    files.delete(path + ".tmp-x")
    files.disk.rename(hidden(files, path, data), files.url(path))


def bytes_not_synced(files: LocalFiles, path: str, data: bytes) -> None:
    files.delete(path + ".tmp-x")
    files.disk.rename(hidden(files, path, data, sync=False), files.url(path))
    files.disk.sync_dir(files.url("a"))


def parent_not_synced(files: LocalFiles, path: str, data: bytes) -> None:
    files.disk.make_dir(files.root)
    files.disk.make_dir(files.url("a"))
    files._settled = {files.root, files.url("a")}
    files.replace(path, data)


def deaf_to_death(files: LocalFiles, path: str, data: bytes) -> None:
    try:
        files.replace(path, data)
    except Killed:
        return


def done_without_looking(files: LocalFiles, path: str, data: bytes) -> None:
    """Takes what a dead predecessor left for durable."""
    if files.read(path) != data:
        files.replace(path, data)


def test_a_good_way_to_write_passes(tmp_path: Path):
    assert found(tmp_path, LocalFiles.replace) == set()


def test_writing_in_place_is_found(tmp_path: Path):
    assert found(tmp_path, in_place) >= {"kill", "torn", "lost", "reordered", "enospc", "full", "eio"}


def test_a_folder_that_is_not_synced_is_found(tmp_path: Path):
    assert found(tmp_path, folder_not_synced) >= {"lost", "reordered", "relapse"}


def test_bytes_that_are_not_synced_are_found(tmp_path: Path):
    assert found(tmp_path, bytes_not_synced) == {"lost", "zeroed", "relapse"}


def test_a_new_folder_that_is_not_synced_is_found(tmp_path: Path):
    assert found(tmp_path, parent_not_synced, there=False) >= {"lost", "reordered", "relapse"}


def test_catching_the_kill_is_found(tmp_path: Path):
    assert found(tmp_path, deaf_to_death) == set(DEADLY)


@pytest.mark.parametrize("write", [LocalFiles.replace, in_place, folder_not_synced, bytes_not_synced])
def test_a_recorded_run_finds_what_replays_find(tmp_path: Path, write: Write):
    for name in ("replayed", "recorded"):
        (tmp_path / name).mkdir()
    replayed = found(tmp_path / "replayed", write) & set(RECORDABLE)
    assert found(tmp_path / "recorded", write, recorded=True) == replayed


@pytest.mark.parametrize("kind", RECORDABLE)
def test_a_recorded_run_leaves_what_replays_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    """Parts, a manifest and a snapshot are written, old ones removed: the same files are left, in the same order."""
    monkeypatch.setattr(parquet, "BUFFER_BYTES", 64)
    judged: list[tuple[str, bool]] = []
    judge = Trial.judge

    def noted(self: Trial, where: str, healthy: Any, *, finished: bool) -> None:
        judged.append((digest(healthy, apart_from="leases/"), finished))  # those the dead in a replay still give back
        judge(self, where, healthy, finished=finished)

    def make(files: LocalFiles) -> None:
        snapshots.publish_first(files, 4, AT)
        for n in range(2):
            replace(files, "crawldb", f"{n:08d}-load", first=100 * n)

    def operation(files: LocalFiles) -> None:
        if snapshots.latest(files).id < 3:
            attempt = 1 + len(data_files(files))
            written = write_set(files, "crawldb", "00000003-load", first=300, parts=2, attempt=attempt)
            change = Change("00000003-load", "load", AT, replace={"crawldb": (written,)})
            snapshots.publish(files, change, snapshots.latest(files))
        collect.collect(files, 1)

    monkeypatch.setattr(Trial, "judge", noted)
    left = []
    for recorded in (False, True):
        folder = tmp_path / str(recorded)
        folder.mkdir()
        latest = lambda files: max(whole(files))  # noqa: E731
        points = every_crash_point("both", folder, make, operation, latest, kinds=[kind], recorded=recorded)
        ended = judged.pop()
        crashes = [state for state, finished in judged if not finished]
        left.append((points, ended, crashes))
        judged.clear()
    assert left[0] == left[1]
    assert len(set(left[0][2])) >= 5


def test_trusting_a_dead_predecessor_is_found(tmp_path: Path):
    assert found(tmp_path, done_without_looking) == {"relapse"}


def test_a_collection_without_a_barrier_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Old snapshots must be gone for good before the first file goes."""

    def history(files: LocalFiles) -> None:
        snapshots.publish_first(files, 4, AT)
        for n in range(3):
            replace(files, "crawldb", f"{n:08d}-load")

    def unsynced(files: LocalFiles, *paths: str) -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                files.disk.unlink(files.url(path))

    def crashes(kind: str) -> None:
        (tmp_path / kind).mkdir(exist_ok=True)
        folder = tmp_path / kind / str(len(list((tmp_path / kind).iterdir())))
        folder.mkdir()
        every_crash_point(kind, folder, history, lambda f: collect.collect(f, 1), lambda f: max(whole(f)), kinds=[kind])

    crashes("reordered")
    crashes("relapse")
    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "settle", lambda self, folder: None)
        with pytest.raises(AssertionError, match="cannot be read"):
            crashes("relapse")
        patch.setattr(LocalFiles, "delete", unsynced)
        with pytest.raises(AssertionError, match="cannot be read"):
            crashes("reordered")


def test_an_operation_that_adds_up_is_found(tmp_path: Path):
    def operation(files: LocalFiles) -> None:
        files.replace("a/x", files.read("a/x") + b"+")

    with pytest.raises(AssertionError, match="a second run changes"):
        every_crash_point("adds", tmp_path, lambda files: files.replace("a/x", b""), operation, content)


def test_a_second_application_after_a_lost_answer_is_found(tmp_path: Path):
    """Done is done, even if nobody heard of it."""
    places = iter(range(1000))

    def operation(files: Any) -> None:
        if b"told" not in files.read("a/x"):
            files.replace("a/x", files.read("a/x") + b"+")
            files.replace("a/x", files.read("a/x") + b"told")

    with pytest.raises(AssertionError, match=r"neither as before nor as after|ended elsewhere"):
        every_request_point(
            "adds",
            lambda: LocalFiles(str(tmp_path / str(next(places)))),
            lambda files: files.replace("a/x", b""),
            operation,
            content,
        )


def test_a_faulty_disk_stays_in_its_process(tmp_path: Path):
    with pytest.raises(TypeError, match="without workers"):
        pickle.dumps(LocalFiles(str(tmp_path), FaultyDisk(Journal(tmp_path))))


def test_a_power_cut_brings_back_what_was_replaced_and_removed(tmp_path: Path):
    files = LocalFiles(str(tmp_path / "crawl"))
    for name in ("a/x", "a/y", "b/z"):
        files.replace(name, b"old")
    journal = Journal(tmp_path / "inodes")
    disk = FaultyDisk(journal)
    disk.rename(hidden(LocalFiles(files.root, disk), "a/x", b"new"), files.url("a/x"))
    disk.unlink(files.url("a/y"))
    disk.unlink(files.url("b/z"))
    disk.remove_dir(files.url("b"))
    disk.make_dir(files.url("c"))
    assert [path for path, _ in files.list("")] == ["a/x"]
    journal.cut_power("lost")
    assert {path: files.read(path) for path, _ in files.list("")} == dict.fromkeys(["a/x", "a/y", "b/z"], b"old")
    assert not (tmp_path / "crawl/c").exists()
