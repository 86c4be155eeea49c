"""Rounds: generate → fetch → update, again and again; an interrupted round is finished first.

How many rounds of a call are done is kept in `plans/crawl.json`, so that the same call again does the rest and no more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gossamer.errors import UsageError
from gossamer.storage.files import Missing, read_json

if TYPE_CHECKING:
    from gossamer.crawl import Crawl

PLAN = "plans/crawl.json"


@dataclass(frozen=True)
class Round:
    """What one round did."""

    round: int
    of: int
    segment: str
    urls: int  # in the batch
    fetched: int  # pages, those that had not changed included
    failed: int
    fresh: int  # URLs nobody knew before
    known: int  # URLs in the crawldb after it
    seconds: float
    seconds_fetching: float


def run_rounds(crawl: Crawl, rounds: int, **generate: Any) -> Iterator[Round]:
    """Do rounds until there are so many, or nothing is left to fetch."""
    if rounds < 1:
        raise UsageError(f"{rounds} rounds: choose a number from 1 up")
    arguments = {"rounds": rounds, **{name: value for name, value in generate.items() if value is not None}}
    done = _done(crawl, arguments)
    known = count(crawl)
    while done < rounds:
        begun = time.monotonic()
        segment = _batch(crawl, generate)
        if segment is None:
            break
        record = crawl.fetch(segment) if segment in crawl.waiting() else None
        fetching = time.monotonic() - begun
        crawl.update(segment)
        done += 1
        _remember(crawl, arguments, done)
        before, known = known, count(crawl)
        counters = record.counters if record else {}
        yield Round(
            round=done,
            of=rounds,
            segment=segment,
            urls=sum(s.rows for s in crawl.snapshot.sets("fetchlist", segment)),
            fetched=counters.get("success", 0) + counters.get("not_modified", 0),
            failed=counters.get("failed", 0) + counters.get("later", 0),
            fresh=known - before,
            known=known,
            seconds=round(time.monotonic() - begun, 1),
            seconds_fetching=round(fetching, 1),
        )
    crawl.files.delete(PLAN)


def count(crawl: Crawl) -> int:
    """How many URLs the crawl knows."""
    urls = crawl.table("crawldb").select("domain_fp", "url_fp")
    found: int = crawl.engine.collect(urls.aggregate(n=urls.count())).column("n")[0].as_py()
    return found


def _batch(crawl: Crawl, generate: dict[str, Any]) -> str | None:
    """The batch of this round: one that was fetched and not applied, one that waits, or a new one."""
    left = [*crawl.pending(), *crawl.waiting()]
    if left:
        return left[0]
    return next(iter(crawl.generate(**generate)), None)


def _done(crawl: Crawl, arguments: dict[str, Any]) -> int:
    """How many rounds of this very call were done before it was interrupted."""
    try:
        plan = read_json(crawl.files, PLAN)
    except Missing:
        return 0
    return int(plan["done"]) if plan.get("arguments") == arguments else 0


def _remember(crawl: Crawl, arguments: dict[str, Any], done: int) -> None:
    crawl.files.replace(PLAN, json.dumps({"arguments": arguments, "done": done}).encode())
