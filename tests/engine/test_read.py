"""read, values, collect: the same tables in and out of every engine."""

from __future__ import annotations

from pathlib import Path

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.engine.base import Engine
from gossamer.errors import EngineError
from tests.engine.data import EMOJI, EVERY_TYPE, LAST_BMP, TIMES, nullable, odd_rows, same, table

TIME = pa.timestamp("us", tz="UTC")
META = pa.map_(pa.string(), pa.string())


def test_values_come_back_as_they_went_in(engine: Engine) -> None:
    rows = odd_rows(EVERY_TYPE)
    same(engine.collect(engine.values(rows)), rows.cast(nullable(EVERY_TYPE)))


def test_null_everywhere(engine: Engine) -> None:
    schema = nullable(EVERY_TYPE)
    rows = pa.Table.from_arrays([pa.nulls(3, field.type) for field in schema], schema=schema)
    same(engine.collect(engine.values(rows)), rows)


def test_an_empty_table_keeps_its_schema(engine: Engine) -> None:
    same(engine.collect(engine.values(EVERY_TYPE.empty_table())), nullable(EVERY_TYPE).empty_table())
    same(engine.collect(engine.read([], EVERY_TYPE)), nullable(EVERY_TYPE).empty_table())


def test_files_written_by_pyarrow_are_read_as_they_are(engine: Engine, tmp_path: Path) -> None:
    rows = odd_rows(EVERY_TYPE)
    pq.write_table(rows, tmp_path / "odd.parquet")
    read = engine.read([str(tmp_path / "odd.parquet")], rows.schema)
    same(engine.collect(read), rows.cast(nullable(EVERY_TYPE)))


def test_read_puts_several_files_together(engine: Engine, tmp_path: Path) -> None:
    parts = [table({"id": pa.int64()}, [(10 * n + i,) for i in range(n)]) for n in range(4)]  # the first has no rows
    for number, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"{number}.parquet")
    read = engine.read([str(tmp_path / f"{n}.parquet") for n in range(4)], parts[0].schema)
    same(engine.collect(read), pa.concat_tables(parts))


def test_read_gives_null_for_columns_the_files_lack(engine: Engine, tmp_path: Path) -> None:
    pq.write_table(pa.table({"spare": ["x", "y"], "id": [1, 2]}), tmp_path / "old.parquet")
    wanted = {"added": TIME, "id": pa.int64(), "meta": META, "list": pa.list_(pa.string()), "flag": pa.bool_()}
    read = engine.read([str(tmp_path / "old.parquet")], pa.schema(list(wanted.items())))
    same(engine.collect(read), table(wanted, [(None, 1, None, None, None), (None, 2, None, None, None)]))


@pytest.mark.parametrize(
    ("stored", "wanted", "values"),
    [
        (pa.int32(), pa.int64(), [1, -(2**31), None]),
        (pa.int8(), pa.int16(), [-128, 127, None]),
        (pa.int64(), pa.int32(), [1, -(2**31), None]),
        (pa.int32(), pa.int8(), [-128, 127, None]),
        (pa.float32(), pa.float64(), [1.5, float("inf"), None]),
        (pa.int32(), pa.float64(), [1, 2**31 - 1, None]),
        (pa.timestamp("ms", tz="UTC"), TIME, [TIMES[0], TIMES[3], None]),
        (pa.int64(), pa.string(), [1, -7, None]),
    ],
    ids=str,
)
def test_read_casts_to_the_schema(
    engine: Engine, tmp_path: Path, stored: pa.DataType, wanted: pa.DataType, values: list[object]
) -> None:
    column = pa.array(values, stored)
    pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet")
    read = engine.read([str(tmp_path / "x.parquet")], pa.schema([("x", wanted)]))
    same(engine.collect(read), pa.table({"x": column.cast(wanted)}))


@pytest.mark.parametrize(("stored", "wanted"), [(pa.int64(), pa.int32()), (pa.int32(), pa.int8())], ids=str)
def test_read_refuses_a_value_that_does_not_fit(
    engine: Engine, tmp_path: Path, stored: pa.DataType, wanted: pa.DataType
) -> None:
    pq.write_table(pa.table({"x": pa.array([1, 2 ** (stored.bit_width - 2)], stored)}), tmp_path / "x.parquet")
    with pytest.raises(EngineError, match="cast"):
        engine.collect(engine.read([str(tmp_path / "x.parquet")], pa.schema([("x", wanted)])))


def test_any_folder_name_will_do(engine: Engine, tmp_path: Path) -> None:
    decoys = ["a", "ab", "abc", "qq"]  # what a pattern would match
    odd = ["a b", "it's", "100%", "a%20b", "a[b]c", "a*", "{a,b}", "q?", "a#b", "a:b", "née", EMOJI, "a\\b", "~"]
    for number, name in enumerate(odd + decoys):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"x": [number]}), tmp_path / name / "x.parquet")
    read = engine.read([str(tmp_path / name / "x.parquet") for name in odd], pa.schema([("x", pa.int64())]))
    same(engine.collect(read), pa.table({"x": range(len(odd))}))


def test_collect_computes_an_expression_over_both_kinds_of_table(engine: Engine, tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": ["a", "b", None], "n": [1, 2, 3]}), tmp_path / "x.parquet")
    read = engine.read([str(tmp_path / "x.parquet")], pa.schema([("k", pa.string()), ("n", pa.int64())]))
    names = engine.values(table({"k": pa.string(), "name": pa.string()}, [("a", EMOJI), (None, "none")]))
    joined = read.left_join(names, "k").select("k", "n", "name").mutate(n=ibis._.n * 10)
    expected = {"k": pa.string(), "n": pa.int64(), "name": pa.string()}
    same(engine.collect(joined), table(expected, [("a", 10, EMOJI), ("b", 20, None), (None, 30, None)]))


def test_times_are_taken_apart_in_utc(engine: Engine) -> None:
    times = engine.values(table({"t": TIME}, [(t,) for t in TIMES]))
    parts = times.select(y=times.t.year().cast("int32"), h=times.t.hour().cast("int32"))
    same(engine.collect(parts), table({"y": pa.int32(), "h": pa.int32()}, [(t.year, t.hour) for t in TIMES]))


def test_text_is_compared_by_its_bytes(engine: Engine) -> None:
    texts = ["", "a", "Z", "é", "e\u0301", LAST_BMP, EMOJI]
    pairs = table({"a": pa.string(), "b": pa.string()}, [(a, b) for a in texts for b in texts])
    less = engine.values(pairs).mutate(less=ibis._.a < ibis._.b)
    expected = pairs.append_column("less", pa.array([a.encode() < b.encode() for a in texts for b in texts]))
    same(engine.collect(less), expected)
