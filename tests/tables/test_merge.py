"""Base + deltas against a naive merge in plain Python, on every engine."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from gossamer.storage.parquet import DELETED
from gossamer.tables.merge import merge
from gossamer.tables.spec import META, TIMESTAMP, Column, Kind, Merge, Table

TABLE = Table(
    name="things",
    doc="Everything a merge rule can be.",
    kind=Kind.KEYED,
    key=("a", "b"),
    order=("b", "a"),
    shard_by="a",
    version_by="at",
    columns=(
        Column("a", pa.int64(), "key", Merge.KEY, nullable=False),
        Column("b", pa.string(), "key", Merge.KEY, nullable=False),
        Column("at", TIMESTAMP, "version", Merge.MAX),
        Column("state", pa.int8(), "newest", Merge.NEWEST),
        Column("etag", pa.string(), "newest, may become NULL", Merge.NEWEST),
        Column("via", pa.string(), "keep", Merge.KEEP),
        Column("links", pa.int32(), "sum", Merge.SUM),
        Column("cash", pa.int64(), "sum", Merge.SUM),
        Column("depth", pa.int16(), "min", Merge.MIN),
        Column("best", pa.float64(), "max", Merge.MAX),
        Column("meta", META, "newest map", Merge.NEWEST),
    ),
)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Row = dict[str, Any]


def naive(base: list[Row], deltas: list[list[Row]]) -> list[Row]:
    """Apply rows one after the other to a dictionary."""
    state = {(row["a"], row["b"]): row for row in base}
    for delta in deltas:
        for row in delta:
            key = (row["a"], row["b"])
            if row.get(DELETED):
                state.pop(key, None)
            elif key not in state:
                state[key] = row
            else:
                state[key] = two(state[key], row)
    return sorted(({name: row[name] for name in TABLE.names} for row in state.values()), key=lambda r: (r["b"], r["a"]))


def two(old: Row, new: Row) -> Row:
    newer = new["at"] is not None and (old["at"] is None or new["at"] >= old["at"])
    rules = {
        Merge.KEY: lambda a, b: a,
        Merge.KEEP: lambda a, b: a if a is not None else b,
        Merge.NEWEST: lambda a, b: b if newer else a,
        Merge.SUM: lambda a, b: None if a is None and b is None else (a or 0) + (b or 0),
        Merge.MAX: lambda a, b: max((v for v in (a, b) if v is not None), default=None),
        Merge.MIN: lambda a, b: min((v for v in (a, b) if v is not None), default=None),
    }
    return {c.name: rules[c.merge](old[c.name], new[c.name]) for c in TABLE.columns}


def some(rng: random.Random, *values: Any) -> Any:
    return rng.choice([None, *values])


def random_rows(rng: random.Random, count: int, deletes: bool) -> list[Row]:
    rows = {}
    for _ in range(count):
        key = (rng.randrange(40), rng.choice("xyz😀"))
        rows[key] = {
            "a": key[0],
            "b": key[1],
            "at": some(rng, *(NOON + timedelta(hours=h) for h in range(4))),
            "state": some(rng, 1, 2, 3),
            "etag": some(rng, "", "e1", "e2"),
            "via": some(rng, "v1", "v2"),
            "links": some(rng, -1, 1, 5),
            "cash": some(rng, 10**12, -3),
            "depth": some(rng, 0, 3, 9),
            "best": some(rng, -0.5, 0.1, 1e300),
            "meta": some(rng, [], [("k", "v")], [("k", None), ("l", "w")]),
        }
        if deletes:
            rows[key][DELETED] = some(rng, False, False, True)
    return list(rows.values())


def as_table(rows: list[Row], deletes: bool) -> pa.Table:
    schema = pa.schema([f.with_nullable(True) for f in TABLE.schema])
    return pa.Table.from_pylist(rows, schema.append(pa.field(DELETED, pa.bool_())) if deletes else schema)


@pytest.mark.parametrize("deletes", [False, True], ids=["plain", "deletes"])
@pytest.mark.parametrize("sets", [1, 2, 5])
@pytest.mark.parametrize("with_base", [True, False], ids=["base", "no-base"])
def test_merge_equals_naive(engine: Any, sets: int, deletes: bool, with_base: bool) -> None:
    rng = random.Random(f"{sets} {deletes} {with_base}")
    base = random_rows(rng, 80, deletes=False) if with_base else []
    deltas = [random_rows(rng, 60, deletes and number % 2 == 0) for number in range(sets)]
    tables = [engine.values(as_table(rows, deletes and n % 2 == 0)) for n, rows in enumerate(deltas)]
    merged = merge(TABLE, engine.values(as_table(base, False)) if with_base else None, tables)
    found = engine.collect(merged.order_by("b", "a"))
    expected = as_table(naive(base, deltas), False)
    assert found.schema.equals(expected.schema)
    assert found.to_pylist() == expected.to_pylist()


def test_folding_is_associative(engine: Any) -> None:
    """Compacting any two neighbouring change sets first gives the same rows."""
    rng = random.Random(7)
    rows = [random_rows(rng, 50, deletes=False) for _ in range(3)]
    a, b, c = (engine.values(as_table(r, False)) for r in rows)
    left = merge(TABLE, merge(TABLE, a, [b]), [c])
    right = merge(TABLE, a, [merge(TABLE, None, [b, c])])
    assert engine.collect(left.order_by("b", "a")).equals(engine.collect(right.order_by("b", "a")))


def test_columns_are_pruned_and_types_kept(engine: Any) -> None:
    rows = [dict.fromkeys(TABLE.names) | {"a": 1, "b": "x", "links": 2**31 - 2}]
    one = engine.values(as_table(rows, False))
    other = engine.values(as_table([rows[0] | {"links": 1}], False))
    found = engine.collect(merge(TABLE, one, [other]).select("links"))
    assert found.column("links").type == pa.int32()
    assert found.column("links").to_pylist() == [2**31 - 1]
