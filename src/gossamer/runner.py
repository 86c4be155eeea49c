"""Runs a stage by the map: lease, inputs by snapshot, clock, counters, balance, publish, `runs/<run>.json`.

Resume is the same command again: an interrupted run keeps its id and its clock as long as the snapshot it started from
is still the latest and its arguments are the same; a run that was killed after publishing is found done.
"""

from __future__ import annotations

import importlib
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gossamer import __version__
from gossamer.clock import Clock, format_time, parse_time
from gossamer.errors import BalanceError, GossamerError, UsageError
from gossamer.events import Stopwatch
from gossamer.pipeline import ANY, STAGES, Stage, balanced
from gossamer.settings import value_of, walk
from gossamer.storage import leases, runs, snapshots
from gossamer.storage.parquet import DELETED, FileEntry, Target
from gossamer.storage.runs import RunRecord
from gossamer.storage.snapshots import Change, FileSet, Snapshot
from gossamer.tables.extra import to_document
from gossamer.tables.read import Source, layout_of
from gossamer.tables.spec import Kind, Table

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.crawl import Crawl
    from gossamer.events import Event
    from gossamer.urls.chain import UrlChain

SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # a folder name and part of a run's
LOOK_BACK = 20  # snapshots searched for a run that was killed just after publishing


@dataclass
class Run:
    """What a job works with: inputs, outputs, clock and counters of one run."""

    crawl: Crawl
    stage: Stage
    record: RunRecord
    snapshot: Snapshot
    tables: dict[str, Table]
    clock: Clock
    watch: Stopwatch = field(default_factory=Stopwatch)
    appended: dict[str, tuple[FileSet, ...]] = field(default_factory=dict)
    replaced: dict[str, tuple[FileSet, ...]] = field(default_factory=dict)
    shards: int | None = None  # set by reshard
    marks: dict[str, tuple[str, ...]] = field(default_factory=dict)  # segment → what this run did to it
    after: list[Callable[[], None]] = field(default_factory=list)  # done when all is published; may be lost in a crash

    @property
    def source(self) -> Source:
        """The crawl as it was when the run began."""
        return Source(self.crawl.engine, self.crawl.files, self.snapshot, self.tables, self.crawl.verified)

    def table(self, name: str, *, segment: str | None = None, among: ir.Table | None = None) -> ir.Table:
        """An input table, perhaps only the rows `among` some keys; only tables the map names may be read."""
        if name not in self.stage.reads and self.stage.reads != ANY:
            raise UsageError(f"stage {self.stage.name} does not read {name}; add it to its entry in pipeline.py")
        self.record.inputs[name] = [s.folder for s in self.snapshot.sets(name, segment)]
        return self.source.table(name, segment=segment, among=among)

    def target(
        self,
        table: Table,
        *,
        segment: str | None = None,
        shards: int | None = None,
        deletes: bool = False,
        part: str = "",
    ) -> Target:
        """Where this run writes a table's files; `part` tells several change sets of one run apart."""
        schema = table.schema.append(pa.field(DELETED, pa.bool_())) if deletes else table.schema
        folder = f"segments/{segment}/{table.name}" if segment else f"tables/{table.name}"
        return Target(
            self.crawl.files,
            f"{folder}/{self.record.run}" + (f"/{part}" if part else ""),
            schema,
            table.order,
            table.shard_by,
            (shards or self.snapshot.shards) if table.shard_by else 1,
            self.record.attempt,
            table.key if set(table.key) <= set(table.order) else (),
            {"gossamer.table": table.name, "gossamer.version": str(table.version), "gossamer.run": self.record.run},
        )

    def write(
        self,
        name: str,
        rows: ir.Table,
        *,
        segment: str | None = None,
        delta: bool = False,
        deletes: bool = False,
        columns: tuple[str, ...] = (),
        part: str = "",
    ) -> int:
        """Write rows of a table: a change set when `delta` (which may delete), else instead of what is there.

        A change set may have some of the `columns` only; the others are NULL when it is read.
        """
        table = self.tables[name].narrowed(columns) if columns else self.tables[name]
        target = self.target(table, segment=segment, deletes=deletes, part=part)
        entries = self.crawl.engine.write(rows, target)
        self.add(table, target, entries, delta=delta, segment=segment)
        return sum(entry.rows for entry in entries)

    def add(
        self, table: Table, target: Target, entries: list[FileEntry], *, delta: bool = False, segment: str | None = None
    ) -> None:
        """Take written files into what will be published."""
        if table.name not in self.stage.writes and self.stage.writes != ANY:
            raise UsageError(f"stage {self.stage.name} does not write {table.name}; add it to its entry in pipeline.py")
        if delta and table.kind is not Kind.KEYED:
            raise UsageError(f"{table.name} takes no change sets; it is written as a whole")
        snapshots.write_manifest(self.crawl.files, target.folder, entries, self.record.attempt)
        file_set = FileSet(
            target.folder,
            table.version,
            sum(e.rows for e in entries),
            sum(e.bytes for e in entries),
            len(entries),
            delta,
            sum(e.deletes for e in entries),
            segment,
            layout_of(table.schema),
            self.record.attempt,
        )
        into = self.appended if delta else self.replaced
        into[table.name] = (*into.get(table.name, ()), file_set)

    def url_chain(self) -> UrlChain:
        """Normalisers and filters by the rules in force, whose version the record keeps."""
        from gossamer.urls.chain import url_chain

        chain = url_chain(self.crawl)
        self.record.rules_version = chain.rules.version
        return chain

    def mark(self, segment: str) -> None:
        """Say that this stage was applied to a segment."""
        self.marks[segment] = (self.stage.name,)

    def count(self, **counters: int) -> None:
        """Add to the counters of the balance equation."""
        for name, value in counters.items():
            self.record.counters[name] = self.record.counters.get(name, 0) + int(value)

    def drop(self, reason: str, rows: int) -> None:
        """Record that rows were left out, and why."""
        if rows:
            self.record.drops[reason] = self.record.drops.get(reason, 0) + int(rows)

    def phase(self, name: str) -> None:
        """Say what is done now."""
        self.watch.phase(name)
        self.tell({"event": "phase", "phase": name})

    def tell(self, event: Event) -> None:
        """Report an event of this run."""
        head = {"event": event["event"], "stage": self.stage.name, "run": self.record.run}
        failures = self.crawl.tell(head | event)
        if failures:
            self.count(plugin_errors=failures)


