"""Finding candidates in one group of shards, inside a worker: fold, due, free, score, the best within their host's limit.

Only the columns that decide are read, of all rows; the rest follows in `rows` for the few that are chosen. A shard's
best N, with at most `limit` of a host, contain all of it that the whole crawl's best N can contain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.stages.generate.score import Context, Scored, Scorer, run_chain
from gossamer.storage.files import Files
from gossamer.storage.parquet import FileEntry, Target, write_part
from gossamer.tables.fold import ShardFiles, finished, fold, folded_deltas, read_columns
from gossamer.tables.spec import TIMESTAMP, Table
from gossamer.tables.statuses import Status
from gossamer.urls import keys
from gossamer.urls.chain import UrlChain

DECIDING = ("domain_fp", "url_fp", "host", "status", "next_fetch", "updated_at", "linked_at")
ROW = "_row"  # place in the base, or behind it among the new keys of the change sets
NOT_DUE, IN_BATCH, LEFT_ALONE, UNLISTED = "not due", "in a live batch", "host is left alone", "not in the list"
BELOW, OVER_LIMIT, TWICE = "below the top", "over the limit of its host", "fingerprint of another URL"
CHOSEN = "chosen"
FAILED = "! "  # marks a row of the report that tells of a plugin
FACTS = ("status", "useful", "rank", "cash", "inlinks", "depth", "next_fetch", "interval_s")


@dataclass(frozen=True)
class Limits:
    """How many of what."""

    top: int
    per: str  # host, domain or ip
    max_per: int  # 0: any number
    seconds: float = 0.0  # the round must end in so long; 0: whenever
    delay_ms: int = 1000


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
    hosts = HostFacts.of(task, rows.column("host")) if _asks_hosts(task) else None
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
    return bool(task.limits.max_per or task.limits.seconds or task.hosts or task.by_host or task.limits.per == "ip")


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
            {"host": hosts.names[at // kinds] or "", "reason": self.names[at % kinds], "urls": int(counts[at])}
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


@dataclass(frozen=True)
class HostFacts:
    """For each row of a group its host's group, limit, address and whether it is left alone."""

    codes: np.ndarray  # which host, by row
    names: list[str]
    groups: np.ndarray  # by host: what limits go by (0: the row's domain)
    addresses: list[str | None]
    limits: np.ndarray
    away: np.ndarray = field(default_factory=lambda: np.empty(0, bool))

    @classmethod
    def of(cls, task: CandidateTask, column: pa.ChunkedArray) -> HostFacts:
        """Facts of the hosts in a column."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        encoded = column.unify_dictionaries().combine_chunks()
        codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        fps = keys.fingerprints(encoded.dictionary).to_numpy(zero_copy_only=False)
        known = _host_facts(task, fps)
        addresses: list[str | None] = known["address"]
        groups = fps
        if task.limits.per == "domain":
            groups = np.zeros_like(fps)
        elif task.limits.per == "ip":
            groups = np.array([keys.fingerprint(a) if a else 0 for a in addresses], np.int64)
        names = encoded.dictionary.to_pylist()
        return cls(codes, names, groups, addresses, _host_limits(task.limits, known), known["away"])


def _host_facts(task: CandidateTask, fps: np.ndarray) -> dict[str, Any]:
    """What the hosts table says of hosts, by fingerprint."""
    nothing = np.zeros(len(fps), np.int64)
    facts: dict[str, Any] = {
        "address": [None] * len(fps),
        "away": np.zeros(len(fps), bool),
        "delay": nothing + task.limits.delay_ms,
        "latency": nothing,
    }
    if not task.hosts:
        return facts
    known = read_columns(task.target.files, task.hosts, HOST_FACTS.names, HOST_FACTS)
    at = pc.index_in(pa.array(fps), known.column("host_fp").combine_chunks())
    have = at.is_valid().to_numpy(zero_copy_only=False)
    mine = known.take(at.drop_null())
    facts["delay"][have] = np.maximum(mine.column("delay_ms").fill_null(task.limits.delay_ms).to_numpy(), 0)
    facts["latency"][have] = np.maximum(mine.column("latency_ms").fill_null(0).to_numpy(), 0)
    facts["away"][have] = mine.column("away").fill_null(False).to_numpy()
    for place, address in zip(np.flatnonzero(have), mine.column("address").to_pylist(), strict=True):
        facts["address"][place] = address
    return facts


HOST_FACTS = pa.schema(
    [
        ("host_fp", pa.int64()),
        ("delay_ms", pa.int64()),
        ("latency_ms", pa.int64()),
        ("away", pa.bool_()),
        ("address", pa.string()),
    ]
)
NO_LIMIT = np.iinfo(np.int64).max


def _host_limits(limits: Limits, known: dict[str, Any]) -> np.ndarray:
    """How many URLs of each host fit: the cap, and what can be fetched in time at the host's pace."""
    most = np.full(len(known["delay"]), limits.max_per or NO_LIMIT, np.int64)
    if not limits.seconds:
        return most
    pace = np.maximum(known["delay"] + known["latency"], 1)
    return np.asarray(np.minimum(most, int(limits.seconds * 1000) // pace))


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
        at = np.flatnonzero(free)
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
    pairs = set(zip(*(listed.column(name).to_pylist() for name in names), strict=True))
    own = zip(*(rows.column(name).take(pa.array(maybe)).to_pylist() for name in names), strict=True)
    found[maybe] = [pair in pairs for pair in own]
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
    batch = pa.RecordBatch.from_arrays([c.combine_chunks() for c in facts.columns], schema=facts.schema)
    scored = run_chain(task.scorers, batch, task.context)
    order_key = _order_key(scored.score, tie_of(rows.column("url_fp").to_numpy()[due], task.seed))
    if hosts is None:
        kept, over = best(order_key, task.limits.top), np.empty(0, np.int64)
    else:
        limits = hosts.limits[hosts.codes[due]]
        kept, over = best_within(order_key, group_of(hosts, rows, due), limits, task.limits.top)
    kept, twice = _once(rows.select(["domain_fp", "url_fp"]).take(pa.array(due[kept])), kept)
    fates.set(due, BELOW)
    fates.set(due[twice], TWICE)
    fates.set(due[over], OVER_LIMIT)
    fates.set(due[kept], CHOSEN)
    parts = {name: values[kept] for name, values in scored.parts.items()}
    return due[kept], Scored(scored.score[kept], parts, scored.failed)


def _once(pairs: pa.Table, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places without those whose fingerprints came before: another URL that was made to collide."""
    both = np.stack([pairs.column(name).to_numpy() for name in ("domain_fp", "url_fp")], axis=1)
    _, first = np.unique(both, axis=0, return_index=True)
    again = np.ones(len(places), bool)
    again[first] = False
    return places[~again], places[again]


def best(order_key: np.ndarray, top: int) -> np.ndarray:
    """Places of the `top` highest keys, highest first."""
    some = np.arange(len(order_key))
    if top < len(order_key):
        some = np.argpartition(order_key, len(order_key) - top)[len(order_key) - top :]
    return some[np.argsort(order_key[some], kind="stable")[::-1]]


def best_within(
    order_key: np.ndarray, groups: np.ndarray, limits: np.ndarray, top: int
) -> tuple[np.ndarray, np.ndarray]:
    """Places of the `top` highest keys with at most `limits` of a group, highest first; and those over their limit."""
    looked = min(len(order_key), max(2 * top, 1024))
    while True:
        some = best(order_key, looked)
        fits = nth_of_group(groups[some]) < limits[some]
        if fits.sum() >= top or looked == len(order_key):
            return some[fits][:top], some[~fits]
        looked = min(len(order_key), looked * 4)


def nth_of_group(groups: np.ndarray) -> np.ndarray:
    """For each place, how many places before it have the same group."""
    order = np.argsort(groups, kind="stable")
    ranked = groups[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]])) if len(ranked) else np.empty(0, int)
    lengths = np.diff(np.append(starts, len(ranked)))
    nth = np.empty(len(groups), np.int64)
    nth[order] = np.arange(len(groups)) - np.repeat(starts, lengths)
    return nth


def _order_key(score: np.ndarray, tie: np.ndarray) -> np.ndarray:
    """One number to order by: the score (exact in 32 bits), then the random order of equals."""
    bits = score.astype(np.float32).view(np.uint32).astype(np.uint64)
    return (bits << np.uint64(32)) | tie.astype(np.uint64)


def tie_of(url_fps: np.ndarray, seed: int) -> np.ndarray:
    """A random but reproducible 32-bit number per URL and batch (the finaliser of splitmix64)."""
    x = url_fps.view(np.uint64) ^ np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) >> np.uint64(32)


def group_of(hosts: HostFacts, rows: pa.Table, at: np.ndarray) -> np.ndarray:
    """What the limits of some rows go by: their host, address or (where that is unknown) registered domain."""
    groups = hosts.groups[hosts.codes[at]]
    domains = np.asarray(rows.column("domain_fp").to_numpy())[at]
    return np.asarray(np.where(groups == 0, domains, groups))


def _output(
    task: CandidateTask, rows: pa.Table, at: np.ndarray, scored: Scored, hosts: HostFacts | None
) -> pa.RecordBatch:
    """The candidates as rows."""
    own = rows.take(pa.array(at))
    count = len(at)
    if hosts is None:
        hosts, of = HostFacts.of(task, own.column("host")), np.arange(count)
        rows = own
    else:
        of = at
    codes = hosts.codes[of]
    given: dict[str, Any] = {
        "task": pa.repeat(task.number, count),
        "host": pa.array([hosts.names[c] for c in codes], pa.string()),
        "group": pa.array(group_of(hosts, rows, of)),
        "address": pa.array([hosts.addresses[c] for c in codes], pa.string()),
        "limit": pa.array(hosts.limits[codes]),
        "score": pa.array(scored.score),
        "tie": pa.array(tie_of(own.column("url_fp").to_numpy(), task.seed).astype(np.int64)),
        **{f"part_{name}": pa.array(values) for name, values in scored.parts.items()},
        **{name: own.column(name) for name in ("domain_fp", "url_fp", ROW, *FACTS)},
    }
    schema = candidate_schema(task.table, task.scorers)
    columns = [c.combine_chunks() if isinstance(c := given[f.name], pa.ChunkedArray) else c for f in schema]
    return pa.RecordBatch.from_arrays([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
