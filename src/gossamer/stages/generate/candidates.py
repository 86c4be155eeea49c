"""Finding candidates in one group of shards, inside a worker: fold, due, free, score, the best within their host's limit.

Only the columns that decide are read, of all rows; the rest follows in `rows` for the few that are chosen. A shard's
best N, with at most `limit` of a host, contain all of it that the whole crawl's best N can contain.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.stages.generate.best import best, best_within, order_key_of, tie_of
from gossamer.stages.generate.hosts import HostFacts, Limits
from gossamer.stages.generate.score import Context, Scored, Scorer, run_chain
from gossamer.storage.files import Files
from gossamer.storage.parquet import FileEntry, Target, write_part
from gossamer.tables.fold import ShardFiles, finished, fold, folded_deltas, key_pairs, read_columns
from gossamer.tables.spec import TIMESTAMP, Table
from gossamer.tables.statuses import Status
from gossamer.urls.chain import UrlChain

DECIDING = ("domain_fp", "url_fp", "host", "status", "next_fetch", "updated_at", "linked_at")
ROW = "_row"  # place in the base, or behind it among the new keys of the change sets
NOT_DUE, IN_BATCH, LEFT_ALONE, UNLISTED = "not due", "in a live batch", "host is left alone", "not in the list"
BELOW, OVER_LIMIT, TWICE = "below the top", "over the limit of its host", "fingerprint of another URL"
CHOSEN = "chosen"
FAILED = "! "  # marks a row of the report that tells of a plugin
FACTS = ("status", "useful", "rank", "cash", "inlinks", "depth", "next_fetch", "interval_s")


@dataclass(frozen=True)
class CandidateTask:
    """One group of shards to look for candidates in."""

    number: int
    shard: ShardFiles
    table: Table
    now: datetime
    seed: int  # of the random order among equals
    limits: Limits
    scorers: tuple[Scorer, ...]
    context: Context
    target: Target
    live: tuple[FileEntry, ...] = ()  # fetchlists whose URLs are taken
    hosts: tuple[FileEntry, ...] = ()  # what is known of hosts
    only: tuple[FileEntry, ...] | None = None  # the URLs to choose from, due or not
    chain: UrlChain | None = None  # filters to pass
    by_host: bool = False  # report for each host
    known_only: bool = False  # only URLs of the base: change sets do not say which class of pages a URL is in


def candidate_schema(task_table: Table, scorers: tuple[Scorer, ...]) -> pa.Schema:
    """Rows a task gives: key, place, limit, score with its parts, and the facts that were read."""
    fields: list[tuple[str, pa.DataType]] = [(n, pa.int64()) for n in ("domain_fp", "url_fp", ROW, "task")]
    fields += [("host", pa.string()), ("group", pa.int64()), ("address", pa.string()), ("limit", pa.int64())]
    fields += [("score", pa.float64()), ("tie", pa.int64())]
    fields += [(f"part_{scorer.name}", pa.float64()) for scorer in scorers]
    fields += [(name, task_table.column(name).type) for name in FACTS]
    return pa.schema(fields)


RESULT = pa.schema(
    [("path", pa.string()), ("host", pa.string()), ("reason", pa.string()), ("urls", pa.int64())]
)  # a file of candidates, or how many URLs (of a host) met which fate


def find_candidates(task: CandidateTask) -> pa.Table:
    """Write the group's candidates to scratch; its file, and why the other URLs are not in it."""
    rows = deciding_rows(task)
    fates = Fates(rows.num_rows)
    hosts = _facts(task, rows) if _asks_hosts(task) else None
    due = _due(task, rows, fates, hosts)
    chosen, scored = _best(task, rows, due, fates, hosts)
    entry = write_part(task.target, [_output(task, rows, chosen, scored, hosts)], 0, task.number)
    found = [{"path": entry.path if entry else "", "host": "", "reason": "", "urls": entry.rows if entry else 0}]
    told = fates.by_host(hosts) if task.by_host and hosts else fates.totals()
    found += [{"path": "", **fate} for fate in told]
    errors = [f"scorer {name} failed ({why})" for name, why in scored.failed.items()]
    found += [{"path": "", "host": "", "reason": f"{FAILED}{text}", "urls": len(due)} for text in errors]
    return pa.Table.from_pylist(found, RESULT)


