"""What is remembered of hosts between rounds, and of a round that was interrupted.

Stored times are times of day, the state machine's are monotonic; a clock that was set back or forth can make us wait for
no longer than the delay itself, or than what a server may ask for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from gossamer.tables.spec import TIMESTAMP
from gossamer.tables.states import LONGEST_RETRY_AFTER
from gossamer.urls.keys import fingerprint

if TYPE_CHECKING:
    from gossamer.stages.fetch.politeness import Queue
    from gossamer.stages.fetch.worker import Worker

STATE = pa.schema(
    [
        ("host", pa.string()),
        ("address", pa.string()),
        ("delay_ms", pa.int32()),
        ("crawl_delay_ms", pa.int32()),
        ("last_request_at", TIMESTAMP),
        ("not_before", TIMESTAMP),
        ("latency_ms", pa.int32()),
        ("failures", pa.int16()),
        ("given_up_until", TIMESTAMP),
        ("last_error", pa.string()),
    ]
)
MOST_MS = 2**31 - 1


class Facts:
    """How a host did in this round."""

    __slots__ = ("address", "error", "last_request", "latency", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.last_request: float | None = None
        self.address: str | None = None
        self.latency: float | None = None
        self.error: str | None = None


@dataclass
class Memory:
    """By key of a queue: what hosts said; by fingerprint of a key: what the journal says."""

    hosts: dict[str, dict[str, object]] = field(default_factory=dict)
    journal: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def remind(self, queue: Queue, wall: float) -> None:
        """Give a new queue its past; `wall` is the time of day when the monotonic clock was 0."""
        now = time.monotonic()
        known = self.hosts.get(queue.key)
        if known is not None:
            queue.failures = int(known.get("failures") or 0)  # type: ignore[call-overload]
            crawl_delay = (known.get("crawl_delay_ms") or 0) / 1000  # type: ignore[operator]
            delay = max(queue.delay, crawl_delay)
            _last(queue, known.get("last_request_at"), delay, wall, now)
            until = max(_seconds(known.get("not_before")), _seconds(known.get("given_up_until")))
            queue.not_before = max(queue.not_before, min(until - wall, now + LONGEST_RETRY_AFTER))
        noted = self.journal.get(fingerprint(queue.key))
        if noted is not None:
            _last(queue, noted[0], max(queue.delay, noted[1]), wall, now)


def _seconds(moment: object) -> float:
    return moment.timestamp() if hasattr(moment, "timestamp") else float("-inf")


def _last(queue: Queue, moment: object, delay: float, wall: float, now: float) -> None:
    """The last request was sent at a time of day: its delay holds, but never for longer than from now on."""
    at = moment if isinstance(moment, float) else _seconds(moment)
    queue.last = max(queue.last, min(at - wall, now))
    queue.not_before = max(queue.not_before, min(at - wall, now) + delay)


def merged(rows: Iterable[dict[str, object]], key: str) -> dict[str, dict[str, object]]:
    """Hosts by the key of their queue; of several, what is strictest counts."""
    found: dict[str, dict[str, object]] = {}
    for row in rows:
        name = row.get(key)
        if not isinstance(name, str):
            continue
        before = found.get(name)
        if before is None:
            found[name] = row
            continue
        for column in ("crawl_delay_ms", "last_request_at", "not_before", "failures", "given_up_until"):
            values = [value for value in (before.get(column), row.get(column)) if value is not None]
            before[column] = max(values, default=None)  # type: ignore[type-var]
    return found


def state_of(worker: Worker) -> pa.Table:
    """What is to be remembered of the hosts this process talked to."""
    now = time.monotonic()
    rows: list[dict[str, object]] = []
    for host, facts in worker.facts.items():
        queue = facts.queue
        crawl_delay = max((o.robots.crawl_delay or 0.0 for o in worker.by_host.get(host, ()) if o.robots), default=0.0)
        rows.append(
            {
                "host": host,
                "address": facts.address,
                "delay_ms": min(int(queue.delay * 1000), MOST_MS),
                "crawl_delay_ms": min(int(crawl_delay * 1000), MOST_MS) or None,
                "last_request_at": _moment(facts.last_request),
                "not_before": _moment(worker.wall + queue.not_before) if queue.not_before > now else None,
                "latency_ms": None if facts.latency is None else int(facts.latency * 1000),
                "failures": min(queue.failures, 32_767),
                "given_up_until": _moment(queue.given_up_until or None),
                "last_error": facts.error,
            }
        )
    rows += _left_alone(worker, now)
    columns = {name: pa.array([row.get(name) for row in rows], STATE.field(name).type) for name in STATE.names}
    return pa.Table.from_pydict(columns, STATE)


def _left_alone(worker: Worker, now: float) -> list[dict[str, object]]:
    """Hosts that asked for time before an interruption, and that were therefore not asked since: only the journal knew."""
    if worker.task.per != "host":
        return []
    return [
        {
            "host": key,
            "last_request_at": _moment(worker.wall + queue.last) if queue.last > float("-inf") else None,
            "not_before": _moment(worker.wall + queue.not_before),
            "failures": min(queue.failures, 32_767),
        }
        for key, queue in worker.politeness.queues.items()
        if key and key not in worker.facts and queue.not_before > now
    ]


def _moment(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000) * 1000
