"""Rewriting one group of shards inside a worker: read, merge, write. No row leaves its group, so nothing is shuffled.

A group is one shard when their number stays; resharding splits or joins shards within a group, as both numbers are
powers of two. The merge is the same Ibis expression readers use, run on a DuckDB of the worker's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from gossamer.engine import local_engine
from gossamer.errors import BalanceError
from gossamer.storage.files import Files
from gossamer.storage.parquet import Target, entries_table, verify
from gossamer.storage.snapshots import FileSet, Snapshot, read_manifest
from gossamer.tables.read import Group, Source
from gossamer.tables.spec import Table

EXPECTED = "expected"


@dataclass(frozen=True)
class ShardTask:
    """One group of a table's shards, to be written anew."""

    files: Files
    snapshot: Snapshot
    table: Table
    sets: tuple[FileSet, ...]
    group: Group
    target: Target
    memory_mb: int


def rewrite_group(task: ShardTask) -> pa.Table:
    """Write a group's rows to new files; the file entries, and how many rows a separate count expects."""
    for entry in (entry for s in task.sets for entry in read_manifest(task.files, s)):
        if task.group.holds(entry.shard):
            verify(task.files, entry)  # what is damaged must not be written anew as if it were whole
    engine = local_engine(task.memory_mb)
    try:
        source = Source(engine, task.files, task.snapshot, {task.table.name: task.table})
        keys = source.rows(task.table.keys_only(), task.sets, group=task.group)
        expected = engine.collect(keys.aggregate(rows=keys.count())).column(0)[0].as_py()
        entries = entries_table(engine.write(source.rows(task.table, task.sets, group=task.group), task.target))
    finally:
        engine.close()
    if expected and not entries.num_rows:
        raise BalanceError(f"{task.table.name}: {expected:,} rows to write and none written; please report this")
    counts = [expected] + [0] * (entries.num_rows - 1)
    return entries.append_column(pa.field(EXPECTED, pa.int64()), pa.array(counts[: entries.num_rows], pa.int64()))
