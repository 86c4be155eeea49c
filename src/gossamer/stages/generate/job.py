"""generate: crawldb → fetchlists, one per batch: the best URLs that are due, free and within their host's limit.

Every group of shards is searched in a worker of its own for the columns that decide; the candidates meet in one small
relation; only for the chosen are the other columns read. What a batch will need later it carries along, so update need
not look anything up.
"""

from __future__ import annotations

import math
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import ibis
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.errors import GossamerError, PluginError, SettingsError, UsageError, VersionError
from gossamer.stages.generate.batches import LIVE, batches
from gossamer.stages.generate.candidates import (
    CHOSEN,
    FAILED,
    ROW,
    CandidateTask,
    candidate_schema,
    find_candidates,
)
from gossamer.stages.generate.hosts import HOST_FACTS, Limits
from gossamer.stages.generate.rows import Form, RowsTask, make_rows
from gossamer.stages.generate.score import Context, Scorer
from gossamer.stages.generate.select import settle, take_batches
from gossamer.stages.rewrite.job import tasks_for
from gossamer.storage.parquet import FileEntry, Target, entries_of, write_part
from gossamer.storage.snapshots import read_manifest
from gossamer.tables.fold import ShardFiles
from gossamer.tables.frequency import CLASSES
from gossamer.tables.read import Group
from gossamer.urls import keys

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.runner import Run

MOST, MOST_BATCHES = 10**12, 1000
SEGMENT = re.compile(r"r([0-9]{6,})-[0-9]+")
GARBLED = "\ufffd"


@dataclass(frozen=True)
class Options:
    """What the caller asks for."""

    top: int
    batches: int = 1
    hours: float = 0.0
    urls: str | None = None
    by_host: bool = False
    frequency: str | None = None

    def __post_init__(self) -> None:
        if not (1 <= self.top <= MOST and 1 <= self.batches <= MOST_BATCHES):
            raise UsageError(f"choose from 1 to {MOST:,} URLs for a batch, and from 1 to {MOST_BATCHES:,} batches")
        if not (math.isfinite(self.hours) and self.hours >= 0):
            raise UsageError(f"{self.hours} hours: choose a number from 0 up; 0: any time")
        if self.urls == "":
            raise UsageError("the list of URLs has no name; check the path")
        if self.frequency is not None and self.frequency not in CLASSES:
            raise UsageError(f"--class {self.frequency}: choose from {', '.join(CLASSES)}")


@dataclass(frozen=True)
class Choice:
    """What was chosen for each batch, and what became of all URLs, by host if that was wanted."""

    batches: list[list[FileEntry]]
    fates: Counter[tuple[str, str]]
    shards: list[ShardFiles]
    scorers: tuple[Scorer, ...]
    schema: pa.Schema
    rules_version: int


def run(
    run: Run, top: int, batches: int, hours: float, urls: str | None, frequency: str | None, **_: str | float
) -> None:
    """Make batches; other arguments are there for the record, such as how long the batches hold their URLs."""
    with _scratch(run) as scratch:
        choice = choose(run, Options(top, batches, hours, urls, frequency=frequency), scratch)
        for reason, count in sorted(totals(choice.fates).items()):
            run.count(urls=count)
            if reason != CHOSEN:
                run.drop(reason, count)
                run.count(left_out=count)
        for number, entries in enumerate(choice.batches, 1):
            segment = segment_name(run, number)
            run.phase(f"write {segment}")
            rows = _complete(run, choice, entries, scratch, segment)
            run.count(listed=run.write("fetchlist", rows, segment=segment))
            run.mark(segment)


def plan(run: Run, options: Options) -> Counter[tuple[str, str]]:
    """What a run would choose, by host, and why it would not choose the rest; nothing is written."""
    try:
        with _scratch(run) as scratch:
            return choose(run, replace(options, by_host=True), scratch).fates
    finally:
        run.tell({"event": "planned"})


@contextmanager
def _scratch(run: Run) -> Iterator[str]:
    folder = f"scratch/{run.record.run}/{run.record.attempt}"
    try:
        yield folder
    finally:
        with suppress(GossamerError):  # what cannot be removed now is collected later
            run.crawl.files.delete(*(path for path, _ in run.crawl.files.list(folder)))


def segment_name(run: Run, number: int) -> str:
    """`r<round>-<n>`: the round after the last one there was."""
    rounds = [int(found[1]) for name in run.snapshot.segments if (found := SEGMENT.fullmatch(name))]
    return f"r{max(rounds, default=0) + 1:06d}-{number}"


