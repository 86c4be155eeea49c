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
from benchmarks.synthetic import PAGES_PER_DOMAIN, ShardOfUrls, rows, write_shard
from gossamer.crawl import Crawl
from gossamer.storage import snapshots
from gossamer.storage.parquet import entries_of
from gossamer.storage.snapshots import Change, FileSet, read_manifest
from gossamer.tables import TABLES
from gossamer.tables.read import layout_of
from gossamer.urls.keys import prefix_range

CHANGES = 1_000_000
SHARDS = 16
MEMORY_MB = 2048
TABLE = TABLES["crawldb"]


def make_base(crawl: Crawl, size: int) -> None:
    """Publish a crawldb of `size` rows."""
    from gossamer.storage.parquet import Target

    folder = f"tables/crawldb/bench-{size}"
    target = Target(crawl.files, folder, TABLE.schema, TABLE.order, TABLE.shard_by, SHARDS)
    per_shard = size // SHARDS
    tasks = [ShardOfUrls(TABLE, target, shard, SHARDS, 0, per_shard) for shard in range(SHARDS)]
    entries = entries_of(crawl.engine.run_tasks(tasks, write_shard))
    snapshots.write_manifest(crawl.files, folder, entries, 1)
    total = sum(e.rows for e in entries)
    base = FileSet(folder, TABLE.version, total, sum(e.bytes for e in entries), len(entries), layout=layout_of(TABLE.schema))
    change = Change("bench", "bench", "2026-01-01T00:00:00.000Z", replace={"crawldb": (base,)})
    snapshots.publish(crawl.files, change, crawl.snapshot)


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
                crawl.load("crawldb", str(changes))
            with measured() as read:
                merged = crawl.table("crawldb")
                summed = merged.group_by("status").aggregate(urls=merged.count(), inlinks=merged.inlinks.sum())
                counted = crawl.engine.collect(summed)
            bare = duckdb.connect(config={"memory_limit": f"{MEMORY_MB}MB"})
            files = [crawl.files.url(e.path) for s in crawl.snapshot.sets("crawldb") for e in read_manifest(crawl.files, s)]
            with measured() as plain:
                bare.execute("SELECT status, count(*), sum(inlinks) FROM read_parquet(?) GROUP BY status", [files]).fetchall()
            domain = f"com.site{size // SHARDS // PAGES_PER_DOMAIN // 2:08d}."
            low, high = prefix_range(domain)
            looked = []
            for _ in range(5):
                start = time.perf_counter()
                found = crawl.engine.collect(crawl.source().table("crawldb", keys=(low, high)))
                looked.append(time.perf_counter() - start)
            hit, total = row_groups(crawl, low, str(high))
            with measured() as compact:
                crawl.compact("crawldb")
            after = crawl.snapshot.sets("crawldb")[0].rows
            with measured() as copy:
                bare.execute(f"COPY (SELECT * FROM read_parquet(?) ORDER BY url_fp & 15, rowkey) TO '{folder}/copy.parquet' (COMPRESSION zstd, COMPRESSION_LEVEL 1)", [files])
            assert sum(counted.column("urls").to_pylist()) == after
            figures |= {
                "append_s": append.seconds, "merge_read_s": read.seconds, "bare_read_s": plain.seconds,
                "lookup_ms": 1000 * float(np.median(looked)), "lookup_rows": found.num_rows, "groups_read": hit, "groups": total,
                "compact_s": compact.seconds, "bare_rewrite_s": copy.seconds,
                "peak_mb": max(m.peak_mb for m in (append, read, compact)),
            }  # fmt: skip
            return figures


def main() -> None:
    sizes = [int(float(s) * 1e6) for s in sys.argv[1:]] or [1_000_000, 3_000_000, 10_000_000, 30_000_000]
    print(f"Base + delta, {CHANGES:,} changes, {SHARDS} shards, memory limit {MEMORY_MB} MB\n")
    results = []
    for size in sizes:
        results.append(bench(size))
        print(", ".join(f"{k} {v:,.1f}" for k, v in results[-1].items()), flush=True)


if __name__ == "__main__":
    main()
