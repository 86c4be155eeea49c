"""Batches: which lists exist, and which of them still hold their URLs.

A batch is live from generate until update, a drop, or the end of its lease, so an abandoned one blocks nothing for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gossamer.clock import parse_time
from gossamer.errors import UsageError
from gossamer.settings import GenerateSettings
from gossamer.storage import runs

if TYPE_CHECKING:
    from gossamer.runner import Run
    from gossamer.storage.files import Files
    from gossamer.storage.snapshots import Snapshot

UPDATED, DROPPED, EXPIRED, LIVE = "updated", "dropped", "expired", "live"


@dataclass(frozen=True)
class Batch:
    """One fetchlist and how far it got."""

    segment: str
    state: str
    stages: tuple[str, ...]
    urls: int
    made_at: datetime | None
    expires_at: datetime | None


def batches(files: Files, snapshot: Snapshot, now: datetime) -> list[Batch]:
    """All batches of a crawl, oldest first."""
    found: dict[str, Batch] = {}
    for s in snapshot.sets("fetchlist"):
        name = s.segment or ""
        stages = snapshot.segments.get(name, ())
        record = runs.load(files, s.folder.rsplit("/", 1)[1])
        made = parse_time(record.now) if record else None
        until = _end(made, record.arguments.get("lease_hours")) if made and record else None
        urls = s.rows + (found[name].urls if name in found else 0)
        state = _state(stages, until, now) if made else EXPIRED  # nobody knows how old it is: it blocks nothing
        found[name] = Batch(name, state, stages, urls, made, until)
    return sorted(found.values(), key=lambda batch: batch.segment)


def _end(made: datetime, hours: float | None) -> datetime | None:
    """When a lease ends; None: never. A list that generate did not make has the usual one."""
    try:
        return made + timedelta(hours=GenerateSettings().lease_hours if hours is None else hours)
    except OverflowError:
        return None


def _state(stages: tuple[str, ...], until: datetime | None, now: datetime) -> str:
    if "update" in stages:
        return UPDATED
    if "drop" in stages:
        return DROPPED
    return EXPIRED if until is not None and until <= now else LIVE


def drop(run: Run, segments: list[str]) -> None:
    """Let go of the URLs of some batches."""
    known = {batch.segment: batch for batch in batches(run.crawl.files, run.snapshot, run.clock.now)}
    for name in segments:
        if name not in known:
            raise UsageError(f"there is no batch {name}; see `gossamer batches list`")
        if known[name].state == UPDATED:
            raise UsageError(f"batch {name} has been applied to the crawldb; there is nothing to drop")
        if known[name].state != DROPPED:
            run.mark(name)
            run.count(batches=1, dropped=1)
