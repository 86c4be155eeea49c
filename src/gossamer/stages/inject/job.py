"""inject: seed lists → crawldb change set.

Parts of the lists are parsed and checked side by side in the workers into scratch; the engine drops duplicates and what
the crawldb knows. A known URL keeps its state whatever the list says: at most it learns its source tag, if it has none,
and with `update` its interval and metadata.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import ibis

from gossamer.errors import GossamerError, UsageError
from gossamer.rules.ruleset import load_rules
from gossamer.stages.inject import changes, report
from gossamer.stages.inject.changes import What
from gossamer.stages.inject.inputs import parts_of, seed_lists, stamp_of
from gossamer.stages.inject.rows import BAD, InjectTask, stage_part
from gossamer.storage.parquet import Target

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.runner import Run

TABLE = "crawldb"


def run(run: Run, paths: list[str], stamps: list[str], source: str | None, update: bool, errors: str | None) -> None:
    """Inject seed lists; `stamps` (sizes and times) tell when a file changes meanwhile."""
    folder = f"scratch/{run.record.run}"
    try:
        tasks = _tasks(run, paths, stamps, source, folder, errors)
        staged = _read(run, tasks, errors)
        if [stamp_of(path) or stamp for path, stamp in zip(paths, stamps, strict=True)] != stamps:
            raise UsageError("a seed list changed while it was read; run the command again when it is complete")
        _refuse_if_all_bad(run)
        run.phase("write crawldb")
        seeds = _distinct(run, staged)
        _remember(run, seeds)
        _write(run, seeds, update)
    finally:
        with suppress(GossamerError):  # what cannot be removed now is collected later
            run.crawl.files.delete(*(path for path, _ in run.crawl.files.list(folder)))


def _tasks(
    run: Run, paths: list[str], stamps: list[str], source: str | None, folder: str, errors: str | None
) -> list[InjectTask]:
    """One task for each part of each list."""
    run.phase(f"read {len(paths)} seed lists" if len(paths) > 1 else "read the seed list")
    report.refuse_unwritable(errors)
    files, attempt, table = run.crawl.files, run.record.attempt, run.tables[TABLE]
    good = Target(files, f"{folder}/good", changes.staged_schema(table), attempt=attempt)
    bad = Target(files, f"{folder}/bad", BAD, attempt=attempt) if errors is not None else None
    chain, interval = run.url_chain(), run.crawl.settings.schedule.interval_s
    parts = [part for seeds in seed_lists(paths, stamps, source, files) for part in parts_of(seeds)]
    return [
        InjectTask(number, part, chain, table, run.clock.now, interval, good, bad) for number, part in enumerate(parts)
    ]


def _read(run: Run, tasks: list[InjectTask], errors: str | None) -> ir.Table:
    """Parse and check everything, count and tell what is bad; the good seeds as a table."""
    files = run.crawl.files
    results = run.crawl.engine.run_tasks(tasks, stage_part).to_pylist()
    run.count(lines=sum(r["lines"] for r in results), seeds=sum(r["seeds"] for r in results))
    for kind in ("rejected", "filtered"):
        for reason, count in (pair for r in results for pair in r[kind]):
            run.count(**{kind: count})
            run.drop(reason, count)
    for reason, count in (pair for r in results for pair in r["failures"]):
        run.count(plugin_errors=count)
        run.tell({"event": "note", "text": f"plugin: {reason} ({count:,} URLs went on without it); fix the plugin"})
    for text in report.first_lines(tasks, results):
        run.tell({"event": "note", "text": text})
    if errors is not None:
        report.write_all(errors, tasks, results, files)
    return run.crawl.engine.read([files.url(r["path"]) for r in results if r["path"]], tasks[0].target.schema)


def _refuse_if_all_bad(run: Run) -> None:
    counters = run.record.counters
    if not counters["seeds"]:
        run.tell({"event": "note", "text": "there are no seeds in the input: only comments, empty lines, or nothing"})
    elif counters["seeds"] == counters.get("rejected", 0) + counters.get("filtered", 0):
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in run.record.drops.items())
        raise UsageError(f"none of the seeds can be taken ({reasons}); nothing was changed")


def _distinct(run: Run, staged: ir.Table) -> ir.Table:
    """The first of equal URLs; the others are counted."""
    keys = staged.select(*run.tables[TABLE].key)
    total, distinct = (_one(run, rows.aggregate(n=rows.count()))["n"] for rows in (keys, keys.distinct()))
    run.count(duplicates=total - distinct)
    run.drop("same URL earlier in the input", total - distinct)
    if distinct == total:
        return staged
    first = ibis.row_number().over(group_by=keys.columns, order_by=changes.ORDER)
    numbered = staged.mutate(_nth=first)
    return numbered.filter(numbered["_nth"] == 0).drop("_nth")


def _remember(run: Run, seeds: ir.Table) -> None:
    """Where the crawl stays in the scope of its seeds, tell the rules about these; to tell them twice does no harm."""
    scope = run.crawl.settings.filters.scope
    if scope == "any":
        return
    named = seeds.select("url" if scope == "seed" else "host").distinct()
    found = run.crawl.engine.collect(named).column(0).to_pylist()
    load_rules(run.crawl, found if scope == "seed" else [f"http://{host}/" for host in found])


def _write(run: Run, seeds: ir.Table, update: bool) -> None:
    """Write what is new, and what known URLs learn; count the rest."""
    table = run.tables[TABLE]
    rows, known, learned = seeds.select(*table.names), 0, {What.TAGGED: 0, What.UPDATED: 0}
    if run.snapshot.sets(TABLE):
        looked = _look_up(run, seeds, update)
        what = looked[changes.WHAT]
        counts = _one(run, looked.aggregate(n=looked.count(), **{w.name: (what == w.value).sum() for w in learned}))
        known, learned = counts["n"], {w: counts[w.name] or 0 for w in learned}
        rows = rows.anti_join(looked, list(table.key))
        if any(learned.values()):
            rows = ibis.union(rows, looked.filter(what != What.KNOWN.value).select(*table.names))
    target = run.target(table)
    entries = run.crawl.engine.write(rows, target)
    if entries:
        run.add(table, target, entries, delta=True)
    injected = sum(entry.rows for entry in entries) - sum(learned.values())
    run.count(injected=injected, known=known - learned[What.UPDATED], updated=learned[What.UPDATED])


def _look_up(run: Run, seeds: ir.Table, update: bool) -> ir.Table:
    """The seeds that the crawldb knows, as change set rows with what became of each."""
    table = run.tables[TABLE]
    known = run.table(TABLE, among=seeds.select(*table.key))
    known = known if update else known.select(*table.key, "url", "seed")
    told = seeds.select(
        **{f"_{key}": seeds[key] for key in table.key}, **{new: seeds[name] for new, name in changes.TOLD.items()}
    )
    both = known.inner_join(told, [(key, f"_{key}") for key in table.key]).select(*known.columns, *changes.TOLD)
    fn = partial(changes.known_rows, table=table, now=run.clock.now, update=update)
    return run.crawl.engine.map_batches(both, fn, changes.known_schema(table))


def _one(run: Run, one_row: ir.Table) -> dict[str, Any]:
    """The only row of an aggregation."""
    row: dict[str, Any] = run.crawl.engine.collect(one_row).to_pylist()[0]
    return row
