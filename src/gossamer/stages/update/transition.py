"""The state machine at work: known rows + fetch rows (+ what parsing said) → new state rows, a batch of keys at a time.

Pure Arrow and numpy, so both engines give the same bits. Several fetches of one URL are applied in the order of their
time, so updating two segments at once gives what updating them one after the other would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.settings import ScheduleSettings
from gossamer.tables import states
from gossamer.tables.spec import TIMESTAMP
from gossamer.tables.states import TRANSITIONS, Schedule
from gossamer.tables.statuses import Outcome, Status
from gossamer.urls import keys

KEY = ("domain_fp", "url_fp", "rowkey")
KNOWN, PARSED = "k_", "p_"  # prefixes of what the crawldb and the parse said
TARGET = "t_"  # prefix of the keys of a redirect's or canonical's target
FROM_FETCH = (
    "url", "segment", "via", "outcome", "retry_after_s", "redirect_to", "etag", "last_modified", "payload_digest",
    "fetched_at",
)  # fmt: skip
FROM_PARSE = ("status", "signature", "canonical", "change_interval_s")
VALIDATORS = ("etag", "last_modified")
EVENTS = ("applied", "again", "stale", "untried")

STATUS_OF = np.zeros((max(Status) + 1, max(Outcome) + 1), np.int8)
SCHEDULE_OF = np.zeros_like(STATUS_OF)
for (_status, _outcome), _cell in TRANSITIONS.items():
    STATUS_OF[_status, _outcome] = _cell.status
    SCHEDULE_OF[_status, _outcome] = _cell.schedule
STATUS_OF[0], SCHEDULE_OF[0] = STATUS_OF[Status.UNFETCHED], SCHEDULE_OF[Status.UNFETCHED]  # a URL nobody knew

State = dict[str, pa.Array]


@dataclass(frozen=True)
class Rules:
    """What decides besides the table of transitions."""

    now: datetime
    schedule: ScheduleSettings
    newest: pa.Schema  # the columns of the crawldb that make up a row's state


def output_schema(newest: pa.Schema) -> pa.Schema:
    """One row per URL: keys, state, what to do with links and cash, where it leads, how its fetches were taken."""
    fields: list[tuple[str, pa.DataType]] = [("domain_fp", pa.int64()), ("url_fp", pa.int64())]
    fields += [(name, pa.string()) for name in ("rowkey", "url", "host", "via")]
    fields += [(field.name, field.type) for field in newest]
    fields += [("changed", pa.bool_()), ("known", pa.bool_()), ("depth", pa.int16())]
    fields += [("recount", pa.bool_()), ("old_parsed", pa.string()), ("spend", pa.int64())]
    fields += [(f"{TARGET}{name}", pa.int64()) for name in ("domain_fp", "url_fp")]
    fields += [(f"{TARGET}{name}", pa.string()) for name in ("rowkey", "url", "host")]
    fields += [(name, pa.int32()) for name in EVENTS]
    return pa.schema(fields)


def run_states(rules: Rules, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows ordered by key and time → one state row per key."""
    for rows in whole_keys(batches):
        yield state_rows(rules, rows)


def whole_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut a stream so that all rows of a key are in one batch."""
    carried: pa.RecordBatch | None = None
    for batch in batches:
        if carried is not None:
            batch = pa.concat_batches([carried, batch])
        starts = np.flatnonzero(key_starts(batch))
        last = int(starts[-1])
        if last:
            yield batch.slice(0, last)
        carried = batch.slice(last)
    if carried is not None and carried.num_rows:
        yield carried


def key_starts(rows: pa.RecordBatch) -> np.ndarray:
    """Where a new key begins."""
    fresh = np.zeros(rows.num_rows, bool)
    fresh[:1] = True
    for name in KEY:
        column = rows.column(name)
        fresh[1:] |= pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy(zero_copy_only=False)
    return fresh


def state_rows(rules: Rules, rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row per key of a batch that holds whole keys, its fetches applied one after the other."""
    starts = np.flatnonzero(key_starts(rows))
    counts = np.diff(np.append(starts, rows.num_rows))
    first = rows.take(pa.array(starts))
    state: State = {f.name: first.column(KNOWN + f.name) for f in rules.newest}
    known = first.column(f"{KNOWN}url").is_valid()
    totals = {name: np.zeros(len(starts), np.int32) for name in EVENTS}
    changed, recount = np.zeros(len(starts), bool), np.zeros(len(starts), bool)
    spent = np.zeros(len(starts), bool)
    target = pa.nulls(len(starts), pa.string())
    for nth in range(int(counts.max())):
        at = np.flatnonzero(counts > nth)
        event = rows.take(pa.array(starts[at] + nth))
        step = _apply(rules, {name: column.take(pa.array(at)) for name, column in state.items()}, event)
        state = {name: _scatter(column, at, step.state[name]) for name, column in state.items()}
        target = _scatter(target, at, pc.coalesce(step.target, target.take(pa.array(at))))
        for name, mask in step.events.items():
            totals[name][at] += mask
        changed[at] |= step.changed
        recount[at] |= step.recount
        spent[at] |= step.spends
    return _output(rules, first, state, target, known, changed, recount, spent, totals)


