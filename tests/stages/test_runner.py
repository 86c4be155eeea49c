"""The runner: leases, resume, balance, conflicts, what it records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gossamer import runner
from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.errors import BalanceError, ConflictError, CorruptError, UsageError
from gossamer.pipeline import STAGES
from gossamer.storage import leases, runs, snapshots
from gossamer.storage.snapshots import Change, FileSet
from tests.stages.crawls import NOW, content, make_crawl, url_rows, write_rows


class Died(BaseException):
    """Stands for kill -9."""


def test_a_run_is_recorded(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    record = runs.load(crawl.files, "00000000-load")
    assert record is not None
    assert (record.state, record.published, record.attempt, record.parent) == ("done", 1, 1, 0)
    assert record.now == "2026-03-01T12:00:00.000Z"
    assert record.counters["rows_read"] == record.counters["rows_written"]
    assert set(record.phases) == {"read 1 files", "write crawldb", "publish"}
    crawl.run("compact", table="crawldb")
    compacted = runs.load(crawl.files, "00000001-compact")
    assert compacted is not None
    assert compacted.inputs == {"crawldb": ["tables/crawldb/00000000-load"]}


def test_resume_keeps_the_clock_and_counts_the_attempt(
    tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    path = write_rows(tmp_path / "more.parquet", url_rows(20, seed=9))
    with monkeypatch.context() as dying:
        dying.setattr(snapshots, "publish", _die)
        with pytest.raises(Died):
            crawl.load("crawldb", path)
    assert crawl.snapshot.id == 1
    crawl.clock = lambda: Clock.at("2026-03-09T00:00:00Z")
    record = crawl.load("crawldb", path)
    assert (record.attempt, record.now, record.published) == (2, "2026-03-01T12:00:00.000Z", 2)


def test_other_arguments_are_another_run(tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    with monkeypatch.context() as dying:
        dying.setattr(snapshots, "publish", _die)
        with pytest.raises(Died):
            crawl.load("crawldb", write_rows(tmp_path / "a.parquet", url_rows(20, seed=9)))
    crawl.clock = lambda: Clock.at("2026-03-09T00:00:00Z")
    record = crawl.load("crawldb", write_rows(tmp_path / "b.parquet", url_rows(10, seed=10)))
    assert record.now == "2026-03-09T00:00:00.000Z"
    assert record.counters["rows_read"] == 10


def test_killed_after_publishing_is_not_run_twice(
    tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    path = write_rows(tmp_path / "more.parquet", url_rows(20, seed=9))
    with monkeypatch.context() as dying:
        dying.setattr(runner, "_close", _die)
        with pytest.raises(Died):
            crawl.load("crawldb", path)
    assert crawl.snapshot.id == 2
    after = content(crawl)
    record = crawl.load("crawldb", path)
    assert (record.state, record.published) == ("done", 2)
    assert crawl.snapshot.id == 2
    assert content(crawl).equals(after)
    crawl.load("crawldb", path)  # once it is known to be done, the same command is a new run
    assert crawl.snapshot.id == 3


def test_a_broken_balance_publishes_nothing(
    tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    monkeypatch.setitem(
        STAGES, "compact", replace(STAGES["compact"], balance="rows_before = rows_written + rows_before")
    )
    with pytest.raises(BalanceError, match="nothing was published"):
        crawl.run("compact", table="crawldb")
    assert crawl.snapshot.id == 1
    record = runs.load(crawl.files, "00000001-compact")
    assert record is not None
    assert record.state == "failed"


def test_a_stage_reads_and_writes_only_what_the_map_names(
    tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    monkeypatch.setitem(STAGES, "compact", replace(STAGES["compact"], writes=("hosts",)))
    with pytest.raises(UsageError, match="does not write crawldb"):
        crawl.run("compact", table="crawldb")


def test_one_stage_at_a_time(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    lease = leases.acquire(crawl.files, "compact", {})
    with pytest.raises(ConflictError, match="already running"):
        crawl.run("compact", table="crawldb")
    lease.release()
    crawl.run("compact", table="crawldb")


def test_a_lost_race_names_the_winner(tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    real = snapshots.publish
    once: list[int] = []

    def overtaken(files: Any, change: Change, parent: Any) -> Any:
        if not once:
            once.append(1)
            other = FileSet("tables/crawldb/00000001-update", 1, 0, 0, 0, delta=True)
            real(files, Change("00000001-update", "update", change.at, append={"crawldb": (other,)}), parent)
        return real(files, change, parent)

    monkeypatch.setattr(snapshots, "publish", overtaken)
    with pytest.raises(ConflictError, match="run 00000001-update published crawldb first"):
        crawl.run("compact", table="crawldb")


def test_a_race_over_other_tables_is_rebased(
    tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=2)
    before, real = content(crawl), snapshots.publish
    once: list[int] = []

    def overtaken(files: Any, change: Change, parent: Any) -> Any:
        if not once:
            once.append(1)
            other = FileSet("tables/hosts/00000002-fetch", 1, 0, 0, 0, delta=True)
            real(files, Change("00000002-fetch", "fetch", change.at, append={"hosts": (other,)}), parent)
        return real(files, change, parent)

    monkeypatch.setattr(snapshots, "publish", overtaken)
    assert crawl.run("compact", table="crawldb").published == 4
    assert len(crawl.snapshot.sets("hosts")) == 1
    assert content(crawl).equals(before)


def test_events_tell_the_story(tmp_path: Path, embedded_inline: Any) -> None:
    heard: list[dict[str, Any]] = []

    class Listener:
        def tell(self, event: dict[str, Any]) -> None:
            heard.append(event)

    make_crawl(tmp_path, embedded_inline, sets=1, reporter=Listener())
    assert [e["event"] for e in heard] == ["start", "phase", "phase", "phase", "done"]
    assert heard[-1]["counters"]["rows_written"] == heard[-1]["counters"]["rows_read"]
    assert heard[0]["now"] == "2026-03-01T12:00:00.000Z" == runs_time(NOW)


def runs_time(clock: Clock) -> str:
    from gossamer.clock import format_time

    return format_time(clock.now)


def _die(*_: Any, **__: Any) -> Any:
    raise Died


@pytest.mark.parametrize("segment", ["", ".", "..", "a/b", "../../evil", "x\ny", "-x", "a" * 101])
def test_odd_names_of_segments_are_refused(tmp_path: Path, embedded_inline: Any, segment: str) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1, count=5)
    with pytest.raises(UsageError, match="segment"):
        crawl.run("migrate", segment=segment)
    assert crawl.snapshot.id == 1


def test_a_run_that_was_rolled_back_is_run_again(
    tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    path = write_rows(tmp_path / "more.parquet", url_rows(20, seed=9))
    with monkeypatch.context() as dying:
        dying.setattr(runner, "_close", _die)
        with pytest.raises(Died):
            crawl.load("crawldb", path)
    after = content(crawl)
    snapshots.rollback(crawl.files, 1, "2026-03-01T12:00:00.000Z")
    assert not content(crawl).equals(after)
    crawl.load("crawldb", path)
    assert content(crawl).equals(after)


def test_a_rollback_to_the_unfinished_run_finds_it_done(
    tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    path = write_rows(tmp_path / "more.parquet", url_rows(20, seed=9))
    with monkeypatch.context() as dying:
        dying.setattr(runner, "_close", _die)
        with pytest.raises(Died):
            crawl.load("crawldb", path)
    snapshots.rollback(crawl.files, 2, "2026-03-01T12:00:00.000Z")
    assert crawl.load("crawldb", path).published == 2
    assert crawl.snapshot.id == 3


def test_rows_lost_by_the_engine_are_noticed(
    tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    real = embedded_inline.write
    monkeypatch.setattr(embedded_inline, "write", lambda rows, target: real(rows, target)[1:])
    with pytest.raises(BalanceError):
        crawl.load("crawldb", write_rows(tmp_path / "more.parquet", url_rows(50, seed=9)))
    assert crawl.snapshot.id == 1


def test_verified_reads_find_a_flipped_bit(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    path = Path(crawl.files.url(snapshots.read_manifest(crawl.files, crawl.snapshot.sets("crawldb")[0])[0].path))
    damaged = bytearray(path.read_bytes())
    damaged[200] ^= 1
    path.write_bytes(damaged)
    careful = Crawl(crawl.files.root, engine=embedded_inline, sets=["storage.verify_reads=true"])
    with pytest.raises(CorruptError, match="checksum"):
        careful.table("crawldb")