def _asks_hosts(task: CandidateTask) -> bool:
    """Whether anything depends on hosts; if not, only those of the chosen are looked at."""
    return bool(task.limits.limited or task.hosts or task.by_host or task.limits.per == "ip")


def _facts(task: CandidateTask, rows: pa.Table) -> HostFacts:
    return HostFacts.of(task.limits, task.target.files, task.hosts, rows.column("host"))


class Fates:
    """What became of each row: a code per row, a name per code."""

    def __init__(self, rows: int) -> None:
        self.names = [CHOSEN]
        self.codes = np.zeros(rows, np.int16)

    def set(self, at: np.ndarray, reason: str) -> None:
        """Note a fate for some rows (a mask or places)."""
        if reason not in self.names:
            self.names.append(reason)
        self.codes[at] = self.names.index(reason)

    def totals(self) -> list[dict[str, Any]]:
        """How many rows met each fate."""
        counts = np.bincount(self.codes, minlength=len(self.names))
        return [{"host": "", "reason": name, "urls": int(n)} for name, n in zip(self.names, counts, strict=True) if n]

    def by_host(self, hosts: HostFacts) -> list[dict[str, Any]]:
        """How many rows of each host met each fate."""
        kinds = len(self.names)
        counts = np.bincount(hosts.codes.astype(np.int64) * kinds + self.codes, minlength=kinds * len(hosts.names))
        return [
            {"host": hosts.names[at // kinds], "reason": self.names[at % kinds], "urls": int(counts[at])}
            for at in np.flatnonzero(counts).tolist()
        ]


def deciding_rows(task: CandidateTask) -> pa.Table:
    """All rows of the group with the columns that decide, in the order of the base, then the new ones."""
    wanted = {*DECIDING, *FACTS, *(name for scorer in task.scorers for name in scorer.columns)}
    names = [name for name in task.table.names if name in wanted]
    schema = task.table.schema
    rows = read_columns(task.shard.files, task.shard.base, names, schema, texts=("host",)).unify_dictionaries()
    deltas = folded_deltas(task.shard, task.table, names)
    if deltas is not None:
        hosts = deltas.column("host").dictionary_encode()
        rows = fold(task.table, rows, deltas.set_column(deltas.column_names.index("host"), "host", hosts))
    rows = rows.append_column(ROW, pa.array(np.arange(rows.num_rows)))
    return finished(rows.slice(0, sum(entry.rows for entry in task.shard.base)) if task.known_only else rows)


def _due(task: CandidateTask, rows: pa.Table, fates: Fates, hosts: HostFacts | None) -> np.ndarray:
    """Places of the rows that may be chosen; the fate of the others is noted."""
    free = np.ones(rows.num_rows, bool)

    def lose(mask: np.ndarray, reason: str) -> None:
        fates.set(free & mask, reason)
        free[mask] = False

    if task.only is not None:
        lose(~_listed(task.target.files, task.only, rows), UNLISTED)
    else:
        lose(~_is_due(task.now, rows), NOT_DUE)
    if task.live:
        lose(_listed(task.shard.files, task.live, rows), IN_BATCH)
    if hosts is not None and hosts.away.any():
        lose(hosts.away[hosts.codes], LEFT_ALONE)
    if task.chain is not None:
        at, twice = _once(rows, np.flatnonzero(free))
        fates.set(twice, TWICE)
        free[twice] = False
        reasons = _filtered(task, rows, at)
        for reason in pc.unique(reasons.drop_null()).to_pylist():
            same = at[pc.equal(reasons, reason).fill_null(False).to_numpy(zero_copy_only=False)]
            fates.set(same, f"filter: {reason}")
            free[same] = False
    return np.flatnonzero(free)


def _is_due(now: datetime, rows: pa.Table) -> np.ndarray:
    """Due by the clock, never scheduled, or gone and linked since."""
    moment = pa.scalar(now, TIMESTAMP)
    by_clock = pc.less_equal(rows.column("next_fetch"), moment).fill_null(True)
    linked = pc.greater(rows.column("linked_at"), rows.column("updated_at")).fill_null(False)
    back = pc.and_(pc.equal(rows.column("status"), Status.GONE.value).fill_null(False), linked)
    return np.asarray(pc.or_(by_clock, back).combine_chunks().to_numpy(zero_copy_only=False))


def _listed(files: Files, entries: tuple[FileEntry, ...], rows: pa.Table) -> np.ndarray:
    """Which rows are among the URLs of some files, by both fingerprints."""
    names = ("domain_fp", "url_fp")
    schema = pa.schema([(name, pa.int64()) for name in names])
    listed = read_columns(files, entries, names, schema)
    found = np.zeros(rows.num_rows, bool)
    maybe = np.flatnonzero(
        pc.is_in(rows.column("url_fp"), listed.column("url_fp").combine_chunks())
        .combine_chunks()
        .to_numpy(zero_copy_only=False)
    )
    own = rows.select(list(names)).take(pa.array(maybe))
    found[maybe] = pc.is_in(key_pairs(own), key_pairs(listed)).to_numpy(zero_copy_only=False)
    return found


def _filtered(task: CandidateTask, rows: pa.Table, at: np.ndarray) -> pa.Array:
    """Why the filters of today refuse some rows, or NULL."""
    from gossamer.stages.generate.rows import urls_of

    assert task.chain is not None
    chosen = rows.take(pa.array(at))
    urls = urls_of(task.shard, task.table, chosen)
    return task.chain.filter(urls, "generate", chosen.column("depth").combine_chunks())


def _best(
    task: CandidateTask, rows: pa.Table, due: np.ndarray, fates: Fates, hosts: HostFacts | None
) -> tuple[np.ndarray, Scored]:
    """Places of the best rows, best first, with their scores; more are looked at until enough pass their limits."""
    names = sorted({*FACTS, *(name for scorer in task.scorers for name in scorer.columns)})
    facts = rows.select(names)
    facts = facts if len(due) == rows.num_rows else facts.take(pa.array(due))
    columns = [c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in facts.columns]
    batch = pa.RecordBatch.from_arrays([c.combine_chunks() for c in columns], names)
    scored = run_chain(task.scorers, batch, task.context)
    order_key = order_key_of(scored.score, tie_of(rows.column("url_fp").to_numpy()[due], task.seed))
    if hosts is None:
        kept, over = best(order_key, task.limits.needed), np.empty(0, np.int64)
    else:
        groups = hosts.groups_of(due, rows.column("domain_fp").to_numpy()[due])
        kept, over = best_within(order_key, groups, hosts.limits_of_all(groups), task.limits.needed)
    fates.set(due, BELOW)
    fates.set(due[over], OVER_LIMIT)
    chosen, twice = _once(rows, due[kept])
    fates.set(twice, TWICE)
    fates.set(chosen, CHOSEN)
    kept = kept[np.isin(due[kept], chosen)]
    parts = {name: values[kept] for name, values in scored.parts.items()}
    return due[kept], Scored(scored.score[kept], parts, scored.failed)


def _once(rows: pa.Table, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places without those whose fingerprints came before: another URL that was made to collide."""
    both = np.stack([rows.column(name).to_numpy()[places] for name in ("domain_fp", "url_fp")], axis=1)
    _, first = np.unique(both, axis=0, return_index=True)
    again = np.ones(len(places), bool)
    again[first] = False
    return places[~again], places[again]


def _output(
    task: CandidateTask, rows: pa.Table, at: np.ndarray, scored: Scored, hosts: HostFacts | None
) -> pa.RecordBatch:
    """The candidates as rows."""
    own = rows.take(pa.array(at))
    count = len(at)
    if hosts is None:
        hosts, of = _facts(task, own), np.arange(count)
    else:
        of = at
    codes = hosts.codes[of]
    groups = hosts.groups_of(of, own.column("domain_fp").to_numpy())
    given: dict[str, Any] = {
        "task": pa.repeat(task.number, count),
        "host": pa.array([hosts.names[c] for c in codes], pa.string()),
        "group": pa.array(groups),
        "address": pa.array([hosts.addresses[c] for c in codes], pa.string()),
        "limit": pa.array(hosts.limits_of(groups)),
        "score": pa.array(scored.score),
        "tie": pa.array(tie_of(own.column("url_fp").to_numpy(), task.seed).astype(np.int64)),
        **{f"part_{name}": pa.array(values) for name, values in scored.parts.items()},
        **{name: own.column(name) for name in ("domain_fp", "url_fp", ROW, *FACTS)},
    }
    schema = candidate_schema(task.table, task.scorers)
    columns = [c.combine_chunks() if isinstance(c := given[f.name], pa.ChunkedArray) else c for f in schema]
    return pa.RecordBatch.from_arrays([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
