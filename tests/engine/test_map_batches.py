"""map_batches: whole keys, each function called once per partition, long keys in little memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.engine.base import Engine
from gossamer.errors import StorageError
from tests.engine.data import (
    EMOJI,
    EVERY_TYPE,
    LAST_BMP,
    calls_of,
    null_first,
    nullable,
    odd_rows,
    places,
    runs_of,
    same,
    table,
)
from tests.engine.functions import PEAK, RANKED, TRACE, echo, first_only, nothing, peak, ranked, traced

INT, TEXT, DOUBLE = pa.int64(), pa.string(), pa.float64()
BOUND_MB = 300  # a worker that held the long key would need more than 500; 100 to 160 is what it takes


@pytest.mark.parametrize("partitions", [None, 1, 3])
def test_a_key_reaches_one_call_and_keys_come_in_order(engine: Engine, tmp_path: Path, partitions: int | None) -> None:
    texts = ["", "a", "Z", "é", LAST_BMP, EMOJI, None, *(f"k{n}" for n in range(40))]
    rows = [(n, texts[n * 7 % len(texts)]) for n in range(5000)]
    keyed = engine.values(table({"id": INT, "k": TEXT}, rows))
    trace = engine.map_batches(keyed, partial(traced, folder=str(tmp_path)), TRACE, by="k", partitions=partitions)
    keys = dict(rows)
    calls = [[keys[i] for i in call] for call in calls_of(engine.collect(trace))]
    assert sum(len(call) for call in calls) == len(rows)
    seen = [runs_of(call) for call in calls]
    assert sorted((key for call in seen for key in call), key=null_first) == sorted(set(texts), key=null_first)
    for call in seen:
        encoded = [None if key is None else key.encode() for key in call]
        assert encoded == sorted(encoded, key=null_first)
    assert len(calls) == 1 if partitions == 1 else 1 < len(calls) <= (partitions or 4)


def test_each_filled_partition_is_one_call_and_empty_ones_are_none(engine: Engine, tmp_path: Path) -> None:
    rows = engine.values(table({"id": INT, "k": INT}, [(n, n % 3) for n in range(300)]))
    trace = engine.map_batches(rows, partial(traced, folder=str(tmp_path)), TRACE, by="k", partitions=64)
    seen = calls_of(engine.collect(trace))
    again = calls_of(engine.collect(trace.filter(ibis._.id >= 0)))
    assert sorted(seen) == sorted(again)
    assert len(list(tmp_path.iterdir())) == len(seen) <= 3  # reading the result twice has not run it twice
    few = engine.map_batches(rows.filter(rows.id < 2), partial(traced, folder=str(tmp_path)), TRACE, partitions=8)
    assert len(list(tmp_path.iterdir())) - len(seen) == len(calls_of(engine.collect(few))) <= 2


@pytest.mark.parametrize("partitions", [None, 5])
def test_without_a_key_every_row_is_seen_once_and_all_workers_work(
    engine: Engine, tmp_path: Path, partitions: int | None
) -> None:
    rows = engine.values(table({"id": INT}, [(n,) for n in range(1000)]))
    trace = engine.map_batches(rows, partial(traced, folder=str(tmp_path)), TRACE, partitions=partitions)
    calls = calls_of(engine.collect(trace))
    assert sorted(i for call in calls for i in call) == list(range(1000))
    assert len(calls) == len(list(tmp_path.iterdir()))
    assert len(calls) == partitions if partitions else len(calls) >= 2


def test_no_rows_are_no_call(engine: Engine, tmp_path: Path) -> None:
    empty = engine.values(table({"id": INT}, []))
    for by in (None, "id"):
        trace = engine.map_batches(empty, partial(traced, folder=str(tmp_path)), TRACE, by=by)
        same(engine.collect(trace), TRACE.empty_table())
    assert not list(tmp_path.iterdir())


def test_a_function_may_give_nothing_or_stop_early(engine: Engine) -> None:
    rows = engine.values(table({"id": INT, "k": INT}, [(n, n % 3) for n in range(300)]))
    gone = engine.map_batches(rows, nothing, RANKED, by="k")
    same(engine.collect(gone), RANKED.empty_table())
    first = engine.map_batches(
        rows, first_only, pa.schema([("id", INT), ("k", INT)]), by="k", sort=["id"], partitions=1
    )
    same(engine.collect(first), table({"id": INT, "k": INT}, [(0, 0)]))


def test_every_type_passes_through_a_function(engine: Engine) -> None:
    rows = odd_rows(EVERY_TYPE)
    expected = rows.cast(nullable(EVERY_TYPE))
    same(engine.collect(engine.map_batches(engine.values(rows), echo, EVERY_TYPE)), expected)
    same(
        engine.collect(engine.map_batches(engine.values(rows), echo, EVERY_TYPE, by="string", sort=["double"])),
        expected,
    )


def test_skew(engine: Engine) -> None:
    """One key has nine rows of ten."""
    rows = [{"id": i, "k": 0 if i % 10 else i} for i in range(50_000)]
    keyed = engine.values(table({"id": INT, "k": INT}, [tuple(row.values()) for row in rows]))
    out = engine.map_batches(keyed, partial(ranked, key=("k",)), RANKED, by="k", sort=[ibis.desc("id")])
    same(engine.collect(out), places(rows, lambda r: r["k"], lambda r: -r["id"]))


@pytest.mark.cluster(wanted=False)  # the worker whose memory is measured is the same process there
def test_one_key_of_five_million_rows_in_bounded_memory(engine: Engine, tmp_path: Path) -> None:
    step, schema = 500_000, pa.schema([("id", INT), ("k", INT), ("text", TEXT)])
    with pq.ParquetWriter(tmp_path / "long.parquet", schema) as writer:
        for start in reversed(range(0, 5_000_000, step)):
            text = pa.array(["x" * 60] * step)
            writer.write_table(
                pa.table([pa.array(range(start, start + step)), pa.array([7] * step), text], schema=schema)
            )
    rows = engine.read([str(tmp_path / "long.parquet")], schema)
    found = engine.collect(engine.map_batches(rows, peak, PEAK, by="k", sort=["id"])).to_pylist()
    assert [(row["rows"], row["ordered"]) for row in found] == [(5_000_000, True)]
    assert found[0]["peak_mb"] <= BOUND_MB


def test_sort_needs_a_key(engine: Engine) -> None:
    rows = engine.values(table({"id": INT}, [(1,)]))
    with pytest.raises(ValueError, match="sort"):
        engine.map_batches(rows, echo, pa.schema([("id", INT)]), sort=["id"])


def test_rows_that_do_not_fit_the_schema_are_refused(engine: Engine) -> None:
    rows = engine.values(table({"id": INT, "k": TEXT}, [(1, "a"), (2, None)]))
    for schema, message in (
        (pa.schema([("id", INT), ("k", TEXT), ("more", INT)]), "more is missing"),
        (pa.schema([("id", INT)]), "column k"),
        (pa.schema([("id", INT), pa.field("k", TEXT, nullable=False)]), "k must not be NULL"),
        (pa.schema([("id", INT), ("k", INT)]), "column k"),
    ):
        with pytest.raises(StorageError, match=message):
            engine.map_batches(rows, echo, schema)
