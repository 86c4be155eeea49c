"""Retention and collection: what goes, what stays, and who waits for whom."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gossamer.errors import ConflictError, CorruptError, UsageError
from gossamer.storage import collect, leases, snapshots
from gossamer.storage.collect import pin, pinned
from gossamer.storage.files import Files
from gossamer.storage.local import HIDDEN, LocalFiles
from tests.storage.building import AT, append, contents, data_files, names, replace, whole, write_set


@pytest.fixture
def history(crawl: Files) -> Files:
    """Five rewrites of one table, and one table that stays."""
    append(crawl, "hosts", "00000000-hosts")
    for n in range(1, 6):
        replace(crawl, "crawldb", f"{n:08d}-load", first=100 * n)
    return crawl


def runs(files: Files) -> list[str]:
    """The runs that still have files."""
    return sorted({path.split("/")[-2] for path in data_files(files)})


def test_old_snapshots_and_their_files_go(history: Files):
    before = contents(history, snapshots.latest(history))
    done = collect.collect(history, 2)
    assert done.snapshots == (0, 1, 2, 3, 4)
    assert done.files == 6  # three runs, each a part and a manifest
    assert done.bytes > 0
    assert snapshots.numbers(history) == [5, 6]
    assert runs(history) == ["00000000-hosts", "00000004-load", "00000005-load"]
    assert whole(history)[6] == before
    assert collect.collect(history, 2) == collect.Collection((), 0, 0)


def test_the_latest_snapshot_always_stays(history: Files):
    collect.collect(history, 0)
    assert snapshots.numbers(history) == [6]
    assert append(history, "hosts", "00000006-hosts").id == 7


def test_nothing_goes_while_all_is_kept(history: Files):
    before = names(history, "")
    assert collect.collect(history, 100) == collect.Collection((), 0, 0)
    assert [n for n in names(history, "") if not n.startswith("leases")] == before


def test_a_dry_run_removes_nothing(history: Files):
    before = names(history, "")
    planned = collect.collect(history, 2, dry_run=True)
    assert names(history, "") == before
    assert planned == collect.collect(history, 2)


def test_files_of_rolled_back_snapshots_stay_while_they_are_named(history: Files):
    snapshots.rollback(history, 3, AT)
    collect.collect(history, 1)
    assert contents(history, snapshots.latest(history))["crawldb"] == [200, 201, 202]
    assert runs(history) == ["00000000-hosts", "00000002-load"]


def test_pins_keep_a_snapshot(history: Files):
    pin(history, "index", 2)
    pin(history, "other", 5)
    assert pinned(history) == {2, 5}
    collect.collect(history, 1)
    assert snapshots.numbers(history) == [2, 5, 6]
    assert contents(history, snapshots.load(history, 2))["crawldb"] == [100, 101, 102]
    pin(history, "index", 6)
    collect.collect(history, 1)
    assert snapshots.numbers(history) == [5, 6]


def test_a_pin_needs_its_snapshot(history: Files):
    collect.collect(history, 1)
    with pytest.raises(UsageError, match="there is no snapshot 2"):
        pin(history, "index", 2)
    assert pinned(history) == set()


def test_what_a_running_job_reads_stays(history: Files):
    lease = leases.acquire(history, "rank", {"run": "00000003-rank", "snapshot": 3})
    collect.collect(history, 1)
    assert snapshots.numbers(history) == [3, 6]
    whole(history)
    lease.release()
    collect.collect(history, 1)
    assert snapshots.numbers(history) == [6]


def test_what_a_running_job_writes_stays(history: Files):
    lease = leases.acquire(history, "load", {"run": "00000006-load", "snapshot": 6})
    file_set = write_set(history, "crawldb", "00000006-load", first=600)
    history.replace("scratch/00000006-load/x", b"")
    collect.collect(history, 1)
    change = snapshots.Change("00000006-load", "load", AT, replace={"crawldb": (file_set,)})
    snapshots.publish(history, change, snapshots.load(history, 6))
    lease.release()
    assert contents(history, snapshots.latest(history))["crawldb"] == [600, 601, 602]
    assert history.exists("scratch/00000006-load/x")


def test_what_a_dead_job_wrote_goes(history: Files):
    write_set(history, "crawldb", "00000006-load", parts=2)
    write_set(history, "parse", "00000006-parse", segment="r1")
    assert collect.collect(history, 100).files == 5
    assert "00000006-load" not in runs(history)
    assert names(history, "segments") == []


def test_dead_attempts_inside_a_published_folder_go(crawl: Files):
    write_set(crawl, "crawldb", "00000000-load", parts=3, attempt=1)
    append(crawl, "crawldb", "00000000-load", parts=2, attempt=2)
    assert collect.collect(crawl, 100).files == 4  # three parts and their manifest
    assert [path.rsplit("-", 1)[-1] for path in data_files(crawl)] == ["002.parquet"] * 2
    whole(crawl)


def test_hidden_files_of_dead_writers_go(history: Files):
    hidden = [f"{folder}/{HIDDEN}123" for folder in ("snapshots", "runs", "pins", "tables/crawldb/00000005-load")]
    for path in hidden:
        history.replace(path, b"half")
    lease = leases.acquire(history, "load", {"run": "x", "snapshot": 6})
    collect.collect(history, 100)
    assert [path for path in hidden if history.exists(path)] == hidden[:3]  # one of them may be the running job's
    lease.release()
    collect.collect(history, 100)
    assert not any(map(history.exists, hidden))


def test_scratch_goes_when_it_is_old(history: Files, monkeypatch: pytest.MonkeyPatch):
    history.replace("scratch/read-1/x", b"")
    history.replace("scratch/00000006-load/x", b"")
    lease = leases.acquire(history, "load", {"run": "00000006-load", "snapshot": 6})
    collect.collect(history, 100)
    assert len(names(history, "scratch")) == 2
    monkeypatch.setattr(collect, "SCRATCH_S", -10)
    collect.collect(history, 100)
    assert names(history, "scratch") == ["scratch/00000006-load/x"]
    lease.release()


def test_archives_settings_and_the_index_are_not_touched(history: Files):
    kept = ["warc/r1/a.warc.gz", "gossamer.toml", "index/x", "rules/1.json", "runs/00000001-load.json"]
    for path in kept:
        history.replace(path, b"")
    collect.collect(history, 1)
    assert all(map(history.exists, kept))


def test_nothing_goes_when_a_remaining_snapshot_cannot_be_read(history: Files):
    history.replace(snapshots.path_of(5), b"{")
    before = names(history, "tables")
    with pytest.raises(CorruptError):
        collect.collect(history, 2)
    assert names(history, "tables") == before
    collect.collect(history, 1)  # when it is old, it goes like any other


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"snapshot": "x"}', b'{"snapshot": null}'])
def test_nothing_goes_while_a_pin_cannot_be_read(history: Files, damage: bytes):
    history.replace("pins/index.json", damage)
    with pytest.raises(CorruptError, match=r"pins/index\.json: "):
        collect.collect(history, 1)
    assert len(whole(history)) == 7


def test_two_collections_do_not_meet(history: Files):
    lease = leases.acquire(history, leases.COLLECT, {})
    with pytest.raises(ConflictError, match="collect is already running"):
        collect.collect(history, 1)
    lease.release()
    collect.collect(history, 1)


def test_a_job_begins_after_a_running_collection(history: Files):
    collection = leases.acquire(history, leases.COLLECT, {})
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(leases.acquire, history, "load", {})
        time.sleep(3 * leases.PAUSE_S)
        assert not job.done()
        collection.release()
        job.result(timeout=20).release()


def test_a_job_does_not_wait_for_ever(history: Files, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(leases, "PATIENCE_S", 0.3)
    collection = leases.acquire(history, leases.COLLECT, {})
    with pytest.raises(ConflictError, match="collect is already running"):
        leases.acquire(history, "load", {})
    collection.release()
    leases.acquire(history, "load", {}).release()


def test_a_collection_waits_until_a_job_has_said_what_it_reads(history: Files):
    lease = leases.acquire(history, "load", {})
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(collect.collect, history, 1)
        time.sleep(3 * leases.PAUSE_S)
        assert not running.done()
        lease.tell({"run": "00000002-load", "snapshot": 2})
        assert running.result(timeout=20).snapshots == (0, 1, 3, 4, 5)
    lease.release()


def test_a_collection_does_not_wait_for_ever(history: Files, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(collect, "HOLDER_TRIES", 2)
    lease = leases.acquire(history, "load", {})
    with pytest.raises(ConflictError, match="load is already running"):
        collect.collect(history, 1)
    assert snapshots.numbers(history) == list(range(7))
    lease.release()


def test_a_collection_that_lost_its_lease_removes_no_files(history: Files, monkeypatch: pytest.MonkeyPatch):
    def lost(self: leases.Lease) -> None:
        raise leases.held_by("collect", {})

    kind = leases.LocalLease if isinstance(history, LocalFiles) else leases.ObjectLease
    monkeypatch.setattr(kind, "check", lost)
    before = names(history, "tables")
    with pytest.raises(ConflictError):
        collect.collect(history, 1)
    assert names(history, "tables") == before


def test_jobs_rollbacks_and_collections_run_side_by_side(crawl: Files, monkeypatch: pytest.MonkeyPatch):
    """Whatever happens at once, every snapshot that is left has all its files."""
    monkeypatch.setattr(leases, "PAUSE_S", 0.02)
    append(crawl, "crawldb", "start")
    local = isinstance(crawl, LocalFiles)
    stop = threading.Event()

    def load(name: str) -> int:
        done = 0
        for n in range(12 if local else 4):
            lease = leases.acquire(crawl, name, {})
            try:
                parent = snapshots.latest(crawl)
                run = f"{parent.id:08d}-{name}-{n}"
                lease.tell({"run": run, "snapshot": parent.id})
                file_set = write_set(crawl, name, run, first=n)
                assert contents(crawl, parent)
                change = snapshots.Change(run, name, AT, replace={name: (file_set,)})
                snapshots.publish(crawl, change, parent)
                done += 1
            except ConflictError:  # a rollback came in between
                continue
            finally:
                lease.release()
        return done

    def clean() -> int:
        rounds = 0
        while not stop.is_set():
            collect.collect(crawl, 1)
            rounds += 1
            time.sleep(0.05)
        return rounds

    def undo() -> None:
        while not stop.is_set():
            try:
                snapshots.rollback(crawl, snapshots.numbers(crawl)[-1], AT)
            except (ConflictError, UsageError):
                continue
            time.sleep(0.05)

    with ThreadPoolExecutor(5) as pool:
        cleaning, undoing = pool.submit(clean), pool.submit(undo)
        loading = [pool.submit(load, name) for name in ("crawldb", "hosts", "ranks")]
        try:
            done = [job.result() for job in loading]
        finally:
            stop.set()
        undoing.result()
        assert cleaning.result() > 0
    assert sum(done) > 0
    whole(crawl)
