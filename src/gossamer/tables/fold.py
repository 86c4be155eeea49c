"""Base + deltas of one shard, folded in Arrow and numpy inside a worker: what `merge` says as an expression, without SQL.

Generate reads a whole crawldb this way: a few columns, shard by shard, rows of the base in place. Keys are matched by
`url_fp` through a small bitmap first, because almost no row of the base is touched by a round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.errors import storage_error
from gossamer.storage.files import Files
from gossamer.storage.parquet import DELETED, FileEntry, corrupt
from gossamer.tables.spec import Column, Merge, Table

WIPE, GONE = "_wipe", "_gone"  # older rows of this key are void; the key has no row any more
BITMAP_BITS = 22  # 4 MB of bytes: stays in the cache
BITMAP_PAYS = 500_000  # rows from which on it is worth making


@dataclass(frozen=True)
class ShardFiles:
    """The files of a keyed table that hold one group of shards: those of the base, and those of each change set."""

    files: Files
    base: tuple[FileEntry, ...]
    deltas: tuple[tuple[FileEntry, ...], ...]


def folded_deltas(shard: ShardFiles, table: Table, names: Sequence[str]) -> pa.Table | None:
    """Some columns of all change sets of a shard as one, with the marks of deletions if there are any."""
    whole: pa.Table | None = None
    for entries in shard.deltas:
        if entries:
            delta = marked(read_columns(shard.files, entries, (*names, DELETED), table.schema))
            whole = delta if whole is None else fold(table, whole, delta)
    return whole


def read_columns(
    files: Files, entries: Sequence[FileEntry], names: Sequence[str], schema: pa.Schema, texts: Sequence[str] = ()
) -> pa.Table:
    """Some columns of some files; those a file lacks are NULL, those of `texts` stay dictionaries."""
    kinds = {
        n: pa.dictionary(pa.int32(), schema.field(n).type) if n in texts else schema.field(n).type for n in schema.names
    }
    none = pa.table({n: pa.array([], kinds[n]) for n in names if n in kinds})
    parts = [_read_file(files, entry, names, schema, texts) for entry in entries]
    return pa.concat_tables(parts) if parts else none


def _read_file(
    files: Files, entry: FileEntry, names: Sequence[str], schema: pa.Schema, texts: Sequence[str]
) -> pa.Table:
    with opened(files, entry) as stream, pq.ParquetFile(stream, read_dictionary=list(texts), pre_buffer=False) as file:
        there = set(file.schema_arrow.names)
        empty = _all_null(file, [name for name in names if name in there])
        rows = file.read([n for n in names if n in there and n not in empty], use_threads=False)
        count = file.metadata.num_rows
    columns = {}
    for name in names:
        if name in rows.column_names:
            columns[name] = rows.column(name)
        elif name != DELETED or DELETED in there:
            kind = pa.bool_() if name == DELETED else schema.field(name).type
            kind = pa.dictionary(pa.int32(), kind) if name in texts else kind
            columns[name] = pa.chunked_array([pa.nulls(count, kind)])
    return pa.table(columns)


@contextmanager
def opened(files: Files, entry: FileEntry) -> Iterator[Any]:
    """A file for pyarrow to read: mapped when it is local; damage is told by name."""
    url = files.url(entry.path)
    try:
        with pa.memory_map(url) if "://" not in url else files.open(entry.path) as stream:
            yield stream
    except pa.ArrowException as error:
        raise corrupt(url, error) from error
    except OSError as error:
        raise (storage_error(error, url) if error.errno else corrupt(url, error)) from error


def _all_null(file: pq.ParquetFile, names: Sequence[str]) -> set[str]:
    """Columns without a single value: known from the footer, so they need not be read."""
    places = {file.metadata.schema.column(i).path: i for i in range(file.metadata.num_columns)}
    found = set()
    for name in names:
        if name in places and file.metadata.num_row_groups:
            chunks = [
                file.metadata.row_group(g).column(places[name]).statistics for g in range(file.metadata.num_row_groups)
            ]
            if all(s is not None and s.has_null_count and s.num_values == 0 for s in chunks):
                found.add(name)
    return found


def marked(delta: pa.Table) -> pa.Table:
    """A change set with its deletion mark as the two marks of a fold."""
    if DELETED not in delta.column_names:
        return delta
    deleted = delta.column(DELETED).fill_null(False)
    return delta.drop_columns([DELETED]).append_column(WIPE, deleted).append_column(GONE, deleted)


def fold(table: Table, older: pa.Table, newer: pa.Table) -> pa.Table:
    """One row per key: rows of `older` in their places, changed where `newer` says so, then the new keys.

    Both keep the marks when one has them; `finished` takes them off.
    """
    older, newer = _alike(older, newer)
    mine, theirs = matches(table, older, newer)
    together = combined(table, older.take(pa.array(mine)), newer.take(pa.array(theirs)))
    columns = [_replaced(older.column(n), mine, together.column(n)) for n in older.column_names]
    changed = pa.table(columns, older.column_names)
    fresh = np.ones(newer.num_rows, bool)
    fresh[theirs] = False
    return pa.concat_tables([changed, newer.select(older.column_names).filter(pa.array(fresh))])


def finished(rows: pa.Table) -> pa.Table:
    """The rows that exist, without marks."""
    if GONE not in rows.column_names:
        return rows
    return rows.filter(pc.invert(rows.column(GONE))).drop_columns([WIPE, GONE])


def _alike(older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both with the marks, if one has them."""

    def with_marks(rows: pa.Table) -> pa.Table:
        if GONE in rows.column_names:
            return rows
        no = pa.chunked_array([pa.array(np.zeros(rows.num_rows, bool))])
        return rows.append_column(WIPE, no).append_column(GONE, no)

    if GONE in older.column_names or GONE in newer.column_names:
        return with_marks(older), with_marks(newer)
    return older, newer


