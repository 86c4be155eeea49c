"""Base + deltas of a group of shards as one ordered stream, a window of keys at a time: what compaction writes.

All files are sorted by the same key, so nothing is sorted as a whole and nothing is shuffled: windows end where the first
file has no more rows in memory, and are folded one by one. Memory holds a row group of each file, however large they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.storage.files import Files
from gossamer.storage.parquet import DELETED, FileEntry
from gossamer.tables.fold import finished, fold, marked, opened
from gossamer.tables.spec import Table


class SortedFile:
    """One file read row group by row group; `buffer` holds what was read and not yet taken."""

    def __init__(self, files: Files, entry: FileEntry, table: Table) -> None:
        self._chunks = _row_groups(files, entry, table)
        self._column = table.order[0]
        self.buffer: pa.Table | None = None
        self.ended = False
        self.more()

    def more(self) -> None:
        """Read another row group, if there is one."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self.ended = True
        else:
            self.buffer = chunk if self.buffer is None else pa.concat_tables([self.buffer, chunk])

    @property
    def last(self) -> str | None:
        """The last key in memory."""
        if self.buffer is None or not self.buffer.num_rows:
            return None
        return str(self.buffer.column(self._column)[-1].as_py())

    def take(self, until: str | None) -> pa.Table | None:
        """Rows with keys up to and including one; all that is left for None."""
        if self.buffer is None:
            return None
        if until is None:
            part, self.buffer = self.buffer, None
            return part
        while self.last == until and not self.ended:
            self.more()
        end = bisect_right(_Keys(self.buffer.column(self._column)), until)
        part, self.buffer = self.buffer.slice(0, end), self.buffer.slice(end)
        return part


class _Keys(Sequence[str]):
    """A column of keys for bisection."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, at: int) -> str:  # type: ignore[override]
        return str(self._column[at].as_py())


def _row_groups(files: Files, entry: FileEntry, table: Table) -> Iterator[pa.Table]:
    """The rows of a file, columns it lacks as NULL, with its deletion marks if it has any."""
    with opened(files, entry) as stream, pq.ParquetFile(stream, pre_buffer=False) as file:
        there = set(file.schema_arrow.names)
        for number in range(file.metadata.num_row_groups):
            rows = file.read_row_group(number, use_threads=False)
            columns = {
                f.name: rows.column(f.name).cast(f.type)
                if f.name in there
                else pa.chunked_array([pa.nulls(rows.num_rows, f.type)])
                for f in table.schema
            }
            if DELETED in there:
                columns[DELETED] = rows.column(DELETED)
            yield pa.table(columns)


def stream(
    files: Files, table: Table, base: Sequence[FileEntry], deltas: Sequence[Sequence[FileEntry]]
) -> Iterator[pa.Table]:
    """The rows of a keyed table in its order, merged; each key is in one piece only."""
    sets = [[SortedFile(files, entry, table) for entry in entries] for entries in (base, *deltas)]
    everything = [file for of_set in sets for file in of_set]
    while any((file.buffer is not None and file.buffer.num_rows) or not file.ended for file in everything):
        for file in everything:
            while not file.ended and file.last is None:
                file.more()
        open_ends = [file.last for file in everything if not file.ended and file.last is not None]
        until = min(open_ends, default=None)
        rows: pa.Table | None = None
        in_order = True
        for of_set in sets:
            parts = [part for file in of_set if (part := file.take(until)) is not None and part.num_rows]
            if not parts:
                continue
            delta = marked(pa.concat_tables(parts))
            in_order = in_order and rows is None and len(parts) == 1
            rows = delta if rows is None else fold(table, rows, delta)
        if rows is not None:
            rows = finished(rows)
            yield rows if in_order else _sorted(rows, table)


def _sorted(rows: pa.Table, table: Table) -> pa.Table:
    """Rows in the table's order; by the first column alone where that is enough, which is much faster."""
    by_first = rows.take(pc.sort_indices(rows.column(table.order[0])))
    keys = by_first.column(table.order[0]).combine_chunks()
    if pc.any(pc.equal(keys.slice(1), keys.slice(0, max(0, len(keys) - 1)))).as_py():
        return rows.sort_by([(name, "ascending") for name in table.order])
    return by_first


def distinct_keys(files: Files, table: Table, entries: Sequence[FileEntry]) -> int:
    """How many keys some files hold, by the integers among their key columns: a count apart from the merge."""
    names = [name for name in table.key if pa.types.is_integer(table.column(name).type)]
    parts = []
    for entry in entries:
        with opened(files, entry) as source, pq.ParquetFile(source, pre_buffer=False) as file:
            rows = file.read(names, use_threads=False)
            parts.append(np.stack([rows.column(name).to_numpy() for name in names], axis=1))
    if not parts:
        return 0
    every = np.concatenate(parts)
    order = np.lexsort(every.T)
    ranked = every[order]
    return int(1 + (ranked[1:] != ranked[:-1]).any(axis=1).sum()) if len(ranked) else 0
