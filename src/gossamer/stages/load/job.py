"""load: Parquet, CSV or JSON files → rows of a table (a change set, where the table takes them).

Files are read side by side in the workers into scratch, then sharded and sorted by the engine. Rows that cannot be
rows are counted by reason; of several rows with one key the last one is taken.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import ibis

from gossamer.errors import GossamerError, UsageError
from gossamer.stages.load.inputs import stamp_of
from gossamer.stages.load.rows import ORDER, LoadTask, stage_file, staged_schema
from gossamer.storage.parquet import Target
from gossamer.tables.spec import Kind, Table

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.runner import Run


def run(run: Run, table: str, paths: list[str], stamps: list[str]) -> None:
    """Load files into a table; `stamps` (sizes and times) tell when a file changes meanwhile."""
    segment = run.record.segment
    spec = run.tables[table]
    if spec.kind is Kind.SEGMENT and segment is None:
        raise UsageError(f"{table} belongs to a segment; name one with --segment")
    if spec.kind is not Kind.SEGMENT and segment is not None:
        raise UsageError(f"{table} is not a table of segments; leave out --segment")
    scratch = Target(run.crawl.files, f"scratch/{run.record.run}", staged_schema(spec), attempt=run.record.attempt)
    try:
        _load(run, spec, paths, stamps, scratch)
    finally:
        with suppress(GossamerError):  # what cannot be removed now is collected later
            run.crawl.files.delete(*(path for path, _ in run.crawl.files.list(scratch.folder)))


def _load(run: Run, spec: Table, paths: list[str], stamps: list[str], scratch: Target) -> None:
    """Files → scratch → the table."""
    run.phase(f"read {len(paths)} files")
    files = run.crawl.files
    tasks = [LoadTask(number, path, spec, scratch, run.clock.now) for number, path in enumerate(paths)]
    results = run.crawl.engine.run_tasks(tasks, stage_file).to_pylist()
    if [stamp_of(path) for path in paths] != stamps:
        raise UsageError("a file changed while it was read; run the command again when it is complete")
    for result in results:
        run.count(rows_read=result["rows_read"])
        for reason, count in result["rejected"]:
            run.drop(reason, count)
            run.count(rejected=count)
    rows = run.crawl.engine.read([files.url(r["path"]) for r in results if r["path"]], scratch.schema)
    run.phase(f"write {spec.name}")
    chosen = _last_of_each_key(run, rows, spec.key) if spec.key else rows
    deletes = any(r["deletes"] for r in results)
    keyed = spec.kind is Kind.KEYED
    written = run.write(spec.name, chosen.drop(ORDER), segment=run.record.segment, delta=keyed, deletes=deletes)
    staged = sum(r["rows"] for r in results)
    run.count(rows_written=written, duplicates=staged - written)
    run.drop("same key later in the input", staged - written)


def _last_of_each_key(run: Run, rows: ir.Table, key: tuple[str, ...]) -> ir.Table:
    """The rows without those whose key comes again later; sorting wide rows is spared when there are none."""
    counts = rows.group_by(*key).aggregate(n=rows.count())
    if run.crawl.engine.collect(counts.filter(counts.n > 1).limit(1)).num_rows == 0:
        return rows
    numbered = rows.mutate(_nth=ibis.row_number().over(group_by=list(key), order_by=ibis.desc(ORDER)))
    return numbered.filter(numbered["_nth"] == 0).drop("_nth")
