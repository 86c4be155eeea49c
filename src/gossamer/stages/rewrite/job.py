"""compact, migrate, reshard: tables keep their rows and get new files.

Reads every file set of a table, writes one base. The balance compares a separate count with the rows written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.engine import worker_memory
from gossamer.errors import UsageError
from gossamer.stages.rewrite.shards import EXPECTED, ShardTask, rewrite_group
from gossamer.storage.parquet import entries_of
from gossamer.storage.snapshots import FileSet, Snapshot
from gossamer.tables.read import Group
from gossamer.tables.spec import Kind, Table

if TYPE_CHECKING:
    from gossamer.runner import Run
    from gossamer.settings import StorageSettings

MAX_SHARDS = 4096
TASK_ROWS = 2_000_000  # per task; building its query costs a fraction of a second


def compact(run: Run, table: str) -> None:
    """Fold the change sets of a keyed table into a new base."""
    if run.tables[table].kind is not Kind.KEYED:
        raise UsageError(f"{table} has no change sets to compact")
    rewrite(run, run.tables[table], run.snapshot.sets(table), run.snapshot.shards)


def fold(run: Run, table: str) -> None:
    """Make one change set of all; the base stays as it is, so this costs what the changes cost."""
    spec, sets = run.tables[table], run.snapshot.sets(table)
    deltas = tuple(s for s in sets if s.delta)
    if spec.kind is not Kind.KEYED or not deltas:
        raise UsageError(f"{table} has no change sets to fold")
    if any(s.deletes or s.version != spec.version for s in deltas):
        raise UsageError(
            f"{table} has change sets that only `gossamer compact {table}` can fold (deletions, old schema)"
        )
    rewrite(run, spec, deltas, run.snapshot.shards, delta=True)
    run.replaced[table] = (*(s for s in sets if not s.delta), *run.appended.pop(table))


def migrate(run: Run) -> None:
    """Write anew what was written with an older schema."""
    for table, segment in outdated(run.snapshot, run.tables):
        rewrite(run, run.tables[table], run.snapshot.sets(table, segment), run.snapshot.shards, segment)


def reshard(run: Run, shards: int) -> None:
    """Cut every sharded table into another number of shards."""
    if shards < 1 or shards & (shards - 1) or shards > MAX_SHARDS:
        raise UsageError(f"{shards} shards: choose a power of two from 1 to {MAX_SHARDS}")
    run.shards = shards
    for name, sets in run.snapshot.tables.items():
        if run.tables[name].shard_by and sets:
            rewrite(run, run.tables[name], sets, shards)


def rewrite(
    run: Run,
    table: Table,
    sets: tuple[FileSet, ...],
    shards: int,
    segment: str | None = None,
    *,
    delta: bool = False,
) -> None:
    """Rewrite file sets as one, every group of shards a task of its own."""
    target = run.target(table, segment=segment, shards=shards)
    groups = 1
    if table.shard_by:
        groups = min(shards, run.snapshot.shards, tasks_for(sum(s.rows for s in sets), run.crawl.engine.workers))
    run.phase(f"rewrite {table.name} in {groups} tasks" + (f" of {segment}" if segment else ""))
    run.record.inputs[table.name] = [*run.record.inputs.get(table.name, []), *(s.folder for s in sets)]
    memory = worker_memory(run.crawl.settings.engine)
    tasks = [
        ShardTask(run.crawl.files, run.snapshot, table, sets, Group(number, groups), target, memory, delta)
        for number in range(groups)
    ]
    results = run.crawl.engine.run_tasks(tasks, rewrite_group)
    expected = sum(results.column(EXPECTED).to_pylist())
    entries = entries_of(results.drop_columns([EXPECTED]))
    run.add(table, target, entries, delta=delta, segment=segment)
    run.count(rows_before=expected, rows_written=sum(entry.rows for entry in entries))


def tasks_for(rows: int, workers: int) -> int:
    """How many groups of shards to make: one per worker at least, more when they would grow large; a power of two."""
    wanted = max(workers, rows // TASK_ROWS + 1, 1)
    return 1 << (wanted - 1).bit_length()


def outdated(snapshot: Snapshot, tables: dict[str, Table]) -> list[tuple[str, str | None]]:
    """Tables (and segments) with file sets of an older schema version."""
    found: list[tuple[str, str | None]] = []
    for name, sets in snapshot.tables.items():
        for s in sets:
            if s.version < tables[name].version and (name, s.segment) not in found:
                found.append((name, s.segment))
    return found


def due(snapshot: Snapshot, table: str, settings: StorageSettings) -> str | None:
    """What a keyed table's change sets call for: `compact` when they hold much, `fold` when they are many, or nothing."""
    sets = snapshot.sets(table)
    deltas = [s for s in sets if s.delta]
    base = sum(s.rows for s in sets if not s.delta)
    if sum(s.rows for s in deltas) > max(1, base) * settings.compact_at:
        return "compact"
    if len(deltas) < settings.compact_sets:
        return None
    return "compact" if any(s.deletes for s in deltas) else "fold"
