"""generate and drop under every fault: a batch is there as a whole or not at all, and no URL is in two."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.stages.generate.batches import batches
from gossamer.storage import runs
from tests.faults.harness import every_crash_point
from tests.stages.crawls import NOW, seed_rows, write_rows
from tests.stages.generating import pages

URLS = [*pages("a.example", 3), *pages("b.example", 2)]


def opened(files: Any, engine: Engine) -> Crawl:
    return Crawl(files.root, files=files, engine=engine, clock=lambda: NOW, sets=["generate.max_per=2"])


def make(files: Any, engine: Engine, folder: Path) -> None:
    Crawl.init(files.root, shards=1, clock=NOW, files=files, engine=engine)
    opened(files, engine).load("crawldb", write_rows(folder / "rows.parquet", seed_rows(URLS)))


def lists(files: Any, engine: Engine) -> list[Any]:
    """States of all batches, and their rows."""
    crawl = opened(files, engine)
    found = batches(crawl.files, crawl.snapshot, NOW.now)
    table = crawl.tables_at(crawl.snapshot)["fetchlist"]
    rows = crawl.table("fetchlist").order_by("segment", *table.order).select(*table.stable)
    return [[(batch.segment, batch.state, batch.urls) for batch in found], engine.collect(rows).to_pylist()]


def done(files: Any, run: str) -> bool:
    record = runs.load(files, run)
    return record is not None and record.state == runs.DONE


def test_every_crash_point_of_generate(tmp_path: Path, embedded_inline: Engine) -> None:
    def operation(files: Any) -> None:
        if not done(files, "00000001-generate"):
            made = opened(files, embedded_inline).generate(top=3, batches=2)
            assert made == ["r000001-1", "r000001-2"]

    points = every_crash_point(
        "generate",
        tmp_path / "trial",
        partial(make, engine=embedded_inline, folder=tmp_path),
        operation,
        partial(lists, engine=embedded_inline),
        kinds=("lost",),
        recorded=True,
    )
    assert all(points.values())


def test_every_crash_point_of_drop(tmp_path: Path, embedded_inline: Engine) -> None:
    def start(files: Any) -> None:
        make(files, embedded_inline, tmp_path)
        opened(files, embedded_inline).generate(top=3, batches=2)

    def operation(files: Any) -> None:
        if not done(files, "00000002-drop"):
            opened(files, embedded_inline).run("drop", segments=["r000001-1", "r000001-2"])

    state = partial(lists, engine=embedded_inline)
    points = every_crash_point(
        "drop", tmp_path / "trial", start, operation, state, kinds=("kill", "lost", "torn", "enospc"), recorded=True
    )
    assert all(points.values())
