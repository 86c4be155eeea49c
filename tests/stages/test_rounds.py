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
from tests.stages.crawls import NOW, content, seeded
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


@pytest.mark.parametrize("seed", [2])
def test_ten_rounds_equal_a_naive_reference(tmp_path: Path, embedded: Engine, seed: int) -> None:
    crawl_and_compare(tmp_path, embedded, seed, 10)


@pytest.mark.cluster
def test_rounds_on_every_engine(
    tmp_path: Path, engine: Engine, embedded: Engine, request: pytest.FixtureRequest
) -> None:
    """Fewer rounds, as Spark takes seconds for what DuckDB does at once; all tables are equal to those of DuckDB."""
    rounds = 1 if "spark" in request.node.name else 2
    crawls = [crawl_and_compare(tmp_path / name, e, 4, rounds) for name, e in (("a", engine), ("b", embedded))]
    for name in ("crawldb", "fetchlist", "counted"):
        ours, theirs = (content(crawl, name) for crawl in crawls)
        assert ours.num_rows > 0
        assert ours.equals(theirs), name


def crawl_and_compare(tmp_path: Path, engine: Engine, seed: int, rounds: int) -> Crawl:
    tmp_path.mkdir(exist_ok=True)
    rng = random.Random(seed)
    web = Web.random(seed)
    now = NOW.now
    seeds = sorted(rng.sample(sorted(web.pages), 12))
    crawl = seeded(tmp_path, engine, seeds)
    reference = Reference(seeds, now)
    past: dict[str, list[Fetched]] = {}
    for _ in range(rounds):
        now += timedelta(days=rng.choice([0.1, 1, 20, 45]))
        crawl.clock = partial(Clock, now)
        segments = crawl.generate(top=30, batches=2)
        chosen = [url for segment in segments for url in listed(crawl, segment)]
        assert len(chosen) == len(set(chosen)) == min(60, len(reference.due(now)))
        assert set(chosen) <= reference.due(now)
        clock = times(now)
        for segment in segments:
            found = [fetch(web, url, next(clock), segment) for url in listed(crawl, segment)]
            store(crawl, segment, found)
            past[segment] = found
        now += timedelta(hours=1)
        crawl.clock = partial(Clock, now)
        crawl.update(*segments)
        reference.update([f for s in segments for f in past[s]], now)
        assert rows_of(crawl) == reference.rows()
        now = again(crawl, reference, past, rng, now)
        web.change(rng, 0.3)
    return crawl


def again(
    crawl: Crawl, reference: Reference, past: dict[str, list[Fetched]], rng: random.Random, now: datetime
) -> datetime:
    """An old segment is applied once more, as it is or parsed anew."""
    segment = rng.choice(sorted(past))
    if rng.random() < 0.5:
        past[segment] = [replace(f, links=f.links and f.links[1:]) for f in past[segment]]
        store(crawl, segment, past[segment])
    now += timedelta(hours=1)
    crawl.clock = partial(Clock, now)
    crawl.update(segment)
    reference.update(past[segment], now)
    assert rows_of(crawl) == reference.rows()
    return now
