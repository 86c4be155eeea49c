"""compact, fold, migrate, reshard: other files, the same rows, on every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.crawl import Crawl
from gossamer.errors import UsageError, VersionError
from gossamer.storage.snapshots import read_manifest
from gossamer.tables import TABLES
from tests.stages.crawls import NOW, content, crawldb_version_2, make_crawl, url_rows, write_rows


def check_files(crawl: Crawl, shards: int) -> None:
    """Every file holds one shard, in row-key order."""
    (base,) = crawl.snapshot.sets("crawldb")
    assert not base.delta
    entries = read_manifest(crawl.files, base)
    assert sorted({e.shard for e in entries}) == list(range(shards))
    for entry in entries:
        rows = pq.read_table(crawl.files.url(entry.path), columns=["url_fp", "rowkey"]).to_pydict()
        assert {fp & (shards - 1) for fp in rows["url_fp"]} == {entry.shard}
        assert rows["rowkey"] == sorted(rows["rowkey"], key=str.encode)


def test_compact_keeps_rows(engine: Any, embedded: Any, tmp_path: Path) -> None:
    crawl = make_crawl(tmp_path, engine, loaded_by=embedded)
    before = content(crawl)
    assert len(crawl.snapshot.sets("crawldb")) == 3
    record = crawl.run("compact", table="crawldb")
    assert content(crawl).equals(before)
    assert record.counters == {"rows_before": before.num_rows, "rows_written": before.num_rows}
    check_files(crawl, 4)


def test_fold_makes_one_change_set_and_leaves_the_base(engine: Any, tmp_path: Path) -> None:
    crawl = make_crawl(tmp_path, engine, sets=1)
    crawl.compact("crawldb")
    (base,) = crawl.snapshot.sets("crawldb")
    for seed in (1, 2, 3):
        crawl.load("crawldb", write_rows(tmp_path / f"more-{seed}.parquet", url_rows(100, seed)))
    before = content(crawl)
    crawl.fold("crawldb")
    first, second = crawl.snapshot.sets("crawldb")
    assert first == base
    assert second.delta
    assert content(crawl).equals(before)
    crawl.compact("crawldb")
    assert content(crawl).equals(before)


def test_fold_refuses_what_it_cannot_fold(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1, count=5)
    crawl.compact("crawldb")
    with pytest.raises(UsageError, match="has no change sets"):
        crawl.fold("crawldb")
    gone = url_rows(5).append_column("_deleted", pa.array([True] * 5))
    crawl.load("crawldb", write_rows(tmp_path / "gone.parquet", gone))
    with pytest.raises(UsageError, match="only `gossamer compact crawldb` can fold"):
        crawl.fold("crawldb")


def test_what_is_due(tmp_path: Path, embedded_inline: Any) -> None:
    """Many small change sets are folded, much in them is compacted."""
    sets = ["storage.compact_sets=3", "storage.compact_at=0.5"]
    crawl = Crawl.init(str(tmp_path / "crawl"), shards=1, clock=NOW, engine=embedded_inline, sets=sets)
    crawl.load("crawldb", write_rows(tmp_path / "rows.parquet", url_rows(100)))
    assert [record.stage for record in crawl.compact()] == ["compact"]
    stages = []
    for seed in range(1, 8):
        crawl.load("crawldb", write_rows(tmp_path / f"{seed}.parquet", url_rows(10, seed)))
        stages += [record.stage for record in crawl.compact()]
    assert stages == ["fold", "fold", "compact"]


@pytest.mark.parametrize("shards", [1, 2, 16])
def test_reshard_keeps_rows(engine: Any, embedded: Any, tmp_path: Path, shards: int) -> None:
    crawl = make_crawl(tmp_path, engine, loaded_by=embedded)
    before = content(crawl)
    crawl.run("reshard", shards=shards)
    assert crawl.snapshot.shards == shards
    assert content(crawl).equals(before)
    check_files(crawl, shards)
    crawl.load("crawldb", write_rows(tmp_path / "more.parquet", url_rows(50, seed=99)))
    assert content(crawl).num_rows > before.num_rows


@pytest.mark.parametrize("shards", [0, 3, 1 << 20])
def test_reshard_refuses_bad_numbers(tmp_path: Path, embedded_inline: Any, shards: int) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1, count=5)
    with pytest.raises(UsageError, match="power of two"):
        crawl.run("reshard", shards=shards)


def test_old_schema_is_read_and_migrated(
    engine: Any, embedded: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = make_crawl(tmp_path, engine, loaded_by=embedded)
    old = content(crawl)
    monkeypatch.setitem(TABLES, "crawldb", crawldb_version_2())
    read_through = content(crawl)
    assert set(read_through.column("color").to_pylist()) == {"red"}
    assert read_through.column("depth").to_pylist() == [1] * old.num_rows
    assert read_through.drop_columns(["color", "depth"]).equals(old.drop_columns(["depth"]))
    crawl.run("migrate")
    assert {s.version for s in crawl.snapshot.sets("crawldb")} == {2}
    assert content(crawl).equals(read_through)


def test_change_set_on_old_schema(tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows written today meet rows of an older version in one merge."""
    crawl = make_crawl(tmp_path, embedded_inline, sets=1)
    monkeypatch.setitem(TABLES, "crawldb", crawldb_version_2())
    crawl.load("crawldb", write_rows(tmp_path / "new.parquet", url_rows(100, seed=5)))
    assert sorted({s.version for s in crawl.snapshot.sets("crawldb")}) == [1, 2]
    mixed = content(crawl)
    crawl.run("compact", table="crawldb")
    assert content(crawl).equals(mixed)
    assert {s.version for s in crawl.snapshot.sets("crawldb")} == {2}


def test_newer_schema_is_refused(tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as future:
        future.setitem(TABLES, "crawldb", crawldb_version_2())
        crawl = make_crawl(tmp_path, embedded_inline, sets=1, count=5)
    with pytest.raises(VersionError, match=r"schema version 2.*pip install -U"):
        content(crawl)
    with pytest.raises(VersionError):
        crawl.run("compact", table="crawldb")
    assert crawl.snapshot.id == 1


def test_compact_refuses_tables_without_change_sets(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1, count=5)
    with pytest.raises(UsageError, match="no change sets"):
        crawl.run("compact", table="edges")


def test_compact_of_an_empty_table(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=0)
    crawl.run("compact", table="crawldb")
    assert content(crawl).num_rows == 0
