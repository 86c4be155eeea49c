"""Test data with the values that go wrong, and the comparison every contract test ends in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from gossamer.tables import TABLES

EMOJI, LAST_BMP = "\U0001f600", "\uffff"  # the first is greater in UTF-8, smaller in UTF-16
TEXTS = ["", "a", "Z", "zz", "é", "e\u0301", "\u0130", LAST_BMP, EMOJI, f"{EMOJI}x", "a b\n\t'\"\\", "x" * 5000]
TIMES = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 10, tzinfo=UTC),
    datetime(1899, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 3, 31, 1, 30, 0, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]
DOUBLES = [0.0, -0.0, 1.5, -1.5, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan")]
FLOATS = [0.0, -0.0, 1.5, 1.401298464324817e-45, 3.4028234663852886e38, float("inf"), float("-inf"), float("nan")]

TYPES = {str(field.type): field.type for spec in TABLES.values() for field in spec.schema}
EVERY_TYPE = pa.schema([*TYPES.items(), *(pa.field(f"{name}!", kind, nullable=False) for name, kind in TYPES.items())])


def examples(kind: pa.DataType) -> list[Any]:
    """Values of a type, the odd ones included; the last is always NULL."""
    if pa.types.is_integer(kind):
        top = 2 ** (kind.bit_width - 1)
        return [0, 1, -1, top - 1, -top, None]
    if pa.types.is_map(kind):
        values = examples(kind.item_type)
        keys = [text for text in TEXTS if len(text) < 100]
        return [[], [("", values[0])], list(zip(keys, values * 5, strict=False)), [("z", None), ("a", values[1])], None]
    if pa.types.is_list(kind):
        return [[], [None], examples(kind.value_type), [""], None]
    known: dict[pa.DataType, list[Any]] = {
        pa.string(): TEXTS,
        pa.binary(): [b"", b"\x00", b"\xff\xfe\x00", "é".encode(), bytes(range(256))],
        pa.bool_(): [True, False],
        pa.float64(): DOUBLES,
        pa.float32(): FLOATS,
        pa.timestamp("us", tz="UTC"): TIMES,
    }
    return [*known[kind], None]


def odd_rows(schema: pa.Schema, count: int = 24) -> pa.Table:
    """A table in which every column runs through its odd values; NULLs only where the schema lets them."""
    columns = []
    for number, field in enumerate(schema):
        values = examples(field.type)
        values = values if field.nullable else values[:-1]
        columns.append(pa.array([values[(row + number) % len(values)] for row in range(count)], field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def nullable(schema: pa.Schema) -> pa.Schema:
    """The schema with every column nullable, as engines give tables back."""
    return pa.schema([field.with_nullable(True) for field in schema])


def table(schema: dict[str, pa.DataType], rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Rows as an Arrow table."""
    found = list(rows)
    columns = [pa.array([row[i] for row in found], kind) for i, kind in enumerate(schema.values())]
    return pa.Table.from_arrays(columns, names=list(schema))


def same(actual: pa.Table, expected: pa.Table, *, in_order: bool = False) -> None:
    """Assert that two tables have the same schema and the same rows, to the bit: NaN is NaN, and -0.0 is not 0.0."""
    assert actual.schema.equals(expected.schema), f"{actual.schema}\n--- expected ---\n{expected.schema}"
    assert lines(actual, in_order) == lines(expected, in_order)


def lines(rows: pa.Table, in_order: bool) -> list[str]:
    """Each row as text in which every bit shows."""
    found = [repr(row) for row in rows.to_pylist(maps_as_pydicts=None)]
    return found if in_order else sorted(found)


def calls_of(trace: pa.Table) -> list[list[int]]:
    """The ids each call saw, in the order it saw them."""
    calls: dict[str, dict[int, int]] = defaultdict(dict)
    for row in trace.to_pylist():
        calls[row["call"]][row["place"]] = row["id"]
    assert all(sorted(seen) == list(range(len(seen))) for seen in calls.values())
    return [[seen[place] for place in sorted(seen)] for seen in calls.values()]


def runs_of(values: list[Any]) -> list[Any]:
    """The values with neighbouring repetitions left out."""
    return [v for i, v in enumerate(values) if i == 0 or v != values[i - 1]]


def null_first(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


def places(rows: list[dict[str, Any]], key: Any, order: Any) -> pa.Table:
    """The expected place of each row within its key."""
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[repr(key(row))].append(row)
    placed = [(row["id"], n) for group in groups.values() for n, row in enumerate(sorted(group, key=order))]
    return table({"id": pa.int64(), "place": pa.int64()}, placed)