def run_stage(crawl: Crawl, name: str, arguments: dict[str, Any], segment: str | None = None) -> RunRecord:
    """Run one stage to its end and return its record."""
    if name not in STAGES:
        raise UsageError(f"there is no stage {name}; choose from {', '.join(STAGES)}")
    if segment is not None and not SEGMENT.fullmatch(segment):
        raise UsageError(f"segment {segment!r}: use letters, digits, dots and dashes, beginning with a letter or digit")
    stage = STAGES[name]
    title = f"{name}-{segment}" if segment and not stage.alone else name
    lease = leases.acquire(crawl.files, title, {"stage": name, "segment": segment})
    try:
        found = _published_before(crawl, stage, arguments, segment)
        if found is not None:
            text = f"run {found.run} was published as snapshot {found.published} before it was interrupted; nothing left to do"
            crawl.tell({"event": "note", "stage": name, "run": found.run, "text": text})
            return found
        run = _begin(crawl, stage, arguments, segment)
        lease.tell({"run": run.record.run, "snapshot": run.snapshot.id})
        return _carry_out(run, lease)
    finally:
        lease.release()


def rehearsal(crawl: Crawl, name: str, arguments: dict[str, Any]) -> Run:
    """A run that holds no lease, leaves no record and publishes nothing: to find out what a stage would do."""
    snapshot = snapshots.latest(crawl.files)
    record = RunRecord(
        f"plan-{uuid.uuid4().hex}", name, None, arguments, snapshot.id, format_time(crawl.clock().now), __version__
    )
    return Run(crawl, STAGES[name], record, snapshot, crawl.tables_at(snapshot), Clock(parse_time(record.now)))


