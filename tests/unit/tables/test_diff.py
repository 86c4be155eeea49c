"""Rows added, removed, changed between two versions of a table."""

from __future__ import annotations

from typing import Any

import ibis.expr.types as ir
import pyarrow as pa

from gossamer.engine.base import Engine
from gossamer.tables.diff import changes
from gossamer.tables.spec import META, Column, Kind, Merge, Table

TABLE = Table(
    "t",
    "A table.",
    Kind.KEYED,
    (
        Column("k", pa.int64(), "Key.", Merge.KEY, nullable=False),
        Column("host", pa.string(), "Key, too.", Merge.KEY, nullable=False),
        Column("n", pa.int32(), "Number."),
        Column("took", pa.int32(), "Milliseconds.", measured=True),
        Column("meta", META, "Map."),
    ),
    key=("k", "host"),
    order=("k", "host"),
)


def rows(engine: Engine, table: Table, *given: dict[str, Any]) -> ir.Table:
    return engine.values(pa.Table.from_pylist(list(given), pa.schema([f.with_nullable(True) for f in table.schema])))


def counted(engine: Engine, table: Table, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, int]:
    found = engine.collect(changes(table, rows(engine, table, *before), rows(engine, table, *after)))
    return {row["change"]: row["rows"] for row in found.to_pylist()}


def row(k: int, n: int | None = 0, host: str = "a", took: int = 1) -> dict[str, Any]:
    return {"k": k, "host": host, "n": n, "took": took, "meta": [("a", "b")]}


def test_each_kind_of_change(embedded_inline: Engine):
    before = [row(1), row(2, 5), row(3, None), row(4), row(5, None)]
    after = [row(1, took=99), row(2, 6), row(3, 1), row(5, None), row(6), row(7)]
    assert counted(embedded_inline, TABLE, before, after) == {"added": 2, "changed": 2, "equal": 2, "removed": 1}


def test_the_whole_key_counts(embedded_inline: Engine):
    assert counted(embedded_inline, TABLE, [row(1, host="a")], [row(1, host="b")]) == {"added": 1, "removed": 1}


def test_from_nothing_and_to_nothing(embedded_inline: Engine):
    assert counted(embedded_inline, TABLE, [], [row(1), row(2)]) == {"added": 2}
    assert counted(embedded_inline, TABLE, [row(1)], []) == {"removed": 1}
    assert counted(embedded_inline, TABLE, [], []) == {}


def test_a_url_may_be_in_many_segments(embedded_inline: Engine):
    segment = Column("segment", pa.string(), "Segment.", nullable=False)
    table = Table("s", "Of segments.", Kind.SEGMENT, (*TABLE.columns, segment), ("k", "host"), ())
    first, second = row(1) | {"segment": "r1"}, row(1) | {"segment": "r2"}
    assert counted(embedded_inline, table, [first], [first, second]) == {"added": 1, "equal": 1}
