"""Ten rounds over a random web that changes, with re-crawls, re-parses and segments applied twice, beside a naive reference."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.tables.statuses import Status
from tests.stages.crawls import NOW, seeded
from tests.stages.reference import Reference
from tests.stages.webs import Fetched, Web, fetch, store

COLUMNS = ("status", "inlinks", "next_fetch", "failures", "interval_s", "signature", "target")


def rows_of(crawl: Crawl) -> dict[str, dict[str, Any]]:
    rows = crawl.engine.collect(crawl.table("crawldb").select("url", *COLUMNS)).to_pylist()
    for row in rows:
        row["status"] = Status(row["status"]).name.lower()
        row["inlinks"] = row["inlinks"] or 0
    return {row.pop("url"): row for row in rows}


def listed(crawl: Crawl, segment: str) -> list[str]:
    return sorted(crawl.engine.collect(crawl.table("fetchlist", segment=segment).select("url")).column(0).to_pylist())


def times(now: datetime) -> Iterator[datetime]:
    while True:
        now += timedelta(seconds=1)
        yield now


@pytest.mark.parametrize("seed", [1, 2])
def test_ten_rounds_equal_a_naive_reference(tmp_path: Path, engine: Engine, seed: int) -> None:
    if seed > 1 and engine.name != "embedded":
        pytest.skip("one random web is enough for the slower engines")
    rng = random.Random(seed)
    web = Web.random(seed)
    now = NOW.now
    seeds = sorted(rng.sample(sorted(web.pages), 12))
    crawl = seeded(tmp_path, engine, seeds)
    reference = Reference(seeds, now)
    past: dict[str, list[Fetched]] = {}
    for _ in range(10):
        now += timedelta(days=rng.choice([0.1, 1, 20, 45]))
        crawl.clock = partial(Clock, now)
        assert {host for (host, fate), n in crawl.plan(top=1000).items() if fate == "chosen" and n} == {
            url.split("/")[2] for url in reference.due(now)
        }
        segments = crawl.generate(top=30, batches=2)
        chosen = [url for segment in segments for url in listed(crawl, segment)]
        assert len(chosen) == len(set(chosen)) == min(60, len(reference.due(now)))
        assert set(chosen) <= reference.due(now)
        clock = times(now)
        for segment in segments:
            found = [fetch(web, url, next(clock), segment) for url in listed(crawl, segment)]
            store(crawl, tmp_path, segment, found)
            past[segment] = found
        now += timedelta(hours=1)
        crawl.clock = partial(Clock, now)
        crawl.update(*segments)
        reference.update([f for s in segments for f in past[s]], now)
        assert rows_of(crawl) == reference.rows()
        now = again(crawl, reference, past, rng, now, tmp_path)
        web.change(rng, 0.3)


def again(
    crawl: Crawl, reference: Reference, past: dict[str, list[Fetched]], rng: random.Random, now: datetime, folder: Path
) -> datetime:
    """An old segment is applied once more, as it is or parsed anew."""
    segment = rng.choice(sorted(past))
    if rng.random() < 0.5:
        past[segment] = [replace(f, links=f.links and f.links[1:]) for f in past[segment]]
        store(crawl, folder, segment, past[segment])
    now += timedelta(hours=1)
    crawl.clock = partial(Clock, now)
    crawl.update(segment)
    reference.update(past[segment], now)
    assert rows_of(crawl) == reference.rows()
    return now
