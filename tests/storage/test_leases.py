"""Leases: one holder at a time, freed by release and by death."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from gossamer.errors import ConflictError, StorageError
from gossamer.storage import leases
from gossamer.storage.files import Files
from gossamer.storage.leases import LocalLease, ObjectLease
from gossamer.storage.local import LocalFiles
from tests.servers import needs_real_server
from tests.storage.building import descriptors, hear, start

TTL_S = 2.0
STALE_S = TTL_S + 2.5  # a server tells the time in whole seconds, and versitygw up to one late
HOLDER = """
import sys
from gossamer.storage import leases
from gossamer.storage.files import open_files
lease = leases.acquire(open_files(sys.argv[1]), "fetch", {"run": "00000003-fetch", "snapshot": 3})
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def other_process(files: Files) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that holds the lease `fetch`."""
    process = start(HOLDER, files.root)
    assert hear(process) == "held"
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Holders look as if they ran on another machine: only their beat tells whether they live."""
    alive = leases._alive
    monkeypatch.setattr(leases, "_alive", lambda doc, age: alive(doc | {"machine": "another"}, age))


def test_the_second_is_refused_and_told_who_was_first(files: Files):
    lease = leases.acquire(files, "fetch", {})
    who = rf"fetch is already running \(process {os.getpid()} on {socket.gethostname()} since 20\d\d-.*Z\); wait for it"
    with pytest.raises(ConflictError, match=who):
        leases.acquire(files, "fetch", {})
    lease.check()
    lease.release()


def test_other_names_are_free(files: Files):
    held = [leases.acquire(files, name, {}) for name in ("fetch", "fetch-r000001-1", "parse")]
    assert [holder["name"] for holder in leases.live(files)] == ["fetch", "fetch-r000001-1", "parse"]
    for lease in held:
        lease.release()


def test_a_released_lease_can_be_taken_again(files: Files):
    for _ in range(5):
        lease = leases.acquire(files, "fetch", {})
        lease.check()
        lease.release()
    assert leases.live(files) == []


def test_holders_say_what_they_do(files: Files):
    lease = leases.acquire(files, "update", {"stage": "update"})
    lease.tell({"run": "00000001-update-with-a-long-name", "snapshot": 1})
    lease.tell({"run": "short"})  # a shorter document leaves nothing of the longer one
    (holder,) = leases.live(files)
    assert holder["pid"] == os.getpid()
    assert (holder["name"], holder["stage"], holder["run"], holder["snapshot"]) == ("update", "update", "short", 1)
    assert leases.holder_of(files, "update") == holder
    lease.release()
    assert leases.holder_of(files, "update") is None
    assert leases.holder_of(files, "never") is None


def test_one_of_many_threads_gets_the_lease(files: Files):
    line = Barrier(8)

    def race(_: int) -> leases.Lease | None:
        line.wait()
        try:
            return leases.acquire(files, "fetch", {})
        except ConflictError:
            return None

    for _ in range(3):
        with ThreadPoolExecutor(8) as pool:
            won = [lease for lease in pool.map(race, range(8)) if lease]
        assert len(won) == 1
        won[0].release()


def test_a_living_process_keeps_its_lease(files: Files, other_process: subprocess.Popen[str]):
    with pytest.raises(ConflictError, match=f"process {other_process.pid} on"):
        leases.acquire(files, "fetch", {})
    (holder,) = leases.live(files)
    assert (holder["pid"], holder["run"], holder["snapshot"]) == (other_process.pid, "00000003-fetch", 3)


def test_kill_9_frees_the_lease_at_once(files: Files, other_process: subprocess.Popen[str]):
    other_process.kill()
    other_process.wait()
    assert leases.live(files) == []
    lease = leases.acquire(files, "fetch", {})
    assert [holder["pid"] for holder in leases.live(files)] == [os.getpid()]
    lease.release()


def test_a_lease_is_held_while_others_look(files: Files):
    """Looking at a lock must not make somebody else believe that it is taken, nor free it."""
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            leases.live(files)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(10):
            lease = leases.acquire(files, "fetch", {})
            lease.release()
    finally:
        stop.set()
        watcher.join()


def test_a_name_is_one_word(files: Files):
    with pytest.raises(ValueError, match="one word"):
        leases.acquire(files, "fetch/r1", {})


@pytest.mark.parametrize("files", ["local"], indirect=True)
def test_a_full_disk_leaves_no_lock_behind(files: Files, monkeypatch: pytest.MonkeyPatch):
    before = descriptors()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StorageError, match="the disk is full"):
            leases.acquire(files, "fetch", {})
    assert descriptors() == before
    leases.acquire(files, "fetch", {}).release()


@pytest.mark.parametrize("files", ["local"], indirect=True)
def test_releasing_closes_the_lock(files: Files):
    before = descriptors()
    for _ in range(20):
        lease = leases.acquire(files, "fetch", {})
        assert isinstance(lease, LocalLease)
        lease.release()
    assert descriptors() == before
    assert isinstance(files, LocalFiles)
    assert list(files.list("leases")) == []


@pytest.mark.s3
@pytest.mark.parametrize("files", ["s3"], indirect=True)
class TestBuckets:
    """Leases in a bucket, where nobody tells of a death."""

    def test_beats_keep_a_lease(self, files: Files, elsewhere: None):
        lease = leases.acquire(files, "fetch", {}, ttl=TTL_S)
        time.sleep(1.7 * TTL_S)
        with pytest.raises(ConflictError):
            leases.acquire(files, "fetch", {})
        assert len(leases.live(files)) == 1
        lease.check()
        lease.release()

    def test_a_stale_lease_is_taken_over_and_the_old_holder_fenced(self, files: Files, elsewhere: None):
        old = leases.acquire(files, "fetch", {"run": "old"}, ttl=TTL_S)
        hang(old)
        with pytest.raises(ConflictError):
            leases.acquire(files, "fetch", {})  # not yet stale
        old.check()
        time.sleep(STALE_S)
        assert leases.live(files) == []
        new = leases.acquire(files, "fetch", {"run": "new"})
        with pytest.raises(ConflictError, match="fetch is already running"):
            old.check()
        new.check()
        old.tell({"run": "woken"})  # a late beat of the old one changes nothing
        old.release()
        new.check()
        assert [holder["run"] for holder in leases.live(files)] == ["new"]
        new.release()

    def test_a_collection_fences_the_stale(self, files: Files, elsewhere: None):
        asleep = leases.acquire(files, "fetch", {}, ttl=TTL_S)
        awake = leases.acquire(files, "parse", {}, ttl=TTL_S)
        hang(asleep)
        time.sleep(STALE_S)
        leases.fence(files)
        with pytest.raises(ConflictError):
            asleep.check()
        awake.check()
        awake.release()
        leases.acquire(files, "fetch", {}).release()

    @needs_real_server
    def test_the_clock_of_this_machine_does_not_matter(
        self, files: Files, elsewhere: None, monkeypatch: pytest.MonkeyPatch
    ):
        lease = leases.acquire(files, "fetch", {})
        real = time.time
        for skew in (-3600, 3600):
            monkeypatch.setattr(time, "time", lambda skew=skew: real() + skew)
            assert len(leases.live(files)) == 1
        lease.release()

    def test_old_objects_do_not_pile_up(self, files: Files):
        for _ in range(6):
            leases.acquire(files, "fetch", {}).release()
        assert [path for path, _ in files.list("leases")] == ["leases/fetch/00000006.json"]


def hang(lease: leases.Lease) -> None:
    """Let the holder's process fall asleep."""
    assert isinstance(lease, ObjectLease)
    lease._stop.set()
    lease._thread.join()
