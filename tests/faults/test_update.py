"""update under every fault: links and cash are never counted twice, a schedule never moves twice."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.storage import runs
from gossamer.tables.statuses import Outcome
from tests.faults.harness import every_crash_point
from tests.stages.crawls import NOW, content, seed_rows, write_rows
from tests.stages.webs import Fetched, store

A, B, C = (f"https://{name}.example/" for name in "abc")


def opened(files: Any, engine: Engine, hours: int = 4) -> Crawl:
    clock = Clock(NOW.now + timedelta(hours=hours))
    return Crawl(files.root, files=files, engine=engine, clock=lambda: clock)


def state(files: Any, engine: Engine) -> list[Any]:
    crawl = opened(files, engine)
    return [content(crawl, name).to_pylist() for name in ("crawldb", "counted")]


def page(url: str, segment: str, hours: int, *links: str) -> Fetched:
    at = NOW.now + timedelta(hours=hours)
    return Fetched(url, Outcome.SUCCESS, at, segment, signature=hours, links=links)


def test_every_crash_point(tmp_path: Path, embedded_inline: Engine) -> None:
    """A page that was counted before changes its links, another fails."""
    seeds = write_rows(tmp_path / "seeds.parquet", seed_rows([A, B]))

    def make(files: Any) -> None:
        crawl = Crawl.init(files.root, shards=1, clock=NOW, files=files, engine=embedded_inline)
        crawl.clock = lambda: NOW
        crawl.load("crawldb", seeds)
        store(crawl, "s1", [page(A, "s1", 1, B, C)])
        crawl = opened(files, embedded_inline, 2)
        crawl.run("update", segments=["s1"])
        failed = Fetched(B, Outcome.FAIL, NOW.now + timedelta(hours=3), "s2")
        store(crawl, "s2", [page(A, "s2", 3, C, "https://d.example/"), failed])

    def operation(files: Any) -> None:
        record = runs.load(files, "00000004-update")
        if record is None or record.state != runs.DONE:
            opened(files, embedded_inline).run("update", segments=["s2"])

    kinds = ("kill",)
    found = partial(state, engine=embedded_inline)
    points = every_crash_point("update", tmp_path / "trial", make, operation, found, kinds=kinds, recorded=True)
    assert all(points.values())


def test_purge_at_every_crash_point(tmp_path: Path, embedded_inline: Engine) -> None:
    """One URL leaves, the others stay."""
    old = NOW.now - timedelta(days=400)
    rows = seed_rows([A, B, C], status=[3, 3, 2], first_seen=[old, NOW.now, old])
    seeds = write_rows(tmp_path / "seeds.parquet", rows)

    def make(files: Any) -> None:
        crawl = Crawl.init(files.root, shards=1, clock=NOW, files=files, engine=embedded_inline)
        crawl.clock = lambda: NOW
        crawl.load("crawldb", seeds)

    def operation(files: Any) -> None:
        record = runs.load(files, "00000001-purge")
        if record is None or record.state != runs.DONE:
            opened(files, embedded_inline).run("purge")

    def left(files: Any) -> list[str]:
        found: list[str] = content(opened(files, embedded_inline)).column("url").to_pylist()
        return found

    points = every_crash_point(
        "purge", tmp_path / "trial", make, operation, left, kinds=("kill", "lost", "enospc"), recorded=True
    )
    assert all(points.values())