def totals(fates: Counter[tuple[str, str]]) -> Counter[str]:
    """Fates of all hosts together."""
    counts: Counter[str] = Counter()
    for (_, reason), count in fates.items():
        counts[reason] += count
    return counts


def choose(run: Run, options: Options, scratch: str) -> Choice:
    """Search every group of shards, then take the best of all."""
    if run.snapshot.sets("crawldb"):
        run.record.inputs["crawldb"] = [s.folder for s in run.snapshot.sets("crawldb")]
    shards = shard_files(run, options.frequency)
    scorers = chosen_scorers(run)
    schema = candidate_schema(run.tables["crawldb"], scorers)
    run.phase(f"search {sum(s.rows for s in run.snapshot.sets('crawldb')):,} rows")
    tasks = _tasks(run, options, scratch, shards, scorers, schema)
    results = run.crawl.engine.run_tasks(tasks, find_candidates).to_pylist()
    fates: Counter[tuple[str, str]] = Counter()
    for row in results:
        if row["reason"] and not row["reason"].startswith(FAILED):
            fates[row["host"], row["reason"]] += row["urls"]
    failures = [row["reason"].removeprefix(FAILED) for row in results if row["reason"].startswith(FAILED)]
    if failures:
        run.count(plugin_errors=len(failures))
    for text in dict.fromkeys(failures):
        run.tell({"event": "note", "text": f"{text}; it was passed over"})
    files = [run.crawl.files.url(row["path"]) for row in results if row["path"]]
    run.phase("choose")
    candidates = run.crawl.engine.read(files, schema)
    target = Target(run.crawl.files, scratch, schema, (ROW,), "url_fp", len(shards), run.record.attempt)
    chosen = take_batches(run.crawl.engine, candidates, _limits(run, options), target)
    settle(run.crawl.engine, chosen, _limits(run, options), target, fates, options.by_host)
    return Choice(chosen.batches, fates, shards, scorers, schema, run.url_chain().rules.version)


def shard_files(run: Run, frequency: str | None) -> list[ShardFiles]:
    """The files of the crawldb, by group of shards; with a frequency only those of its class of pages."""
    sets = run.snapshot.sets("crawldb")
    if any(s.version != run.tables["crawldb"].version for s in sets):
        raise VersionError("the crawldb was written with another schema version; run `gossamer migrate` first")
    groups = min(run.snapshot.shards, tasks_for(sum(s.rows for s in sets), run.crawl.engine.workers))
    listed = [(s, read_manifest(run.crawl.files, s)) for s in sets]
    found = []
    for number in range(groups):
        group = Group(number, groups)
        base = [e for s, entries in listed if not s.delta for e in entries if group.holds(e.shard)]
        if frequency:
            base = [e for e in base if e.kind == frequency]
        deltas = [[e for e in entries if group.holds(e.shard)] for s, entries in listed if s.delta]
        found.append(ShardFiles(run.crawl.files, tuple(base), tuple(tuple(d) for d in deltas)))
    return found


def chosen_scorers(run: Run) -> tuple[Scorer, ...]:
    """The chain the settings name."""
    from gossamer.plugins.manager import scorers

    known = {scorer.name: scorer for scorer in scorers(run.crawl.plugins)}
    settings = run.crawl.settings.score
    for key, names in (("chain", settings.chain), ("weights", settings.weights)):
        for name in names:
            if name not in known:
                raise SettingsError(f"score.{key}: there is no scorer {name}; there are {', '.join(known)}")
    for name, weight in settings.weights.items():
        if not 0 <= weight <= 1:
            raise SettingsError(f"score.weights: {name} = {weight}; choose a number from 0 to 1")
    twice = [name for name, count in Counter(settings.chain).items() if count > 1]
    if twice:
        raise SettingsError(f"score.chain: {twice[0]} is there twice; name each scorer once")
    for scorer in (known[name] for name in settings.chain):
        missing = [name for name in scorer.columns if name not in run.tables["crawldb"].names]
        if missing:
            raise PluginError(
                f"scorer {scorer.name}: the crawldb has no column {missing[0]}; declare it, or correct it"
            )
    return tuple(known[name] for name in settings.chain)


