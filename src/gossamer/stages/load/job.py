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
    tasks = [
        LoadTask(number, path, spec, scratch, run.clock.now, run.record.segment) for number, path in enumerate(paths)
    ]
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
    distinct = _distinct(run, rows, spec.key)
    staged = sum(r["rows"] for r in results)
    if run.record.counters["rows_read"] and not staged:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in run.record.drops.items())
        raise UsageError(f"none of the rows can be taken ({reasons}); nothing was changed")
    chosen = _last_of_each_key(rows, spec.key) if distinct < staged else rows
    deletes = any(r["deletes"] for r in results)
    keyed = spec.kind is Kind.KEYED
    written = run.write(spec.name, chosen.drop(ORDER), segment=run.record.segment, delta=keyed, deletes=deletes)
    run.count(rows_written=written, duplicates=staged - distinct)
    run.drop("same key later in the input", staged - distinct)


def _distinct(run: Run, rows: ir.Table, key: tuple[str, ...]) -> int:
    """How many keys there are, counted apart from what is written, so that the balance means something."""
    keys = rows.select(*key).distinct()
    return int(run.crawl.engine.collect(keys.aggregate(n=keys.count())).column("n")[0].as_py())


def _last_of_each_key(rows: ir.Table, key: tuple[str, ...]) -> ir.Table:
    """The rows without those whose key comes again later."""
    numbered = rows.mutate(_nth=ibis.row_number().over(group_by=list(key), order_by=ibis.desc(ORDER)))
    return numbered.filter(numbered["_nth"] == 0).drop("_nth")
