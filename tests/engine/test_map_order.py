"""map_batches: the order in which keys and rows reach a function, the same on every engine to the last NaN."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest

from gossamer.engine.base import Engine, SortKey
from tests.engine.data import DOUBLES, EMOJI, TEXTS, calls_of, null_first, places, runs_of, same, table
from tests.engine.functions import RANKED, TRACE, ranked, traced

INT, TEXT, DOUBLE = pa.int64(), pa.string(), pa.float64()


def last_null(value: Any) -> tuple[bool, Any]:
    """Descending: the greatest first, NULLs last."""
    return (value is None, 0 if value is None else -value)


def sortable(row: dict[str, Any]) -> Any:
    return row["name"] is not None, (row["name"] or "").encode()


SORTS: dict[str, tuple[list[SortKey], Any]] = {
    "ascending": (["n", "id"], lambda r: (null_first(r["n"]), r["id"])),
    "descending": ([ibis.desc("n"), "id"], lambda r: (last_null(r["n"]), r["id"])),
    "text": (["name", ibis.desc("id")], lambda r: (sortable(r), -r["id"])),
    "expression": ([(ibis._.id % 5).desc(), ibis._.id], lambda r: (-(r["id"] % 5), r["id"])),
    "mixed": ([ibis.asc("name"), ibis.desc("n"), "id"], lambda r: (sortable(r), last_null(r["n"]), r["id"])),
}


@pytest.mark.parametrize("how", SORTS)
def test_rows_of_a_key_come_sorted(engine: Engine, how: str) -> None:
    sort, order = SORTS[how]
    texts = [None, *TEXTS]
    rows = [
        {"id": i, "k": [None, 0, 1, -1][i % 4], "n": [None, 3, -7, 0, 2**62][i * 3 % 5], "name": texts[i % len(texts)]}
        for i in range(600)
    ]
    schema = {"id": INT, "k": INT, "n": INT, "name": TEXT}
    keyed = engine.values(table(schema, [tuple(row.values()) for row in rows]))
    out = engine.map_batches(keyed, partial(ranked, key=("k",)), RANKED, by="k", sort=sort)
    same(engine.collect(out), places(rows, lambda r: r["k"], order))


KEYS: dict[str, tuple[Any, Any]] = {
    "expression": (ibis._.n % 4, lambda r: r["n"] % 4),
    "two columns": (["a", "b"], lambda r: (r["a"], r["b"])),
    "column and expression": (["a", ibis._.n % 3], lambda r: (r["a"], r["n"] % 3)),
}


@pytest.mark.parametrize("how", KEYS)
def test_a_key_may_be_an_expression_or_several(engine: Engine, tmp_path: Path, how: str) -> None:
    by, key = KEYS[how]
    names: list[str | None] = [None, "", "x", EMOJI]
    rows = [{"id": i, "a": names[i % 4], "b": [None, 1][i // 4 % 2], "n": i % 11} for i in range(800)]
    schema = {"id": INT, "a": TEXT, "b": INT, "n": INT}
    keyed = engine.values(table(schema, [tuple(row.values()) for row in rows]))
    fn = partial(traced, folder=str(tmp_path))
    calls = calls_of(engine.collect(engine.map_batches(keyed, fn, TRACE, by=by, sort=[ibis.desc("id")])))
    seen = [runs_of([key(rows[i]) for i in call]) for call in calls]
    assert sorted(map(repr, (k for call in seen for k in call))) == sorted({repr(key(row)) for row in rows})
    for call in calls:
        for one in {repr(key(rows[i])) for i in call}:
            ids = [i for i in call if repr(key(rows[i])) == one]
            assert ids == sorted(ids, reverse=True)


def test_numbers_that_are_not_are_greatest_and_zeros_are_equal(engine: Engine) -> None:
    """Ascending: NULL, -inf, numbers, inf, NaN; -0.0 and 0.0 tie and stay as they are."""
    values: list[float | None] = [None, *DOUBLES, *reversed(DOUBLES)]
    rows = [{"id": i, "x": value} for i, value in enumerate(values)]

    def rank(value: float | None) -> tuple[int, float]:
        return (0, 0.0) if value is None else (2, 0.0) if math.isnan(value) else (1, value)

    for sort, order in (
        (["x", "id"], lambda r: (rank(r["x"]), r["id"])),
        ([ibis.desc("x"), "id"], lambda r: ([-part for part in rank(r["x"])], r["id"])),
    ):
        keyed = engine.values(table({"id": INT, "x": DOUBLE}, [tuple(row.values()) for row in rows]))
        out = engine.map_batches(keyed.mutate(k=0), partial(ranked, key=("k",)), RANKED, by="k", sort=sort)
        same(engine.collect(out), places(rows, lambda r: 0, order))


def test_a_number_as_key(engine: Engine, tmp_path: Path) -> None:
    """NaN is one key, and so are 0.0 and -0.0."""
    values = [None, *DOUBLES] * 20
    keyed = engine.values(table({"id": INT, "x": DOUBLE}, list(enumerate(values))))
    fn = partial(traced, folder=str(tmp_path))
    calls = calls_of(engine.collect(engine.map_batches(keyed, fn, TRACE, by="x", partitions=16)))
    names = ["0.0" if value == 0 else repr(value) for value in values]
    seen = [runs_of([names[i] for i in call]) for call in calls]
    assert sorted(key for call in seen for key in call) == sorted(set(names))
