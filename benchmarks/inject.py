"""inject of a seed list beside pyarrow reading the same lines and writing them as Parquet, one column, no checks."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks.measure import Measured, measured
from benchmarks.report import table
from gossamer.crawl import Crawl

SITES = 50_000


def write_seeds(path: Path, count: int, tail: str = "") -> None:
    """URLs of many sites in random order."""
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as out:
        out.writelines(
            f"https://www.site{rng.randrange(SITES)}.example/news/2026/{rng.randrange(10**6)}/article-{n}.html{tail}\n"
            for n in range(count)
        )


def bare(seeds: Path, target: Path) -> None:
    """The lines as one column, read and written by pyarrow alone."""
    read = csv.ReadOptions(column_names=["url"])
    lines = csv.read_csv(seeds, read, csv.ParseOptions(delimiter="\x01", quote_char=False))
    pq.write_table(pa.table({"url": lines.column("url")}), target, compression="zstd", compression_level=1)


def main(arguments: list[str]) -> None:
    count = int(float(arguments[0]) * 1e6) if arguments else 1_000_000
    found: list[tuple[str, Measured]] = []
    with tempfile.TemporaryDirectory() as folder:
        plain, told = Path(folder, "plain.txt"), Path(folder, "told.txt")
        write_seeds(plain, count)
        write_seeds(told, count, "\tscore=1.5\tinterval=86400\tlang=de")
        with measured() as alone:
            bare(plain, Path(folder, "bare.parquet"))
        with Crawl.init(f"{folder}/crawl") as crawl:
            crawl.engine.workers  # noqa: B018  started before the clock
            for name, path, update in (
                ("new", plain, False),
                ("all known", plain, False),
                ("all known, with metadata, --update", told, True),
            ):
                with measured() as taken:
                    crawl.inject(str(path), update=update)
                found.append((name, taken))
    rows = [
        [name, f"{m.seconds:.1f}", f"{count / m.seconds / 1e6:.2f}", f"{m.cpu:.1f}", f"{m.peak_mb:,.0f}", f"{m.seconds / alone.seconds:.1f}"]
        for name, m in (*found, ("pyarrow alone: lines → Parquet", alone))
    ]  # fmt: skip
    table(f"inject, {count:,} seeds", ["seeds", "s", "M/s", "CPU s", "peak MB", "times pyarrow alone"], rows)


if __name__ == "__main__":
    main(sys.argv[1:])
