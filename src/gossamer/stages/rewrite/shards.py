"""Rewriting one group of shards inside a worker: read, merge, write. No row leaves its group, so nothing is shuffled.

A group is one shard when their number stays; resharding splits or joins shards within a group, as both numbers are
powers of two. Keyed tables are merged as streams; what an older version wrote goes through the Ibis expression readers
use, on a DuckDB of the worker's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gossamer.engine import local_engine
from gossamer.errors import BalanceError
from gossamer.storage.files import Files
from gossamer.storage.parquet import FileEntry, PartWriter, Target, conform, entries_table, verify
from gossamer.storage.snapshots import FileSet, Snapshot, read_manifest
from gossamer.tables.frequency import CLASSES, classes
from gossamer.tables.read import Group, Source
from gossamer.tables.spec import Kind, Table
from gossamer.tables.stream import distinct_keys, stream

if TYPE_CHECKING:
    from gossamer.engine.base import Engine

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
    delta: bool = False  # change sets become one change set


def rewrite_group(task: ShardTask) -> pa.Table:
    """Write a group's rows to new files; the file entries, and how many rows a separate count expects."""
    for entry in (entry for s in task.sets for entry in read_manifest(task.files, s)):
        if task.group.holds(entry.shard):
            verify(task.files, entry)  # what is damaged must not be written anew as if it were whole
    streams = task.table.kind is Kind.KEYED and all(s.version == task.table.version for s in task.sets)
    expected, entries = _streamed(task) if streams else _queried(task)
    if expected and not entries.num_rows:
        raise BalanceError(f"{task.table.name}: {expected:,} rows to write and none written; please report this")
    counts = [expected] + [0] * (entries.num_rows - 1)
    return entries.append_column(pa.field(EXPECTED, pa.int64()), pa.array(counts[: entries.num_rows], pa.int64()))


def _queried(task: ShardTask) -> tuple[int, pa.Table]:
    """By the expression readers use, which also migrates."""
    engine = local_engine(task.memory_mb)
    try:
        rows = _source(task, engine).rows(task.table, task.sets, group=task.group)
        return _counted(task, engine), entries_table(engine.write(rows, task.target))
    finally:
        engine.close()


def _source(task: ShardTask, engine: Engine) -> Source:
    return Source(engine, task.files, task.snapshot, {task.table.name: task.table})


def _counted(task: ShardTask, engine: Engine) -> int:
    """How many rows there should be."""
    keys = _source(task, engine).rows(task.table.keys_only(), task.sets, group=task.group)
    return int(engine.collect(keys.aggregate(rows=keys.count())).column(0)[0].as_py())


def _streamed(task: ShardTask) -> tuple[int, pa.Table]:
    """By merging sorted files window by window, in little memory."""
    sets = [(s, [e for e in read_manifest(task.files, s) if task.group.holds(e.shard)]) for s in task.sets]
    apart = min(task.target.shards, task.snapshot.shards) if task.table.shard_by else 1
    written: list[FileEntry] = []
    expected = 0
    for number in range(task.group.number, apart, task.group.groups):  # shards that need not know of each other
        shard = Group(number, apart)
        base = [e for s, entries in sets if not s.delta for e in entries if shard.holds(e.shard)]
        deltas = [[e for e in entries if shard.holds(e.shard)] for s, entries in sets if s.delta]
        kinds = CLASSES if task.table.name == "crawldb" and not task.delta else ("",)
        written += write_routed(task.target, stream(task.files, task.table, base, deltas), kinds)
        expected += distinct_keys(task.files, task.table, [*base, *chain(*deltas)])
    rows = sum(entry.rows for entry in written)
    if any(s.deletes for s, _ in sets) or expected != rows:
        engine = local_engine(task.memory_mb)  # deletions, or fingerprints that collide: only a query can tell
        try:
            return _counted(task, engine), entries_table(written)
        finally:
            engine.close()
    return rows, entries_table(written)


def write_routed(target: Target, batches: Iterable[pa.Table], kinds: tuple[str, ...]) -> list[FileEntry]:
    """Write ordered rows into the files of their shards, perhaps apart by frequency class."""
    writers: dict[tuple[int, int], PartWriter] = {}
    try:
        for rows in batches:
            shards = np.zeros(rows.num_rows, np.int64)
            if target.shard_by:
                shards = np.asarray(rows.column(target.shard_by).to_numpy()) & (target.shards - 1)
            route = shards * len(kinds) + (classes(rows) if len(kinds) > 1 else 0)
            for number in np.unique(route).tolist():
                way = divmod(number, len(kinds))
                if way not in writers:
                    writers[way] = PartWriter(target, *way)
                own = rows.filter(pa.array(route == number)).combine_chunks()
                for batch in own.to_batches():
                    writers[way].write(conform(batch, target.schema))
        return [replace(writer.close(), kind=kinds[way[1]]) for way, writer in sorted(writers.items())]
    except BaseException:
        for writer in writers.values():
            writer.abort()
        raise
