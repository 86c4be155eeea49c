"""Storage under every fault: a crash at any instant leaves the crawl as it was before an operation or as after it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.storage import collect, parquet, snapshots
from gossamer.storage.files import Files, Missing, open_files
from gossamer.storage.snapshots import Change
from tests.faults.harness import every_crash_point, every_request_point
from tests.storage.building import AT, append, data_files, descriptors, replace, whole, write_set

RUN = "00000003-load"


@pytest.fixture(autouse=True)
def no_descriptor_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    before = descriptors()
    yield
    assert "s3_server" in request.fixturenames or descriptors() == before


def small_crawl(files: Files) -> None:
    """Three publishes on one table, so that there is something to lose."""
    snapshots.publish_first(files, 4, AT)
    append(files, "hosts", "00000000-hosts")
    for n in (1, 2):
        replace(files, "crawldb", f"{n:08d}-load", first=100 * n)


def everything(files: Files) -> Any:
    """All snapshots with what their files hold; anything missing or cut is an error."""
    return whole(files)


def done(files: Files) -> bool:
    """Whether our run was published; if so, for good."""
    published = snapshots.latest(files).run == RUN
    if published:
        files.settle(snapshots.FOLDER)
    return published


def next_attempt(files: Files) -> int:
    """One more than any attempt that left a file; the runner has this from its record."""
    parts = [path for path in data_files(files) if f"/{RUN}/part-" in path]
    return max((int(path.removesuffix(".parquet")[-3:]) for path in parts), default=0) + 1


def write_and_publish(files: Files) -> None:
    """What a stage does: parts, manifest, snapshot."""
    if done(files):
        return
    parent = snapshots.latest(files)
    file_set = write_set(files, "crawldb", RUN, first=300, parts=2, attempt=next_attempt(files))
    snapshots.publish(files, Change(RUN, "load", AT, replace={"crawldb": (file_set,)}), parent)


def publish(files: Files) -> None:
    """Publish what was written before."""
    if not done(files):
        snapshots.publish(files, Change(RUN, "load", AT, segments={"r1": ("fetch",)}), snapshots.latest(files))


def log(files: Files) -> Any:
    """The commit log as it can be read."""
    return [snapshots.load(files, number) for number in snapshots.numbers(files)]


def test_publish(tmp_path: Path):
    every_crash_point("publish", tmp_path, small_crawl, publish, log)


def test_init(tmp_path: Path):
    def init(files: Files) -> None:
        if not snapshots.numbers(files):
            snapshots.publish_first(files, 4, AT)
        files.settle(snapshots.FOLDER)

    every_crash_point("init", tmp_path, lambda files: None, init, log)


def test_write_and_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parquet, "BUFFER_BYTES", 64)  # so that even these small files are written in several pieces
    every_crash_point("write and publish", tmp_path, small_crawl, write_and_publish, everything)


@pytest.mark.parametrize("there", [True, False])
def test_replace(tmp_path: Path, there: bool):
    def make(files: Files) -> None:
        if there:
            files.replace("pins/index.json", b"before " * 100)

    def content(files: Files) -> bytes | None:
        try:
            return files.read("pins/index.json")
        except Missing:
            return None

    name = "replace what is there" if there else "replace what is not there"
    every_crash_point(name, tmp_path, make, lambda files: files.replace("pins/index.json", b"after " * 100), content)


def test_rollback(tmp_path: Path):
    def rollback(files: Files) -> None:
        if snapshots.latest(files).stage != "rollback":
            snapshots.rollback(files, 2, AT)
        files.settle(snapshots.FOLDER)

    every_crash_point("rollback", tmp_path, small_crawl, rollback, everything)


def test_collect(tmp_path: Path):
    """Half a collection is no state of its own: the latest snapshot is as it was, and every older one whole or gone."""

    def littered(files: Files) -> None:
        small_crawl(files)
        for n in (3, 4):
            replace(files, "crawldb", f"{n:08d}-load", first=100 * n, parts=2)
        write_set(files, "crawldb", "00000005-load", parts=2)
        collect.pin(files, "index", 2)

    def latest(files: Files) -> Any:
        held = whole(files)
        assert {2, 5} <= held.keys()
        return max(held), held[max(held)]

    def listing(files: Files) -> Any:
        return sorted(files.list("snapshots")), sorted(files.list("tables"))

    every_crash_point("collect", tmp_path, littered, lambda files: collect.collect(files, 2), latest, settled=listing)


def test_delete(tmp_path: Path):
    """A file that was reported deleted does not come back."""

    def make(files: Files) -> None:
        for name in ("a/x/1", "a/x/2", "a/y/3", "b"):
            files.replace(name, b"1")

    every_crash_point(
        "delete", tmp_path, make, lambda files: files.delete("a/y/3"), lambda files: sorted(files.list(""))
    )


@pytest.mark.s3
@pytest.mark.parametrize("operation", [publish, write_and_publish])
def test_requests(s3_server: str, operation: Any):
    def new_files() -> Files:
        return open_files(f"{s3_server}/{uuid.uuid4().hex}")

    name = f"{operation.__name__.replace('_', ' ')} in a bucket"
    every_request_point(name, new_files, small_crawl, operation, everything)
