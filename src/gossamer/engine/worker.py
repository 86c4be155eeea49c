"""What runs inside a worker or executor: apply a function to a stream of batches and write what it gives.

Both engines call these, so both write the same files. Nothing here imports an engine: workers start fast and stay small.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.errors import StorageError
from gossamer.storage.parquet import FileEntry, Target, entries_table, write_part

if TYPE_CHECKING:
    from gossamer.engine.base import BatchFunction

SHARD = "__shard"
Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
Piece = tuple[int, int, pa.RecordBatch]  # shard, number of the file, rows


def conformed(rows: Rows, schema: pa.Schema) -> Rows:
    """Rows of an engine cast to the canonical schema, where they differ."""
    if rows.schema.equals(schema):
        return rows
    columns = [rows.column(f.name).cast(f.type) for f in schema]
    return type(rows).from_arrays(columns, schema=schema)


def map_part(fn: BatchFunction, batches: Iterator[pa.RecordBatch], target: Target, task: int) -> list[FileEntry]:
    """Run `fn` over one partition and store its output; a partition without rows is not worth a call."""
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return []
    entry = write_part(target, fn(itertools.chain([first], filled)), 0, task)
    return [entry] if entry else []


def map_spool(fn: BatchFunction, path: str, target: Target, task: int) -> pa.Table:
    """Map one partition from its Arrow file, which is not needed after."""
    try:
        with pa.OSFile(path, "rb") as source, pa.ipc.open_stream(source) as reader:
            return entries_table(map_part(fn, iter(reader), target, task))
    finally:
        Path(path).unlink()


def by_shard(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut a stream that is ordered by its `__shard` column wherever the shard changes."""
    for batch in batches:
        shards = batch.column(SHARD).to_numpy(zero_copy_only=False)
        edges = np.flatnonzero(np.diff(shards)) + 1
        rows = batch.drop_columns([SHARD])
        for start, end in itertools.pairwise((0, *edges.tolist(), len(shards))):
            if end > start:
                yield int(shards[start]), rows.slice(start, end - start)


def unique(batches: Iterator[pa.RecordBatch], key: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Pass a stream on in which rows of one key are neighbours; raise when a key appears twice."""
    last: pa.RecordBatch | None = None
    for batch in batches:
        if key and batch.num_rows:
            keys = batch.select(list(key))
            if last is not None:
                _refuse_equal(pa.Table.from_batches([last, keys.slice(0, 1)]).combine_chunks().to_batches()[0])
            _refuse_equal(keys)
            last = keys.slice(keys.num_rows - 1)
        yield batch


def _refuse_equal(keys: pa.RecordBatch) -> None:
    """Raise if two neighbouring rows have the same key."""
    if keys.num_rows < 2:
        return
    same = None
    for column in keys.columns:
        equal = pc.equal(column.slice(1), column.slice(0, len(column) - 1))
        same = equal if same is None else pc.and_(same, equal)
    if same is not None and same.true_count:
        row = keys.slice(pc.index(same, True).as_py(), 1).to_pylist()[0]
        raise StorageError(f"two rows with the same key {row} in one change set; make the rows unique first")


def write_shards(target: Target, batches: Iterator[pa.RecordBatch], task: int) -> list[FileEntry]:
    """Write a stream ordered by shard as one file per shard."""
    return write_pieces(target, ((shard, task, rows) for shard, rows in by_shard(unique(batches, target.key))))


def write_pieces(target: Target, pieces: Iterable[Piece]) -> list[FileEntry]:
    """Write each run of pieces that belong to one file, one file after the other."""
    runs = itertools.groupby(pieces, key=lambda piece: piece[:2])
    entries = (write_part(target, (rows for _, _, rows in run), shard, task) for (shard, task), run in runs)
    return [entry for entry in entries if entry]
