"""A round's cost: generate and update over db sizes and batch sizes, compaction counted in; t = n_db · c1 + n_list · c2.

The peer is the same round on local Spark at one of the sizes, and a bare DuckDB scan of the columns generate decides by.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from functools import partial

import duckdb
import numpy as np

from benchmarks.measure import Measured, measured
from benchmarks.report import table
from benchmarks.web import NOW, fetch_batch, make_crawldb
from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.storage.snapshots import read_manifest

SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000)
BATCHES = (5_000, 20_000, 80_000)
SPARK_SIZE = 1_000_000
SHARDS = 16
MEMORY_MB = 2048
SEED_RATIO = 0.0013  # c1/c2 of the seed: there c2 is the whole crawl's
SETTINGS = (f"engine.memory_mb={MEMORY_MB}", "storage.compact_at=1e9", "storage.compact_sets=1000")
COMPACT_AT = 0.2  # the default: how full the change sets are when they are folded in


@dataclass
class Round:
    size: int
    batch: int
    generate: Measured
    update: Measured
    changes: int
    compact: Measured

    @property
    def compaction(self) -> float:
        """Its share of a compaction, in CPU seconds."""
        return self.compact.cpu * min(1.0, self.changes / (COMPACT_AT * self.size))

    @property
    def cpu(self) -> float:
        return self.generate.cpu + self.update.cpu + self.compaction


def rounds(size: int, batches: tuple[int, ...], sets: tuple[str, ...] = ()) -> tuple[list[Round], float]:
    """Rounds of each batch size on one crawldb, then a compaction; and a bare scan's seconds."""
    done: list[Round] = []
    with tempfile.TemporaryDirectory() as folder:
        Crawl.init(folder, shards=SHARDS).close()
        with Crawl(folder, sets=SETTINGS) as maker:
            make_crawldb(maker, size)
            maker.compact("crawldb")
        bare = bare_scan(folder)
        with Crawl(folder, sets=(*SETTINGS, *sets), clock=partial(Clock, NOW)) as crawl:
            crawl.run("drop", segments=[])  # starts the engine's workers
            for number, batch in enumerate(batches, 1):
                with measured() as generate:
                    segment = crawl.generate(top=batch)[0]
                with Crawl(folder, sets=SETTINGS) as maker:
                    fetch_batch(maker, segment, size, number)
                before = sum(s.rows for s in crawl.snapshot.sets("crawldb"))
                with measured() as update:
                    crawl.update(segment)
                changes = sum(s.rows for s in crawl.snapshot.sets("crawldb")) - before
                done.append(Round(size, batch, generate, update, changes, Measured()))
                print(
                    f"# {size:,} · {batch:,}: generate {generate.seconds:.1f} s, update {update.seconds:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
            with measured() as compact:
                crawl.compact("crawldb")
    for one in done:
        one.compact = compact
    return done, bare


def bare_scan(folder: str) -> float:
    """Seconds bare DuckDB needs to find the best 20,000 due URLs by inlinks."""
    with Crawl(folder) as crawl:
        files = [crawl.files.url(e.path) for s in crawl.snapshot.sets("crawldb") for e in read_manifest(crawl.files, s)]
    connection = duckdb.connect(config={"memory_limit": f"{MEMORY_MB}MB"})
    query = "SELECT url FROM read_parquet(?) WHERE next_fetch <= ? ORDER BY inlinks DESC, url_fp LIMIT 20000"
    with measured() as scan:
        connection.execute(query, [files, NOW]).fetch_arrow_table()
    return scan.seconds


def fitted(done: list[Round]) -> tuple[float, float]:
    """c1 in µs of CPU per db URL and c2 in ms per listed URL, by least squares of relative errors."""
    cost = np.array([r.cpu for r in done])
    facts = np.array([[r.size, r.batch] for r in done], float)
    (c1, c2), *_ = np.linalg.lstsq(facts / cost[:, None], np.ones(len(done)), rcond=None)
    return float(c1 * 1e6), float(c2 * 1e3)


def main(arguments: list[str]) -> None:
    sizes = [int(float(size) * 1e6) for size in arguments if size != "spark"] or list(SIZES)
    spark = not arguments or "spark" in arguments
    done: list[Round] = []
    scans: dict[int, float] = {}
    for size in sizes:
        found, scans[size] = rounds(size, BATCHES)
        done += found
    table(
        f"A round: {SHARDS} shards, DuckDB memory limit {MEMORY_MB} MB, 50 links a page",
        ["db URLs", "batch", "generate s", "bare DuckDB top 20,000 s", "update s", "changes", "compact s", "its share, CPU s", "CPU s of the round", "peak MB"],
        [
            [
                f"{r.size:,}", f"{r.batch:,}", f"{r.generate.seconds:.2f}", f"{scans[r.size]:.2f}", f"{r.update.seconds:.2f}", f"{r.changes:,}",
                f"{r.compact.seconds:.1f}", f"{r.compaction:.1f}", f"{r.cpu:.1f}", f"{max(r.generate.peak_mb, r.update.peak_mb, r.compact.peak_mb):,.0f}",
            ]
            for r in done
        ],
    )  # fmt: skip
    if len(sizes) > 1:
        c1, c2 = fitted(done)
        small, large = min(sizes), max(sizes)
        ratios = [
            next(r.update.seconds for r in done if (r.size, r.batch) == (large, b))
            / next(r.update.seconds for r in done if (r.size, r.batch) == (small, b))
            for b in BATCHES
        ]
        print(
            f"c1 = {c1:.3f} µs of CPU per db URL, c2 = {c2:.3f} ms per listed URL, c1/c2 = {c1 / 1000 / c2:.5f} (seed {SEED_RATIO})"
        )
        print(f"update of the same batch, {large:,} / {small:,} URLs: " + ", ".join(f"{x:.2f}x" for x in ratios))
    if spark:
        _beside_spark(done)


def _beside_spark(done: list[Round]) -> None:
    """The same rounds on local Spark at one size, as a ratio."""
    sets = ("engine.kind=spark", "engine.spark_master=local[2]")
    slow, _ = rounds(SPARK_SIZE, BATCHES[:2], sets)
    quick = {(r.size, r.batch): r for r in done}
    cells = []
    for r in slow:
        mine = quick.get((r.size, r.batch))
        ratio = (
            f"{(r.generate.seconds + r.update.seconds) / (mine.generate.seconds + mine.update.seconds):.1f}x"
            if mine
            else ""
        )
        cells.append([f"{r.size:,}", f"{r.batch:,}", f"{r.generate.seconds:.1f}", f"{r.update.seconds:.1f}", ratio])
    table("The same on local Spark", ["db URLs", "batch", "generate s", "update s", "of the embedded engine"], cells)