def _output(
    rules: Rules,
    first: pa.RecordBatch,
    state: State,
    target: pa.Array,
    known: pa.Array,
    changed: np.ndarray,
    recount: np.ndarray,
    spent: np.ndarray,
    totals: dict[str, np.ndarray],
) -> pa.RecordBatch:
    cash = pc.coalesce(first.column(f"{KNOWN}cash"), pa.scalar(0, pa.int64()))
    given = {
        **{name: first.column(name) for name in (*KEY, "url", "via")},
        **state,
        "host": keys.hosts(first.column("url")),
        "changed": pa.array(changed),
        "known": known,
        "depth": first.column(f"{KNOWN}depth"),
        "recount": pa.array(recount),
        "old_parsed": first.column(f"{KNOWN}parsed"),
        "spend": pc.if_else(pa.array(spent), cash, 0),
        **_target_keys(target),
        **{name: pa.array(values) for name, values in totals.items()},
    }
    schema = output_schema(rules.newest)
    return pa.RecordBatch.from_arrays([given[f.name].cast(f.type) for f in schema], schema=schema)


def _target_keys(targets: pa.Array) -> State:
    """The key columns of the URLs that redirects and canonicals name, NULL where there is none."""
    at = np.flatnonzero(targets.is_valid().to_numpy(zero_copy_only=False))
    found = keys.url_columns(targets.take(pa.array(at)))
    places = np.full(len(targets), -1)
    places[at] = np.arange(len(at))
    indices = pa.array(places, mask=places < 0)
    return {f"{TARGET}{name}": found[name].take(indices) for name in ("domain_fp", "url_fp", "rowkey", "url", "host")}


@dataclass(frozen=True)
class Step:
    """What one fetch of each URL led to."""

    state: State
    target: pa.Array  # a URL to enter: where a redirect or an accepted canonical leads
    events: dict[str, np.ndarray]
    changed: np.ndarray
    recount: np.ndarray
    spends: np.ndarray


def _apply(rules: Rules, state: State, event: pa.RecordBatch) -> Step:
    """One fetch of each URL meets its state."""
    outcome = _numbers(event.column("outcome"), 0)
    events = _told_apart(state, event, outcome)
    applied, again = events["applied"], events["again"]
    before = _numbers(state["status"], 0)
    status, schedule = STATUS_OF[before, outcome].copy(), SCHEDULE_OF[before, outcome]
    failures = _numbers(state["failures"], 0).astype(np.int64)
    status[(schedule == Schedule.RETRY) & (failures + 1 >= rules.schedule.max_failures)] = Status.GONE
    content = schedule == Schedule.CONTENT
    parsed = event.column(f"{PARSED}status").is_valid().to_numpy(zero_copy_only=False)
    changed, unchanged = _compared(state, event)
    interval = _interval(rules, state, event, schedule, changed, unchanged)
    wait = _wait(rules, event, schedule, interval, failures)
    canonical = _accepted_canonical(event)
    leads = pc.if_else(pa.array(content), canonical, event.column("redirect_to"))
    kept = np.isin(schedule, (Schedule.RETRY, Schedule.WAIT, Schedule.UNCHANGED)) & (status == before)
    gave = content | np.isin(schedule, (Schedule.UNCHANGED,))
    with_content = np.isin(status, states.HAD_CONTENT)
    new: State = dict(state)
    new["status"] = pa.array(status, pa.int8())
    new["failures"] = pa.array(_failures(schedule, failures).astype(np.int16))
    new["interval_s"] = pa.array(interval.astype(np.int32))
    new["next_fetch"] = _later(rules.now, wait)
    new["fetched_at"] = event.column("fetched_at")
    new["segment"] = event.column("segment")
    first_or_changed = pa.array(content & ~unchanged)
    new["modified_at"] = pc.if_else(first_or_changed, event.column("fetched_at"), state["modified_at"])
    fresh_signature = pc.coalesce(event.column(f"{PARSED}signature"), state["signature"])
    new["signature"] = pc.if_else(pa.array(content & parsed), fresh_signature, state["signature"])
    new["payload_digest"] = pc.if_else(pa.array(content), event.column("payload_digest"), state["payload_digest"])
    for name in VALIDATORS:
        told = pc.if_else(pa.array(content), event.column(name), pc.coalesce(event.column(name), state[name]))
        told = pc.if_else(pa.array(gave), told, state[name])
        new[name] = _where(with_content, told)
    new["target"] = pc.if_else(pa.array(kept), state["target"], leads)
    new["parsed"] = _parsed(state["parsed"], event, content & parsed, np.isin(status, states.WITHOUT_LINKS))
    redo, redone = _again(state, event, parsed, canonical)
    result = {
        name: pc.if_else(pa.array(applied), new[name], pc.if_else(pa.array(again), redo[name], column))
        if not pa.types.is_nested(column.type)
        else column
        for name, column in state.items()
    }
    moved = _differs(result["parsed"], state["parsed"])
    recount = applied & (moved | (content & parsed)) | again & (moved | parsed)
    target = _where(applied | again & redone, pc.if_else(pa.array(again), redo["target"], leads))
    return Step(result, target, events, applied | again & redone, recount, applied & content & parsed)


