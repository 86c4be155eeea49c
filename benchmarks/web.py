"""A synthetic crawl to measure rounds on: a crawldb of any size in row-key order, and what fetching a batch of it gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.crawl import Crawl
from gossamer.storage import snapshots
from gossamer.storage.parquet import FileEntry, PartWriter, Target, entries_of, entries_table, write_part
from gossamer.storage.snapshots import Change, FileSet
from gossamer.tables import TABLES
from gossamer.tables.read import layout_of
from gossamer.tables.spec import Table
from gossamer.tables.statuses import LinkKind, Outcome, PageKind, ParseStatus, Status
from gossamer.urls import keys

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAGES = 100  # per site
LINKS = 50  # per page
NEW = 0.3  # of the links lead to URLs nobody knew
BATCH = 65_536
MOMENT = pa.timestamp("us", "UTC")


def urls_of(ids: np.ndarray) -> pa.Array:
    """URLs that sort like their numbers."""
    site = pc.utf8_lpad(pa.array(ids // PAGES).cast(pa.string()), 8, "0")
    page = pc.utf8_lpad(pa.array(ids % PAGES).cast(pa.string()), 4, "0")
    return pc.binary_join_element_wise(
        "https://www.site", site, ".com/news/2026/", page, "/some-article-about-things-", pa.array(ids).cast(pa.string()), ".html", ""
    )  # fmt: skip


def rows_of(table: Table, ids: np.ndarray) -> pa.RecordBatch:
    """Crawldb rows: a third fetched, of which a quarter is due; the others wait for their first fetch."""
    urls = urls_of(ids)
    count = len(ids)
    fetched = ids % 3 == 0
    random = np.random.default_rng(int(ids[0]))

    def some(values: pa.Array) -> pa.Array:
        return pc.if_else(pa.array(fetched), values, pa.scalar(None, values.type))

    def at(days: np.ndarray) -> pa.Array:
        start = int(NOW.timestamp()) * 1_000_000
        return pa.array(start + (days * 86400).astype(np.int64) * 1_000_000, pa.int64()).cast(MOMENT)

    texts = pa.array(ids).cast(pa.string())
    old = at(-random.integers(1, 30, count))
    given: dict[str, Any] = {
        **keys.url_columns(urls),
        "status": np.where(fetched, Status.FETCHED, Status.UNFETCHED),
        "inlinks": random.zipf(2.0, count).clip(0, 100_000),
        "cash": random.integers(0, 1_000_000, count),
        "depth": random.integers(0, 12, count),
        "updated_at": old,
        "fetched_at": some(old),
        "next_fetch": at(np.where(fetched, random.integers(-5, 15, count), -1)),
        "modified_at": some(old),
        "first_seen": at(np.full(count, -40)),
        "interval_s": np.full(count, 2_592_000),
        "failures": np.zeros(count, int),
        "signature": some(pa.array(random.integers(0, 2**62, count))),
        "payload_digest": some(pc.binary_join_element_wise("SHA1DIGEST", texts, "")),
        "etag": some(pc.binary_join_element_wise('"', texts, '"', "")),
        "segment": some(pa.repeat("r000000-1", count)),
        "linked_at": at(np.full(count, -40)),
        "via": urls_of(ids // PAGES * PAGES),
        "kind": np.full(count, PageKind.PAGE),
    }
    return filled(table, count, given)


def filled(table: Table, count: int, given: dict[str, Any]) -> pa.RecordBatch:
    """Rows of a table from some of its columns."""
    columns = []
    for f in table.schema:
        value = given.get(f.name)
        if value is None:
            columns.append(pa.nulls(count, f.type))
        else:
            columns.append((value if isinstance(value, pa.Array) else pa.array(value)).cast(f.type))
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


@dataclass(frozen=True)
class Range:
    """URLs of some numbers, to be written into the files of their shards."""

    number: int
    target: Target
    start: int
    stop: int


def write_range(task: Range) -> pa.Table:
    """One file per shard, each in row-key order."""
    table = TABLES["crawldb"]
    entries = []
    with ExitStack() as stack:
        writers = [PartWriter(task.target, shard, task.number) for shard in range(task.target.shards)]
        for writer in writers:
            stack.callback(lambda w=writer: entries.append(w.close()))
        for at in range(task.start, task.stop, BATCH):
            rows = rows_of(table, np.arange(at, min(at + BATCH, task.stop)))
            shards = np.asarray(rows.column("url_fp").to_numpy()) & (task.target.shards - 1)
            for shard, writer in enumerate(writers):
                writer.write(rows.filter(pa.array(shards == shard)))
    return entries_table(entries)


def make_crawldb(crawl: Crawl, size: int) -> None:
    """Publish a crawldb of so many URLs."""
    table = TABLES["crawldb"]
    target = Target(
        crawl.files, "tables/crawldb/base", table.schema, table.order, table.shard_by, crawl.snapshot.shards
    )
    step = max(BATCH, size // 8)
    tasks = [Range(n, target, at, min(at + step, size)) for n, at in enumerate(range(0, size, step))]
    publish(crawl, {"crawldb": (target.folder, entries_of(crawl.engine.run_tasks(tasks, write_range)))})


def publish(crawl: Crawl, made: dict[str, tuple[str, list[FileEntry]]], segment: str | None = None) -> None:
    """Name files in a new snapshot."""
    sets: dict[str, tuple[FileSet, ...]] = {}
    for name, (folder, entries) in made.items():
        snapshots.write_manifest(crawl.files, folder, entries, 1)
        rows, size = sum(e.rows for e in entries), sum(e.bytes for e in entries)
        layout = layout_of(TABLES[name].schema)
        sets[name] = (FileSet(folder, TABLES[name].version, rows, size, len(entries), segment=segment, layout=layout),)
    change = Change(f"bench-{segment}", "bench", "2026-01-01T00:00:00.000Z", replace=sets)
    snapshots.publish(crawl.files, change, crawl.snapshot)


def fetch_batch(crawl: Crawl, segment: str, known: int, seed: int) -> None:
    """What fetching and parsing a batch gives: every page answers and has 50 links."""
    lists = crawl.engine.collect(
        crawl.table("fetchlist", segment=segment).select("url", "domain_fp", "url_fp", "rowkey")
    )
    count = lists.num_rows
    random = np.random.default_rng(seed)
    pages = {name: lists.column(name).combine_chunks() for name in ("url", "domain_fp", "url_fp", "rowkey")}
    when = pa.array([NOW + timedelta(seconds=1)] * count, MOMENT)
    common = {**pages, "segment": pa.repeat(segment, count), "fetched_at": when}
    made = {
        "fetch": [{**common, "outcome": np.full(count, Outcome.SUCCESS), "payload_digest": pages["url"]}],
        "parse": [{**common, "status": np.full(count, ParseStatus.OK), "signature": pages["url_fp"]}],
        "outlinks": _links(pages, segment, known, random),
    }
    written = {}
    for name, parts in made.items():
        table = TABLES[name]
        target = Target(crawl.files, f"segments/{segment}/{name}/bench", table.schema)
        batches = (filled(table, len(part["url"]), part) for part in parts)
        entry = write_part(target, batches, 0, 0)
        written[name] = (target.folder, [entry] if entry else [])
    publish(crawl, written, segment)


def _links(pages: dict[str, Any], segment: str, known: int, random: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Links of the pages, a few thousand pages at a time: half near by, the others anywhere, some to new URLs."""
    count = len(pages["url"])
    own = pc.extract_regex(pages["url"], r"things-(?P<id>\d+)\.html").field("id").cast(pa.int64()).to_numpy()
    for at in range(0, count, 4096):
        part = slice(at, min(at + 4096, count))
        ids = np.repeat(own[part], LINKS)
        far = random.integers(0, known, len(ids))
        near = np.clip(ids + random.integers(-PAGES, PAGES, len(ids)), 0, known - 1)
        new = known + random.integers(0, 50 * known, len(ids))
        kind = random.random(len(ids))
        targets = np.where(kind < NEW, new, np.where(kind < NEW + 0.35, near, far))
        pairs = np.unique(np.stack([np.repeat(np.arange(part.start, part.stop), LINKS), targets], axis=1), axis=0)
        source = pa.array(pairs[:, 0])
        links = len(pairs)
        yield {
            **{f"src_{name}": column.take(source) for name, column in pages.items()},
            **keys.url_columns(urls_of(pairs[:, 1])),
            "segment": pa.repeat(segment, links),
            "position": np.fromiter(itertools.islice(itertools.cycle(range(LINKS)), links), np.int32, links),
            "kind": np.full(links, LinkKind.ANCHOR),
        }
