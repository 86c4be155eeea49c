"""Stages under every fault: load, compact, fold, migrate and reshard, through the runner, on the embedded engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.storage import runs
from gossamer.tables import TABLES
from gossamer.tables.spec import Column, Kind, Merge, Table
from gossamer.urls.keys import fingerprints
from tests.faults.harness import every_crash_point
from tests.stages.crawls import NOW, ordered

TABLE = "tiny"  # keyed and sharded like the crawldb; few columns, so that a run takes little time
TINY = Table(
    name=TABLE,
    doc="A table for crash tests.",
    kind=Kind.KEYED,
    key=("fp", "name"),
    order=("name", "fp"),
    shard_by="fp",
    version_by="at",
    columns=(
        Column("fp", pa.int64(), "Key.", Merge.KEY, nullable=False),
        Column("name", pa.string(), "Key.", Merge.KEY, nullable=False),
        Column("at", pa.timestamp("us", "UTC"), "Version.", Merge.MAX),
        Column("state", pa.int16(), "State."),
        Column("links", pa.int32(), "Increments: applied twice they would show.", Merge.SUM),
    ),
)


def some_rows(first: int, count: int, state: int) -> pa.Table:
    names = pa.array([f"row {n}" for n in range(first, first + count)])
    at = pa.array([state] * count, pa.timestamp("us", "UTC"))
    states, links = pa.array([state] * count, pa.int16()), pa.array([1] * count, pa.int32())
    return pa.table({"fp": fingerprints(names), "name": names, "at": at, "state": states, "links": links})


def add_language(rows: ir.Table) -> ir.Table:
    return rows.mutate(language=ibis.literal("en"))


def version_2() -> Table:
    columns = (*TINY.columns, Column("language", pa.string(), "New."))
    return replace(TINY, version=2, columns=columns, migrations={1: add_language})


def opened(files: Any, engine: Engine) -> Crawl:
    return Crawl(files.root, files=files, engine=engine, clock=lambda: NOW)


def content(files: Any, engine: Engine) -> list[dict[str, Any]]:
    crawl = opened(files, engine)
    table = crawl.tables_at(crawl.snapshot)[TABLE]
    rows = crawl.engine.collect(ordered(crawl.table(TABLE).select(*table.stable), table))
    return [{"shards": crawl.snapshot.shards}, *rows.to_pylist()]


@pytest.fixture
def rows_file(tmp_path: Path) -> Callable[[str, pa.Table], str]:
    def write(name: str, rows: pa.Table) -> str:
        pq.write_table(rows, tmp_path / name)
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize("stage", ["load", "compact", "fold", "migrate", "reshard"])
def test_every_crash_point(
    tmp_path: Path, embedded_inline: Engine, rows_file: Any, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    monkeypatch.setitem(TABLES, TABLE, TINY)
    first, second = rows_file("a.parquet", some_rows(0, 8, 200)), rows_file("b.parquet", some_rows(5, 8, 404))
    third = rows_file("c.parquet", some_rows(2, 5, 503))

    arguments: dict[str, dict[str, Any]] = {
        "compact": {"table": TABLE},
        "fold": {"table": TABLE},
        "migrate": {},
        "reshard": {"shards": 1},
    }

    def make(files: Any) -> None:
        crawl = Crawl.init(files.root, shards=2, clock=NOW, files=files, engine=embedded_inline)
        crawl.clock = lambda: NOW
        crawl.load(TABLE, first)
        crawl.load(TABLE, second)
        if stage == "migrate":
            monkeypatch.setitem(TABLES, TABLE, version_2())

    def operation(files: Any) -> None:
        record = runs.load(files, f"00000002-{stage}")
        if record is not None and record.state == runs.DONE:
            return
        crawl = opened(files, embedded_inline)
        if stage == "load":
            crawl.load(TABLE, third)
        else:
            crawl.run(stage, **arguments[stage])

    state = partial(content, engine=embedded_inline)
    kinds = ("kill", "torn", "lost", "enospc") if stage == "load" else ("kill",)  # the others write alike
    points = every_crash_point(stage, tmp_path / "trial", make, operation, state, kinds=kinds, recorded=True)
    assert all(points.values())