def _tasks(
    run: Run, options: Options, scratch: str, shards: list[ShardFiles], scorers: tuple[Scorer, ...], schema: pa.Schema
) -> list[CandidateTask]:
    settings = run.crawl.settings
    first = CandidateTask(
        number=0,
        shard=shards[0],
        table=run.tables["crawldb"],
        now=run.clock.now,
        seed=keys.fingerprint(segment_name(run, 1)),
        limits=_limits(run, options),
        scorers=scorers,
        context=Context(run.clock.now, settings.score),
        target=Target(run.crawl.files, f"{scratch}/candidates", schema, attempt=run.record.attempt),
        live=_live(run),
        hosts=_hosts(run, scratch),
        only=_only(run, options.urls, scratch) if options.urls else None,
        chain=run.url_chain() if settings.generate.filter else None,
        by_host=options.by_host,
        known_only=options.frequency is not None,
    )
    return [replace(first, number=number, shard=shard) for number, shard in enumerate(shards)]


def _limits(run: Run, options: Options) -> Limits:
    generate = run.crawl.settings.generate
    return Limits(
        options.top,
        generate.per,
        generate.max_per,
        options.hours * 3600,
        run.crawl.settings.fetch.delay_ms,
        options.batches,
    )


def _live(run: Run) -> tuple[FileEntry, ...]:
    """Files of the lists whose URLs are taken."""
    live = {b.segment for b in batches(run.crawl.files, run.snapshot, run.clock.now) if b.state == LIVE}
    sets = [s for s in run.snapshot.sets("fetchlist") if s.segment in live]
    run.record.inputs["fetchlist"] = [s.folder for s in sets]
    return tuple(entry for s in sets for entry in read_manifest(run.crawl.files, s))


def _hosts(run: Run, scratch: str) -> tuple[FileEntry, ...]:
    """What is known of hosts, in a small file for the workers."""
    if not run.snapshot.sets("hosts"):
        return ()
    hosts = run.table("hosts")
    now = ibis.literal(run.clock.now, "timestamp('UTC', 6)")
    rows = hosts.select(
        "host_fp",
        "domain_fp",
        delay_ms=ibis.greatest(hosts.crawl_delay_ms, hosts.delay_ms).cast("int64"),
        latency_ms=hosts.latency_ms.cast("int64"),
        away=(hosts.given_up_until > now).fill_null(False),
        address=hosts.address,
    )
    target = Target(run.crawl.files, f"{scratch}/hosts", HOST_FACTS, attempt=run.record.attempt)
    return tuple(run.crawl.engine.write(rows, target))


def _only(run: Run, path: str, scratch: str) -> tuple[FileEntry, ...]:
    """The URLs a file lists, as keys."""
    lines, garbled = _lines(path)
    checked = run.url_chain().normalize(pa.array(lines, pa.string()), "generate")
    run.drop("listed URL: not UTF-8", garbled)
    for reason, count in Counter(checked.reason.drop_null().to_pylist()).items():
        run.drop(f"listed URL: {reason}", count)
    found = keys.url_columns(pc.unique(checked.url.drop_null()))
    run.count(asked=len(found["url"]))
    table = pa.table({name: found[name] for name in ("domain_fp", "url_fp")})
    target = Target(run.crawl.files, f"{scratch}/only", table.schema, attempt=run.record.attempt)
    entry = write_part(target, table.combine_chunks().to_batches(), 0, 0)
    if entry is None:
        raise UsageError(f"{path}: there is no URL in it; write one a line")
    return (entry,)


def _lines(path: str) -> tuple[list[str], int]:
    """The lines of a list that are no comments, and how many are not UTF-8."""
    try:
        raw = Path(path).read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; check the path") from error
    texts = [line.decode("utf-8", "replace").strip() for line in raw.split(b"\n")]
    wanted = [text for text in texts if text and not text.startswith("#")]
    good = [text for text in wanted if GARBLED not in text]
    return good, len(wanted) - len(good)


def _complete(run: Run, choice: Choice, entries: list[FileEntry], scratch: str, segment: str) -> ir.Table:
    """The rows of a fetchlist."""
    settings = run.crawl.settings.generate
    fetchlist = run.tables["fetchlist"]
    target = Target(run.crawl.files, f"{scratch}/{segment}", fetchlist.schema, attempt=run.record.attempt)
    form = Form(segment, settings.per, settings.partitions, choice.rules_version, tuple(s.name for s in choice.scorers))
    tasks = [
        RowsTask(e.shard, choice.shards[e.shard], run.tables["crawldb"], e, choice.schema, target, form)
        for e in entries
    ]
    made = entries_of(run.crawl.engine.run_tasks(tasks, make_rows))
    return run.crawl.engine.read([run.crawl.files.url(e.path) for e in made], fetchlist.schema)
