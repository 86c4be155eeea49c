"""Large synthetic crawldbs, made shard by shard in workers. Keys are pseudo-random, rows are in row-key order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.storage.parquet import Target, entries_table, write_part
from gossamer.tables.spec import Table

BATCH = 131_072
PAGES_PER_DOMAIN = 100
EPOCH_US = 1_750_000_000_000_000


@dataclass(frozen=True)
class ShardOfUrls:
    """Rows `start..stop` of one shard of a synthetic table."""

    table: Table
    target: Target
    shard: int
    shards: int
    start: int
    stop: int
    step: int = 1


def mix(numbers: np.ndarray) -> np.ndarray:
    """splitmix64: a well spread fingerprint of a number."""
    x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def rows(table: Table, ids: np.ndarray, shard: int, shards: int) -> pa.RecordBatch:
    """Crawldb rows of some ids, which grow with the row key; `ids` counts within the shard."""
    domains = ids // PAGES_PER_DOMAIN
    domain = pc.binary_join_element_wise("site", pc.utf8_lpad(pa.array(domains).cast(pa.string()), 8, "0"), "")
    path = pc.binary_join_element_wise(
        "/news/2026/", pc.utf8_lpad(pa.array(ids % PAGES_PER_DOMAIN).cast(pa.string()), 4, "0"),
        "/some-article-about-things-", pa.array(ids * shards + shard).cast(pa.string()), ".html", "",
    )  # fmt: skip
    host = pc.binary_join_element_wise("www.", domain, ".com", "")
    fps = (mix(ids * shards + shard) & ~np.uint64(shards - 1)) | np.uint64(shard)
    when = pa.array(EPOCH_US + (ids % 1_000_000) * 1000, pa.timestamp("us", "UTC"))
    fetched = pa.array(ids % 3 == 0)
    nothing = pa.scalar(None, pa.timestamp("us", "UTC"))
    columns: dict[str, pa.Array] = {
        "domain_fp": pa.array(mix(domains).view(np.int64)),
        "url_fp": pa.array(fps.view(np.int64)),
        "rowkey": pc.binary_join_element_wise("com.", domain, ".www:https", path, ""),
        "url": pc.binary_join_element_wise("https://", host, path, ""),
        "host": host,
        "status": pc.if_else(fetched, pa.scalar(2, pa.int8()), pa.scalar(1, pa.int8())),
        "inlinks": pa.array(ids % 50, pa.int32()),
        "depth": pa.array(ids % 12, pa.int16()),
        "updated_at": when,
        "fetched_at": pc.if_else(fetched, when, nothing),
        "next_fetch": when,
        "first_seen": when,
        "interval_s": pa.array(np.full(len(ids), 2_592_000), pa.int32()),
        "signature": pc.if_else(fetched, pa.array(fps.view(np.int64)), pa.scalar(None, pa.int64())),
    }
    return pa.RecordBatch.from_arrays(
        [columns.get(f.name, pa.nulls(len(ids), f.type)) for f in table.schema], schema=table.schema
    )


def write_shard(task: ShardOfUrls) -> pa.Table:
    """Write one shard of a synthetic table, already in order."""

    def batches() -> Iterator[pa.RecordBatch]:
        ids = np.arange(task.start, task.stop, task.step)
        for at in range(0, len(ids), BATCH):
            yield rows(task.table, ids[at : at + BATCH], task.shard, task.shards)

    entry = write_part(task.target, batches(), task.shard, 0)
    return entries_table([entry] if entry else [])