def _told_apart(state: State, event: pa.RecordBatch, outcome: np.ndarray) -> dict[str, np.ndarray]:
    """Which fetches are news, which were applied before, which are older than what is known, which never happened."""
    untried = outcome == Outcome.UNTRIED
    unknown = state["fetched_at"].is_null().to_numpy(zero_copy_only=False)
    newer = _true(pc.greater(event.column("fetched_at"), state["fetched_at"]))
    same = _true(
        pc.and_(
            pc.equal(event.column("fetched_at"), state["fetched_at"]),
            pc.equal(event.column("segment"), state["segment"]),
        )
    )
    speaks = _true(pc.equal(event.column("segment"), state["parsed"]))  # no later fetch has been parsed
    applied = (unknown | newer) & ~untried
    again = (same | speaks) & ~untried & ~applied
    return {"applied": applied, "again": again, "stale": ~(applied | again | untried), "untried": untried}


def _compared(state: State, event: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Whether the text (or else the payload) is known to have changed, or to be the same."""
    by_text = pc.equal(event.column(f"{PARSED}signature"), state["signature"])
    by_bytes = pc.equal(event.column("payload_digest"), state["payload_digest"])
    same = pc.coalesce(by_text, by_bytes)
    return _true(pc.invert(same)), _true(same)


def _interval(
    rules: Rules,
    state: State,
    event: pa.RecordBatch,
    schedule: np.ndarray,
    changed: np.ndarray,
    unchanged: np.ndarray,
) -> np.ndarray:
    """Seconds between fetches: fixed, or following how often the content changes; at first what the sitemap says."""
    plan = rules.schedule
    interval = _numbers(state["interval_s"], plan.interval_s).astype(np.int64)
    told = _numbers(event.column(f"{PARSED}change_interval_s"), 0).astype(np.int64)
    first = state["fetched_at"].is_null().to_numpy(zero_copy_only=False) & (told > 0)
    interval = np.where(first, np.clip(told, plan.min_interval_s, plan.max_interval_s), interval)
    if plan.kind == "fixed":
        return interval
    content = schedule == Schedule.CONTENT
    shrunk = interval * (1000 - round(plan.shrink * 1000)) // 1000
    grown = interval * (1000 + round(plan.grow * 1000)) // 1000
    adapted = np.where(content & changed, shrunk, interval)
    adapted = np.where((content & unchanged) | (schedule == Schedule.UNCHANGED), grown, adapted)
    return np.where(adapted == interval, interval, np.clip(adapted, plan.min_interval_s, plan.max_interval_s))


def _wait(
    rules: Rules, event: pa.RecordBatch, schedule: np.ndarray, interval: np.ndarray, failures: np.ndarray
) -> np.ndarray:
    """Seconds until the URL is due again."""
    asked = _numbers(event.column("retry_after_s"), states.FIRST_RETRY).astype(np.int64)
    doubled = np.minimum(interval << np.minimum(failures + 1, 20), states.FAR)
    backed_off = np.minimum(states.FIRST_RETRY << np.minimum(failures, 20), states.FAR)
    last = failures + 1 >= rules.schedule.max_failures
    wait = np.minimum(interval, states.FAR)
    wait = np.where(schedule == Schedule.RETRY, np.where(last, doubled, backed_off), wait)
    wait = np.where(schedule == Schedule.WAIT, np.clip(asked, 1, states.LONGEST_RETRY_AFTER), wait)
    wait = np.where(schedule == Schedule.GONE, doubled, wait)
    return np.where(schedule == Schedule.FAR, states.FAR, wait)


def _failures(schedule: np.ndarray, failures: np.ndarray) -> np.ndarray:
    more = np.isin(schedule, (Schedule.RETRY, Schedule.GONE))
    same = schedule == Schedule.WAIT
    return np.where(more, np.minimum(failures + 1, np.iinfo(np.int16).max), np.where(same, failures, 0))


def _accepted_canonical(event: pa.RecordBatch) -> pa.Array:
    """The canonical URL where it names another page of the same registered domain."""
    canonical = event.column(f"{PARSED}canonical")
    at = np.flatnonzero(_true(pc.not_equal(canonical, event.column("url"))))
    domains = keys.url_columns(canonical.take(pa.array(at)))["domain_fp"]
    near = _true(pc.equal(domains, event.column("domain_fp").take(pa.array(at))))
    accepted = np.zeros(len(canonical), bool)
    accepted[at] = near
    return _where(accepted, canonical)


def _parsed(before: pa.Array, event: pa.RecordBatch, news: np.ndarray, without: np.ndarray) -> pa.Array:
    """The segment whose parse speaks for the page's links: this one, the one before, or none."""
    return pc.if_else(pa.array(news), event.column("segment"), _where(~without, before))


def _again(state: State, event: pa.RecordBatch, parsed: np.ndarray, canonical: pa.Array) -> tuple[State, np.ndarray]:
    """A fetch that was applied before, whose parse may be new; its schedule stays. Also which rows that changes."""
    with_content = np.isin(_numbers(state["status"], 0), states.HAD_CONTENT)
    was_ours = _true(pc.equal(state["parsed"], event.column("segment")))
    speaks = parsed & (with_content | was_ours)
    redo: State = dict(state)
    fresh = pc.coalesce(event.column(f"{PARSED}signature"), state["signature"])
    redo["signature"] = pc.if_else(pa.array(speaks), fresh, state["signature"])
    redo["target"] = pc.if_else(pa.array(speaks & with_content), canonical, state["target"])
    redo["parsed"] = pc.if_else(pa.array(speaks), event.column("segment"), _where(~was_ours, state["parsed"]))
    names = ("signature", "target", "parsed")
    return redo, np.logical_or.reduce([_differs(redo[name], state[name]) for name in names])


def _later(now: datetime, seconds: np.ndarray) -> pa.Array:
    start = int(pa.scalar(now, TIMESTAMP).value)
    return pa.array(start + seconds.astype(np.int64) * 1_000_000, pa.int64()).cast(TIMESTAMP)


def _scatter(column: pa.Array, at: np.ndarray, values: pa.Array) -> pa.Array:
    """The column with other values at some places."""
    if len(at) == len(column):
        return values
    places = np.arange(len(column))
    places[at] = len(column) + np.arange(len(at))
    return pa.concat_arrays([column, values]).take(pa.array(places))


def _where(mask: np.ndarray, column: pa.Array) -> pa.Array:
    """The column's values where the mask says so, else NULL."""
    return pc.if_else(pa.array(mask), column, pa.scalar(None, column.type))


def _numbers(column: pa.Array, instead: int) -> np.ndarray:
    return np.asarray(pc.fill_null(column, pa.scalar(instead, column.type)).to_numpy(zero_copy_only=False))


def _true(column: pa.Array) -> np.ndarray:
    """Where a condition holds; NULL is no."""
    return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False))


def _differs(one: pa.Array, other: pa.Array) -> np.ndarray:
    """Where two columns differ; NULL equals NULL."""
    same = pc.or_(pc.equal(one, other).fill_null(False), pc.and_(one.is_null(), other.is_null()))
    return ~np.asarray(same.to_numpy(zero_copy_only=False))