def matches(table: Table, older: pa.Table, newer: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Places of equal keys in both tables; each key is in each table once."""
    hashed = table.shard_by or table.key[0]
    ours, theirs = (np.asarray(rows.column(hashed).to_numpy()) for rows in (older, newer))
    maybe = np.arange(len(ours))
    if len(ours) > BITMAP_PAYS:
        maybe = np.flatnonzero(_bitmap(theirs)[ours & ((1 << BITMAP_BITS) - 1)])
    order = np.argsort(theirs, kind="stable")
    ranked = theirs[order]
    low = np.searchsorted(ranked, ours[maybe], "left")
    high = np.searchsorted(ranked, ours[maybe], "right")
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for nth in range(int((high - low).max(initial=0))):  # more than one only where fingerprints collide
        hit = low + nth < high
        left, right = maybe[hit], order[low[hit] + nth]
        same = np.ones(len(left), bool)
        for name in table.key:
            if name != hashed and name in older.column_names:
                a, b = older.column(name).take(pa.array(left)), newer.column(name).take(pa.array(right))
                same &= pc.equal(a, b).to_numpy(zero_copy_only=False)
        found.append((left[same], right[same]))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def key_pairs(rows: pa.Table) -> pa.Array:
    """Both fingerprints as one value of 16 bytes."""
    both = np.empty((rows.num_rows, 2), np.int64)
    for place, name in enumerate(("domain_fp", "url_fp")):
        both[:, place] = rows.column(name).to_numpy()
    return pa.Array.from_buffers(pa.binary(16), rows.num_rows, [None, pa.py_buffer(both.tobytes())])


def _bitmap(fingerprints: np.ndarray) -> np.ndarray:
    seen = np.zeros(1 << BITMAP_BITS, bool)
    seen[fingerprints & ((1 << BITMAP_BITS) - 1)] = True
    return seen


def _replaced(column: pa.ChunkedArray, at: np.ndarray, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with other values at some places."""
    if not len(at):
        return column
    places = np.arange(len(column))
    places[at] = len(column) + np.arange(len(at))
    return pa.chunked_array([*column.chunks, *values.chunks], column.type).take(pa.array(places))


def combined(table: Table, older: pa.Table, newer: pa.Table) -> pa.Table:
    """Rows of equal keys, side by side, made one by the table's merge rules."""
    count = older.num_rows
    takes_newer = np.zeros(count, bool)
    if GONE in older.column_names:
        takes_newer = _mask(newer.column(WIPE)) | _mask(older.column(GONE))
    newest = takes_newer.copy()
    if table.version_by and table.version_by in older.column_names:
        version, theirs = older.column(table.version_by), newer.column(table.version_by)
        later = pc.or_kleene(version.is_null(), pc.greater_equal(theirs, version))
        newest |= _mask(pc.and_(theirs.is_valid(), later.fill_null(False)))
    columns = {}
    for name in older.column_names:
        if name == WIPE:
            columns[name] = pc.or_(older.column(name), newer.column(name))
        elif name == GONE:
            columns[name] = newer.column(name)
        else:
            columns[name] = _column(table.column(name), older.column(name), newer.column(name), takes_newer, newest)
    return pa.table(columns)


def _column(
    column: Column, older: pa.ChunkedArray, newer: pa.ChunkedArray, takes_newer: np.ndarray, newest: np.ndarray
) -> pa.ChunkedArray:
    """One column of the combined rows."""
    if column.merge is Merge.KEY:
        return older
    if column.merge is Merge.NEWEST:
        return _chosen(older, newer, newest)
    if column.merge is Merge.KEEP:
        return _chosen(older, newer, takes_newer | _mask(older.is_null()))
    if column.merge is Merge.SUM:
        both = pc.coalesce(pc.add(older, newer), older, newer)
        return _chosen(both.cast(older.type), newer, takes_newer)
    return _chosen(older, newer, takes_newer | _beyond(older, newer, column.merge is Merge.MAX))


def _beyond(older: pa.ChunkedArray, newer: pa.ChunkedArray, upwards: bool) -> np.ndarray:
    """Where the second value is the greater (or the smaller), or the only one."""
    if pa.types.is_boolean(older.type):
        older, newer = older.cast(pa.int8()), newer.cast(pa.int8())
    further = pc.greater(newer, older) if upwards else pc.less(newer, older)
    return _mask(pc.or_(further.fill_null(False), pc.and_(older.is_null(), newer.is_valid())))


def _chosen(older: pa.ChunkedArray, newer: pa.ChunkedArray, second: np.ndarray) -> pa.ChunkedArray:
    """Values of the second column where told, else of the first; for every type."""
    if not second.any():
        return older
    places = np.arange(len(older)) + np.where(second, len(older), 0)
    return pa.chunked_array([*older.chunks, *newer.chunks], older.type).take(pa.array(places))


def _mask(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False))
