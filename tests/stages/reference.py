"""The crawl db as a novice would write it: one Python object per URL, everything recomputed from first principles.

Shares no code with the stages. Inlinks are not counted up and down but computed from the pages' latest parses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.stages.webs import Fetched

HOUR, DAY = 3600, 86400
INTERVAL, FAR = 30 * DAY, 90 * DAY


@dataclass
class Entry:
    """All that is believed of a URL."""

    status: str = "unfetched"
    due: datetime | None = None
    interval: int = INTERVAL
    failures: int = 0
    signature: int | None = None
    digest: str | None = None
    fetched_at: datetime | None = None
    segment: str | None = None
    parsed: str | None = None  # the segment whose parse gave the links
    linked_at: datetime | None = None
    decided_at: datetime | None = None
    target: str | None = None


class Reference:
    """The db, and each page's links as of its latest parse."""

    def __init__(self, seeds: list[str], now: datetime) -> None:
        self.entries = {url: Entry(due=now) for url in seeds}
        self.links: dict[str, tuple[str, ...]] = {}

    def inlinks(self, url: str) -> int:
        return sum(url in set(links) for source, links in self.links.items() if source != url)

    def due(self, now: datetime) -> set[str]:
        return {url for url, e in self.entries.items() if self._is_due(e, now)}

    def _is_due(self, entry: Entry, now: datetime) -> bool:
        if entry.due is None or entry.due <= now:
            return True
        linked = entry.linked_at is not None and entry.decided_at is not None and entry.linked_at > entry.decided_at
        return entry.status == "gone" and linked

    def update(self, found: list[Fetched], now: datetime) -> None:
        before = {url: set(links) - {url} for url, links in self.links.items()}
        for fetched in sorted(found, key=lambda f: (f.at, f.segment)):
            self._take(fetched, now)
        for source, links in self.links.items():
            for url in set(links) - {source} - before.get(source, set()):
                self._enter(url, now)
                self.entries[url].linked_at = now

    def _enter(self, url: str, now: datetime) -> None:
        if url not in self.entries:
            self.entries[url] = Entry(due=now)

    def _take(self, f: Fetched, now: datetime) -> None:
        self._enter(f.url, now)
        e = self.entries[f.url]
        if e.fetched_at is not None and f.at < e.fetched_at and e.parsed != f.segment:
            return
        if e.fetched_at is not None and f.at <= e.fetched_at:
            self._parse_again(e, f, now)
            return
        kind = f.outcome.name.lower()
        getattr(self, f"_{kind}")(e, f, now)
        e.fetched_at, e.segment, e.decided_at = f.at, f.segment, now
        if e.status in ("gone", "redirect_permanent"):
            self.links.pop(f.url, None)
            e.parsed = None
        elif kind == "success" and f.links is not None:
            self.links[f.url] = f.links
            e.parsed = f.segment
        if kind not in ("fail", "retry_later"):
            e.target = f.target if kind == "redirect_permanent" else f.canonical
        if e.target and kind in ("success", "redirect_permanent"):
            self._enter(e.target, now)
        if e.status == "gone" and kind == "fail":
            e.target = None

    def _parse_again(self, e: Entry, f: Fetched, now: datetime) -> None:
        if e.status == "fetched" and f.links is not None:
            self.links[f.url], e.parsed = f.links, f.segment
            e.signature = f.signature
            if e.target != f.canonical and f.canonical:
                self._enter(f.canonical, now)
            if e.target != f.canonical:
                e.decided_at = now
            e.target = f.canonical
        elif e.parsed == f.segment:
            self.links.pop(f.url, None)
            e.parsed = None

    def _success(self, e: Entry, f: Fetched, now: datetime) -> None:
        if e.signature is not None and f.signature is not None:
            factor = 1400 if e.signature == f.signature else 800
            e.interval = max(HOUR, min(FAR, e.interval * factor // 1000))
        e.status, e.failures, e.signature, e.digest = "fetched", 0, f.signature, f.digest
        e.due = now + timedelta(seconds=e.interval)

    def _redirect_permanent(self, e: Entry, _: Fetched, now: datetime) -> None:
        e.status, e.failures = "redirect_permanent", 0
        e.due = now + timedelta(seconds=e.interval)

    def _gone(self, e: Entry, _: Fetched, now: datetime) -> None:
        e.status = "gone"
        e.due = now + timedelta(seconds=min(FAR, e.interval * 2 ** (e.failures + 1)))
        e.failures += 1

    def _gone_for_good(self, e: Entry, _: Fetched, now: datetime) -> None:
        e.status, e.failures = "gone", 0
        e.due = now + timedelta(seconds=FAR)

    def _retry_later(self, e: Entry, f: Fetched, now: datetime) -> None:
        e.due = now + timedelta(seconds=f.retry_after or HOUR)

    def _fail(self, e: Entry, _: Fetched, now: datetime) -> None:
        wait = HOUR * 2**e.failures
        e.failures += 1
        if e.failures >= 5:
            e.status = "gone"
            wait = min(FAR, e.interval * 2**e.failures)
        e.due = now + timedelta(seconds=wait)

    def rows(self) -> dict[str, dict[str, Any]]:
        return {
            url: {
                "status": e.status,
                "inlinks": self.inlinks(url),
                "next_fetch": e.due,
                "failures": e.failures,
                "interval_s": e.interval,
                "signature": e.signature,
                "target": e.target,
            }
            for url, e in self.entries.items()
        }
