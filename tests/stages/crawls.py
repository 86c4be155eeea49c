"""Small crawls to run stages on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.tables import TABLES
from gossamer.tables.spec import Column, Kind, Table
from gossamer.tables.statuses import Status
from gossamer.urls import keys

NOW = Clock.at("2026-03-01T12:00:00Z")


def url_rows(count: int, seed: int = 0, **columns: Any) -> pa.Table:
    """Crawldb rows of random pages of ten sites; the same page may come in several calls, never twice in one."""
    rng = random.Random(seed)
    pages = sorted({(rng.randrange(10), rng.randrange(10 * count)) for _ in range(count)})
    urls = pa.array([f"https://www.site{site}.example/p/{page}" for site, page in pages])
    given = {
        "url": urls,
        "url_fp": keys.fingerprints(urls),
        "rowkey": keys.rowkeys(urls),
        "host": keys.hosts(urls),
        "domain_fp": keys.fingerprints(pa.array([f"site{site}.example" for site, _ in pages])),
        "inlinks": pa.array([rng.randrange(5) for _ in pages], pa.int32()),
        "status": pa.array([rng.choice([1, 2]) for _ in pages], pa.int8()),
        "updated_at": pa.array([rng.choice([None, seed * 1000, 5000]) for _ in pages], pa.timestamp("us", "UTC")),
        "meta": pa.array([[("seed", str(seed))] for _ in pages], pa.map_(pa.string(), pa.string())),
        **columns,
    }
    schema = TABLES["crawldb"].schema
    return pa.table({f.name: given.get(f.name, pa.nulls(len(pages), f.type)) for f in schema}).cast(
        pa.schema([f.with_nullable(True) for f in schema])
    )


def write_rows(path: Path, table: pa.Table) -> str:
    pq.write_table(table, path)
    return str(path)


def make_crawl(
    root: Path, engine: Any = None, sets: int = 3, count: int = 300, loaded_by: Any = None, **options: Any
) -> Crawl:
    """A crawl whose crawldb has several change sets, loaded by another engine where Spark would only take its time."""
    crawl = Crawl.init(str(root / "crawl"), shards=4, clock=NOW, engine=loaded_by or engine, **options)
    crawl.clock = lambda: NOW
    for seed in range(sets):
        crawl.load("crawldb", write_rows(root / f"rows-{seed}.parquet", url_rows(count, seed)))
    return Crawl(crawl.files.root, engine=engine, clock=lambda: NOW) if loaded_by else crawl


def content(crawl: Crawl, name: str = "crawldb", snapshot: int | None = None) -> pa.Table:
    """The stable columns of a table, in its order."""
    table = crawl.tables_at(crawl.snapshot)[name]
    return crawl.engine.collect(ordered(crawl.table(name, snapshot=snapshot).select(*table.stable), table))


def ordered(rows: ir.Table, table: Table) -> ir.Table:
    names = (*(table.order or table.key), *(["segment"] if table.kind is Kind.SEGMENT else []))
    return rows.order_by(*(ibis.asc(n, nulls_first=True) for n in names))


def add_color(rows: ir.Table) -> ir.Table:
    """A migration: version 2 of the crawldb has a color, and depth is counted from 1."""
    return rows.mutate(color=ibis.literal("red"), depth=(rows.depth.fill_null(0) + 1).cast("int16"))


def crawldb_version_2() -> Table:
    from dataclasses import replace

    old = TABLES["crawldb"]
    color = Column("color", pa.string(), "New in version 2.")
    return replace(old, version=2, columns=(*old.columns, color), migrations={1: add_color})


def seeded(root: Path, engine: Any, urls: list[str], **options: Any) -> Crawl:
    """A crawl that knows some URLs, due now, and nothing else."""
    crawl = Crawl.init(str(root / "crawl"), shards=4, clock=NOW, engine=engine, **options)
    crawl.clock = lambda: NOW
    crawl.load("crawldb", write_rows(root / "seeds.parquet", seed_rows(urls)))
    return crawl


def seed_rows(urls: list[str], **columns: Any) -> pa.Table:
    """Crawldb rows as inject makes them."""
    count = len(urls)
    given: dict[str, Any] = {
        **keys.url_columns(pa.array(urls, pa.string())),
        "status": [int(Status.UNFETCHED)] * count,
        "inlinks": [0] * count,
        "cash": [1_000_000] * count,
        "depth": [0] * count,
        "failures": [0] * count,
        "interval_s": [30 * 86400] * count,
        **{name: [NOW.now] * count for name in ("next_fetch", "first_seen", "updated_at")},
        **columns,
    }
    schema = TABLES["crawldb"].schema
    return pa.table(
        {f.name: pa.array(given[f.name], f.type) if f.name in given else pa.nulls(count, f.type) for f in schema}
    )
