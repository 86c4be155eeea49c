"""map_batches and write of the embedded engine beside bare DuckDB and pyarrow doing the same work in the same run."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure import Measured, measured
from benchmarks.report import table
from benchmarks.synthetic import rows as url_rows
from gossamer.engine.embedded import EmbeddedEngine
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import PLAIN_KEYS, PREFIXED, ROW_GROUP_ROWS, Target
from gossamer.tables import TABLES

MEMORY_MB = 2048
OUT = pa.schema([("key", pa.int64()), ("length", pa.int64())])


def lengths(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The work: text lengths, vectorised."""
    for batch in batches:
        yield pa.record_batch(
            [batch.column("key"), pc.binary_length(batch.column("text")).cast(pa.int64())], schema=OUT
        )


def bench_map(count: int, engine: EmbeddedEngine, folder: Path) -> list[list[str]]:
    rng = np.random.default_rng(0)
    path = folder / "rows.parquet"
    keys = rng.integers(0, count // 10, count)
    text = pc.binary_join_element_wise("text of ", pa.array(keys).cast(pa.string()), " and some more of it", "")
    pq.write_table(pa.table({"key": keys, "order": rng.permutation(count), "text": text}), path)
    schema = pq.read_schema(path)
    engine.map_batches(engine.read([str(path)], schema).limit(1000), lengths, OUT)  # start the workers
    with measured() as ours:
        engine.map_batches(engine.read([str(path)], schema), lengths, OUT, by="key", sort=["order"])
    with measured() as flat:
        engine.map_batches(engine.read([str(path)], schema), lengths, OUT)
    bare = duckdb.connect(config={"memory_limit": f"{MEMORY_MB}MB", "threads": 2})

    def peer(sql: str) -> Measured:
        with measured() as taken, pq.ParquetWriter(folder / "out.parquet", OUT, compression="zstd") as writer:
            for batch in lengths(bare.execute(sql).to_arrow_reader(65536)):
                writer.write_batch(batch)
        return taken

    ordered = peer(f"SELECT * FROM '{path}' ORDER BY key, \"order\"")
    scanned = peer(f"SELECT * FROM '{path}'")
    return [
        _row("map_batches by key, sorted", count, ours, ordered, "DuckDB sort → function → Parquet, one process"),
        _row("map_batches, no key", count, flat, scanned, "DuckDB scan → function → Parquet, one process"),
    ]


def bench_write(count: int, engine: EmbeddedEngine, folder: Path) -> list[list[str]]:
    spec = TABLES["crawldb"]
    ids = np.random.default_rng(0).permutation(count)
    path = folder / "urls.parquet"
    with pq.ParquetWriter(path, spec.schema) as writer:
        for at in range(0, count, 100_000):
            writer.write_batch(url_rows(spec, ids[at : at + 100_000], 0, 1))
    target = Target(LocalFiles(str(folder)), "ours", spec.schema, spec.order, spec.shard_by, 16, key=spec.key)
    with measured() as ours:
        engine.write(engine.read([str(path)], spec.schema), target)
    bare = duckdb.connect(config={"memory_limit": f"{MEMORY_MB}MB", "threads": 2})
    order = ", ".join(["url_fp & 15", *spec.order])
    with measured() as copy:
        bare.execute(
            f"COPY (SELECT * FROM '{path}' ORDER BY {order}) TO '{folder}/copy.parquet' "
            f"(COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
        )
    ready = bare.execute(f"SELECT * FROM '{path}' ORDER BY rowkey").to_arrow_table().cast(spec.schema)
    dictionary = [name for name in spec.names if name not in PREFIXED + PLAIN_KEYS]
    encoding = {name: "DELTA_BYTE_ARRAY" for name in PREFIXED if name in spec.names}
    with measured() as plain:
        pq.write_table(
            ready, folder / "plain.parquet", compression="zstd", compression_level=1, row_group_size=ROW_GROUP_ROWS,
            use_dictionary=dictionary, column_encoding=encoding,
        )  # fmt: skip
    return [
        _row("write crawldb: shard, sort, check, sync", count, ours, copy, "DuckDB COPY … ORDER BY, one file"),
        _row("write crawldb: shard, sort, check, sync", count, ours, plain, "pyarrow alone, rows in memory and sorted"),
    ]


def _row(what: str, count: int, ours: Measured, peer: Measured, name: str) -> list[str]:
    return [
        what,
        f"{count / ours.seconds / 1e6:.2f}",
        f"{count / ours.cpu / 1e6:.2f}",
        f"{ours.peak_mb:,.0f}",
        name,
        f"{count / peer.seconds / 1e6:.2f}",
        f"{count / peer.cpu / 1e6:.2f}",
        f"{peer.seconds / ours.seconds:.2f}",
        f"{peer.cpu / ours.cpu:.2f}",
    ]


def main(arguments: list[str]) -> None:
    count = int(float(arguments[0]) * 1e6) if arguments else 5_000_000
    with tempfile.TemporaryDirectory() as folder:
        engine = EmbeddedEngine(workers=2, memory_mb=MEMORY_MB)
        found = bench_map(count, engine, Path(folder)) + bench_write(count // 2, engine, Path(folder))
        engine.close()
    head = [
        "what",
        "M rows/s",
        "M rows/CPU s",
        "peak MB",
        "beside",
        "M rows/s",
        "M rows/CPU s",
        "time ratio",
        "CPU ratio",
    ]
    table(f"Engine, {count:,} rows (write: {count // 2:,}); a ratio above 1 means we are faster", head, found)


if __name__ == "__main__":
    main(sys.argv[1:])