def _begin(crawl: Crawl, stage: Stage, arguments: dict[str, Any], segment: str | None) -> Run:
    """A new run on the latest snapshot, or the interrupted one with its id, clock and next attempt."""
    snapshot = snapshots.latest(crawl.files)
    name = f"{snapshot.id:08d}-{stage.name}" + (f"-{segment}" if segment else "")
    before = runs.load(crawl.files, name)
    resumed = before is not None and before.arguments == arguments
    record = RunRecord(
        run=name,
        stage=stage.name,
        segment=segment,
        arguments=arguments,
        parent=snapshot.id,
        now=before.now if before and resumed else format_time(crawl.clock().now),
        version=__version__,
        settings={k: value_of(crawl.settings, k) for k, _, _ in walk() if crawl.origin[k] != "default"},
        attempt=before.attempt + 1 if before else 1,
        started=format_time(Clock.system().now),
    )
    run = Run(crawl, stage, record, snapshot, crawl.tables_at(snapshot), Clock(parse_time(record.now)))
    runs.save(crawl.files, record)
    run.tell(
        {"event": "start", "attempt": record.attempt, "resumed": resumed, "snapshot": snapshot.id, "now": record.now}
    )
    return run


def _carry_out(run: Run, lease: leases.Lease) -> RunRecord:
    """Do the job, check its balance, publish, and close the record."""
    module, function = run.stage.job.split(":")
    record = run.record
    try:
        getattr(importlib.import_module(module), function)(run, **record.arguments)
        check_balance(run.stage, record.counters)
        run.phase("publish")
        lease.check()
        record.published = snapshots.publish(run.crawl.files, _change(run), run.snapshot).id
    except Exception as error:
        _close(run, runs.FAILED, str(error) or type(error).__name__)
        run.tell({"event": "failed", "error": str(error), "exit_code": getattr(error, "exit_code", 1)})
        raise
    _close(run, runs.DONE)
    for last in run.after:
        last()
    run.tell(
        {
            "event": "done",
            "snapshot": record.published,
            "counters": record.counters,
            "drops": record.drops,
            "seconds": round(run.watch.seconds, 3),
        }
    )
    return record


def _close(run: Run, state: str, error: str = "") -> None:
    """Write the record's last state; when even that fails after an error, the error is what matters."""
    run.watch.phase(None)
    record = run.record
    record.state, record.error, record.phases = state, error, run.watch.phases
    record.ended = format_time(Clock.system().now)
    try:
        runs.save(run.crawl.files, record)
    except GossamerError:
        if not error:
            raise


def _change(run: Run) -> Change:
    """What the run publishes."""
    record = run.record
    carried = {c.name for name in {*run.appended, *run.replaced} for c in run.tables[name].columns if c.plugin}
    return Change(
        run=record.run,
        stage=run.stage.name,
        at=record.now,
        append=run.appended,
        replace=run.replaced,
        segments=run.marks | ({record.segment: (run.stage.name,)} if record.segment else {}),
        columns=[to_document(column) for column in run.tables["crawldb"].columns if column.name in carried],
        shards=run.shards,
        counters=record.counters,
    )


def check_balance(stage: Stage, counters: dict[str, int]) -> None:
    """Raise if the stage's equation does not hold."""
    if not balanced(stage.balance, counters):
        values = ", ".join(f"{name}={value:,}" for name, value in sorted(counters.items()))
        raise BalanceError(
            f"{stage.name}: {stage.balance} does not hold ({values}); nothing was published, please report this with the run record"
        )


def _published_before(crawl: Crawl, stage: Stage, arguments: dict[str, Any], segment: str | None) -> RunRecord | None:
    """A run of this very command that published but was stopped before it could say so; its record is closed now."""
    for snapshot in _history(crawl):
        if snapshot.stage != stage.name:
            continue
        record = runs.load(crawl.files, snapshot.run)
        if record is None or record.segment != segment:
            continue
        if record.published is None and record.arguments == arguments:
            crawl.files.settle(snapshots.FOLDER)
            record.state, record.published, record.error = runs.DONE, snapshot.id, ""
            record.counters = snapshot.counters
            record.ended = format_time(Clock.system().now)
            runs.save(crawl.files, record)
            return record
        return None
    return None


def _history(crawl: Crawl) -> Iterator[Snapshot]:
    """The latest snapshots whose content still holds, newest first; what was rolled back is passed over."""
    known = set(snapshots.numbers(crawl.files))
    number: int | None = max(known)
    for _ in range(LOOK_BACK):
        if number is None or number not in known:
            return
        snapshot = snapshots.load(crawl.files, number)
        if snapshot.restores is None:
            yield snapshot
        number = snapshot.parent if snapshot.restores is None else snapshot.restores
