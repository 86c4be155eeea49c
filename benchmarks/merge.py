"""Base + deltas from 1 M to 30 M rows: append a change set, read through the merge, look one domain up, compact.

The peer in each row is bare DuckDB over the same files.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq

from benchmarks.measure import measured
from benchmarks.report import table
from benchmarks.synthetic import PAGES_PER_DOMAIN, ShardOfUrls, rows, write_shard
from gossamer.crawl import Crawl
from gossamer.storage import snapshots
from gossamer.storage.parquet import FileEntry, Target, entries_of
from gossamer.storage.snapshots import Change, FileSet, read_manifest
from gossamer.tables import TABLES
from gossamer.tables.read import layout_of
from gossamer.urls.keys import prefix_range

CHANGES = 1_000_000
SHARDS = 16
BARE_REWRITE_ROWS = 3_000_000  # larger, the one big sort spills and takes minutes
MEMORY_MB = 2048
TABLE = TABLES["crawldb"]


def make_base(crawl: Crawl, size: int) -> None:
    """Publish a crawldb of `size` rows."""
    tasks = [ShardOfUrls(TABLE, target(crawl, "base"), shard, SHARDS, 0, size // SHARDS) for shard in range(SHARDS)]
    publish(crawl, "base", entries_of(crawl.engine.run_tasks(tasks, write_shard)), delta=False)


def make_changes(path: Path, size: int, seed: int) -> None:
    """A change set in random order: half of it existing URLs, half new ones."""
    rng = np.random.default_rng(seed)
    per_shard = size // SHARDS
    with pq.ParquetWriter(path, TABLE.schema) as writer:
        for shard in range(SHARDS):
            known = rng.choice(per_shard, min(per_shard, CHANGES // SHARDS // 2), replace=False)
            fresh = per_shard + (seed * CHANGES) + np.arange(CHANGES // SHARDS - len(known))
            ids = rng.permutation(np.concatenate([known, fresh]))
            writer.write_batch(rows(TABLE, ids, shard, SHARDS))


def append_changes(crawl: Crawl, changes: Path) -> None:
    """What a round does with its changes: shard, sort, write and publish them as a change set."""
    rows_of = crawl.engine.read([str(changes)], TABLE.schema)
    publish(crawl, "change", crawl.engine.write(rows_of, target(crawl, "change")), delta=True)


def target(crawl: Crawl, run: str) -> Target:
    folder = f"tables/crawldb/{run}"
    return Target(crawl.files, folder, TABLE.schema, TABLE.order, TABLE.shard_by, SHARDS, key=TABLE.key)


def publish(crawl: Crawl, run: str, entries: list[FileEntry], *, delta: bool) -> None:
    folder = f"tables/crawldb/{run}"
    snapshots.write_manifest(crawl.files, folder, entries, 1)
    total, size = sum(e.rows for e in entries), sum(e.bytes for e in entries)
    made = FileSet(folder, TABLE.version, total, size, len(entries), delta, layout=layout_of(TABLE.schema))
    into = {"crawldb": (made,)}
    change = Change(
        run, "bench", "2026-01-01T00:00:00.000Z", append=into if delta else {}, replace={} if delta else into
    )
    snapshots.publish(crawl.files, change, crawl.snapshot)


def row_groups(crawl: Crawl, low: str, high: str) -> tuple[int, int]:
    """Row groups whose row keys overlap a range, and all there are."""
    hit = total = 0
    for file_set in crawl.snapshot.sets("crawldb"):
        for entry in read_manifest(crawl.files, file_set):
            metadata = pq.read_metadata(crawl.files.url(entry.path))
            column = metadata.schema.names.index("rowkey")
            for number in range(metadata.num_row_groups):
                known = metadata.row_group(number).column(column).statistics
                total += 1
                hit += known.min < high and known.max >= low
    return hit, total


def bench(size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        sets = [f"engine.memory_mb={MEMORY_MB}"]
        with Crawl.init(f"{folder}/crawl", shards=SHARDS, sets=sets) as crawl:
            make_base(crawl, size)
            changes = Path(folder) / "changes.parquet"
            make_changes(changes, size, 1)
            figures: dict[str, float] = {"rows": size}
            with measured() as append:
                append_changes(crawl, changes)
            with measured() as read:
                merged = crawl.table("crawldb")
                summed = merged.group_by("status").aggregate(urls=merged.count(), inlinks=merged.inlinks.sum())
                counted = crawl.engine.collect(summed)
            bare = duckdb.connect(config={"memory_limit": f"{MEMORY_MB}MB"})
            files = [
                crawl.files.url(e.path) for s in crawl.snapshot.sets("crawldb") for e in read_manifest(crawl.files, s)
            ]
            with measured() as plain:
                bare.execute(
                    "SELECT status, count(*), sum(inlinks) FROM read_parquet(?) GROUP BY status", [files]
                ).fetchall()
            domain = f"com.site{size // SHARDS // PAGES_PER_DOMAIN // 2:08d}."
            low, high = prefix_range(domain)
            looked = []
            for _ in range(5):
                start = time.perf_counter()
                found = crawl.engine.collect(crawl.source().table("crawldb", keys=((low, high),)))
                looked.append(time.perf_counter() - start)
            hit, total = row_groups(crawl, low, str(high))
            with measured() as compact:
                crawl.compact("crawldb")
            after = crawl.snapshot.sets("crawldb")[0].rows
            copied = float("nan")
            if size <= BARE_REWRITE_ROWS:
                with measured() as copy:
                    bare.execute(
                        f"COPY (SELECT * FROM read_parquet(?) ORDER BY url_fp & 15, rowkey) TO '{folder}/copy.parquet' (COMPRESSION zstd, COMPRESSION_LEVEL 1)",
                        [files],
                    )
                copied = copy.seconds
            assert sum(counted.column("urls").to_pylist()) == after
            figures |= {
                "append_s": append.seconds, "merge_read_s": read.seconds, "bare_read_s": plain.seconds,
                "lookup_ms": 1000 * float(np.median(looked)), "lookup_rows": found.num_rows, "groups_read": hit, "groups": total,
                "compact_s": compact.seconds, "bare_rewrite_s": copied,
                "peak_mb": max(m.peak_mb for m in (append, read, compact)),
            }  # fmt: skip
            return figures


COLUMNS = {
    "rows": "base rows", "append_s": "append 1 M, s", "merge_read_s": "count through merge, s", "bare_read_s": "bare DuckDB, s",
    "lookup_ms": "one domain, ms", "groups_read": "row groups read", "groups": "of", "compact_s": "compact, s",
    "bare_rewrite_s": "bare DuckDB sort + COPY, s", "peak_mb": "peak MB",
}  # fmt: skip


def main(arguments: list[str]) -> None:
    sizes = [int(float(size) * 1e6) for size in arguments] or [1_000_000, 3_000_000, 10_000_000, 30_000_000]
    results = []
    for size in sizes:
        results.append(bench(size))
        print(f"# {size:,} rows done", file=sys.stderr, flush=True)
    cells = [
        [f"{r[c]:,.0f}" if r[c] >= 20 or c.startswith("groups") else f"{r[c]:.2f}" for c in COLUMNS] for r in results
    ]
    table(
        f"Base + delta, {CHANGES:,} changes, {SHARDS} shards, memory limit {MEMORY_MB} MB",
        list(COLUMNS.values()),
        cells,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
