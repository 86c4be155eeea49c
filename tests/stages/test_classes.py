"""Frequency classes: compaction sorts pages into new, hot, warm and cold files, and a round can read one kind only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.crawl import Crawl
from gossamer.errors import CorruptError
from gossamer.storage.snapshots import read_manifest
from gossamer.tables.frequency import CLASSES, DAY, classes
from gossamer.tables.spec import TIMESTAMP
from tests.stages.crawls import NOW, content
from tests.stages.generating import add_rows, chosen, crawl_of, later

INTERVALS = {"hot": DAY, "warm": 7 * DAY, "cold": 8 * DAY}


def site(kind: str, count: int = 40) -> list[str]:
    return [f"https://{kind}{n % 3}.example/p{n}" for n in range(count)]


def classed(folder: Path, engine: Any) -> Crawl:
    """A crawl with 40 pages of each class, all due, compacted."""
    crawl = crawl_of(folder, engine, site("new"), interval_s=DAY)
    for kind, interval in INTERVALS.items():
        add_rows(crawl, folder, site(kind), interval_s=interval, fetched_at=NOW.now)
    crawl.run("compact", table="crawldb")
    return crawl


def kinds(crawl: Crawl) -> dict[str, str]:
    """URL → kind of the file it lies in."""
    (base,) = crawl.snapshot.sets("crawldb")
    found: dict[str, str] = {}
    for entry in read_manifest(crawl.files, base):
        rows = pq.read_table(crawl.files.url(entry.path), columns=["url", "url_fp"])
        assert rows.num_rows == entry.rows
        assert {fp & (crawl.snapshot.shards - 1) for fp in rows.column("url_fp").to_pylist()} == {entry.shard}
        found |= dict.fromkeys(rows.column("url").to_pylist(), entry.kind)
    return found


def expected() -> dict[str, str]:
    return {url: kind for kind in CLASSES for url in site(kind)}


def spoil(crawl: Crawl, *spared: str) -> None:
    """Damage the base's files of other kinds."""
    (base, *_) = crawl.snapshot.sets("crawldb")
    for entry in read_manifest(crawl.files, base):
        if entry.kind not in spared:
            Path(crawl.files.url(entry.path)).write_bytes(b"not Parquet")


@pytest.mark.parametrize(
    ("fetched", "interval", "kind"),
    [
        (False, 60, "new"),
        (False, None, "new"),
        (True, 60, "hot"),
        (True, DAY, "hot"),
        (True, DAY + 1, "warm"),
        (True, 7 * DAY, "warm"),
        (True, 7 * DAY + 1, "cold"),
        (True, None, "cold"),
    ],
)
def test_the_class_of_a_row(fetched: bool, interval: int | None, kind: str) -> None:
    rows = pa.table(
        {
            "fetched_at": pa.array([NOW.now if fetched else None], TIMESTAMP),
            "interval_s": pa.array([interval], pa.int32()),
        }
    )
    assert [CLASSES[number] for number in classes(rows)] == [kind]


def test_every_row_lies_in_the_files_of_its_class(engine: Any, tmp_path: Path) -> None:
    crawl = classed(tmp_path, engine)
    assert kinds(crawl) == expected()
    assert sorted(content(crawl).column("url").to_pylist()) == sorted(expected())
    crawl.run("reshard", shards=2)
    assert kinds(crawl) == expected()


def test_pages_change_their_class_when_compacted(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = classed(tmp_path, embedded_inline)
    later(crawl, days=1)
    now = crawl.clock().now
    moved = [*site("new", 5), *site("cold", 5), *site("hot", 5)]
    add_rows(crawl, tmp_path, moved, interval_s=2 * DAY, fetched_at=now, updated_at=now)
    merged = content(crawl)
    assert kinds_of_base(crawl) == expected()
    crawl.run("compact", table="crawldb")
    assert kinds(crawl) == expected() | dict.fromkeys(moved, "warm")
    assert content(crawl).equals(merged)
    for shards in (1, 8):
        crawl.run("reshard", shards=shards)
        assert kinds(crawl) == expected() | dict.fromkeys(moved, "warm")
        assert content(crawl).equals(merged)


def kinds_of_base(crawl: Crawl) -> dict[str, str]:
    (base, *_) = crawl.snapshot.sets("crawldb")
    entries = read_manifest(crawl.files, base)
    return {url: e.kind for e in entries for url in pq.read_table(crawl.files.url(e.path))["url"].to_pylist()}


@pytest.mark.parametrize("kind", CLASSES)
def test_a_round_of_one_class_reads_only_its_files(tmp_path: Path, embedded_inline: Any, kind: str) -> None:
    crawl = classed(tmp_path, embedded_inline)
    spoil(crawl, kind)
    assert chosen(crawl, frequency=kind) == sorted(site(kind))
    with pytest.raises(CorruptError):
        crawl.generate()


def test_change_sets_count_in_a_round_of_one_class(tmp_path: Path, embedded_inline: Any) -> None:
    """What they say of pages of the class holds; pages they add have no class yet."""
    crawl = classed(tmp_path, embedded_inline)
    spoil(crawl, "hot")
    later(crawl, hours=1)
    now = crawl.clock().now
    add_rows(crawl, tmp_path, ["https://hot0.example/another"], interval_s=60, fetched_at=NOW.now)
    add_rows(crawl, tmp_path, site("hot", 10), next_fetch=now.replace(year=2027), updated_at=now, fetched_at=now)
    add_rows(crawl, tmp_path, site("hot", 12)[10:], _deleted=True, updated_at=now)
    assert sum(crawl.plan(frequency="hot").values()) == 38
    assert chosen(crawl, frequency="hot") == sorted(site("hot")[12:])


def test_no_class_before_the_first_compaction(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, site("new"))
    assert crawl.generate(frequency="new") == []
    assert len(chosen(crawl)) == 40
