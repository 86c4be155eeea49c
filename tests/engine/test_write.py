"""write: sharded and ordered files that say truly what they hold, and rows that do not fit refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.engine.base import Engine
from gossamer.engine.embedded import EmbeddedEngine
from gossamer.errors import StorageError
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import DELETED, FileEntry, Target
from gossamer.tables import TABLES
from gossamer.urls.keys import fingerprint
from tests.engine.data import EMOJI, LAST_BMP, nullable, odd_rows, same, table

INT, TEXT = pa.int64(), pa.string()
FP = pa.field("fp", INT, nullable=False)
SCHEMA = pa.schema([FP, pa.field("rowkey", TEXT, nullable=False), ("n", pa.int32())])
NAMES = ["", "a", "Z", "é", LAST_BMP, EMOJI, f"{EMOJI}x"]


def rows_of(count: int) -> pa.Table:
    rows = [
        (fingerprint(f"u{i}"), f"{NAMES[i % len(NAMES)]}{i // len(NAMES)}", i if i % 3 else None) for i in range(count)
    ]
    return table({"fp": INT, "rowkey": TEXT, "n": pa.int32()}, rows)


def target(folder: Path, schema: pa.Schema = SCHEMA, **more: Any) -> Target:
    return Target(LocalFiles(str(folder)), "t/run", schema, **more)


def content(folder: Path, entry: FileEntry) -> pa.Table:
    """The rows of a written file, after checking what its entry says of it."""
    path = folder / entry.path
    rows = pq.ParquetFile(path).read()
    assert (entry.rows, entry.bytes) == (rows.num_rows, path.stat().st_size)
    assert rows.num_rows
    return rows


def everything(folder: Path, entries: list[FileEntry]) -> pa.Table:
    """All rows written; every file in the folder is one of those told."""
    assert {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} == {e.path for e in entries}
    return pa.concat_tables([content(folder, entry) for entry in entries])


@pytest.mark.parametrize("shards", [1, 8, 32])
def test_shards_hold_their_rows_in_order(engine: Engine, tmp_path: Path, shards: int) -> None:
    rows = rows_of(5000)
    wanted = target(tmp_path, order=("rowkey", "fp"), key=("fp", "rowkey"), shard_by="fp", shards=shards)
    entries = engine.write(engine.values(rows), wanted)
    assert [entry.shard for entry in entries] == list(range(shards))
    same(everything(tmp_path, entries), rows.cast(SCHEMA))
    for entry in entries:
        found = content(tmp_path, entry).to_pylist()
        assert {row["fp"] & (shards - 1) for row in found} == {entry.shard}
        assert found == sorted(found, key=lambda row: (row["rowkey"].encode(), row["fp"]))


def test_a_shard_without_rows_has_no_file(engine: Engine, tmp_path: Path) -> None:
    rows = table({"fp": INT, "rowkey": TEXT, "n": pa.int32()}, [(-1, "a", None), (15, "b", 1), (2, "c", 2)])
    entries = engine.write(engine.values(rows), target(tmp_path, order=("rowkey",), shard_by="fp", shards=16))
    assert [(entry.shard, entry.rows) for entry in entries] == [(2, 1), (15, 2)]
    assert engine.write(engine.values(rows.slice(0, 0)), target(tmp_path / "none", shard_by="fp", shards=4)) == []


def test_without_shards_files_follow_each_other_in_order(engine: Engine, tmp_path: Path) -> None:
    rows = rows_of(5000)
    entries = engine.write(engine.values(rows), target(tmp_path, order=("rowkey", "fp"), key=("rowkey",)))
    assert {entry.shard for entry in entries} == {0}
    found = everything(tmp_path, entries).to_pylist()
    assert found == sorted(rows.to_pylist(), key=lambda row: (row["rowkey"].encode(), row["fp"]))


def test_without_shards_or_order_rows_are_all_there(engine: Engine, tmp_path: Path) -> None:
    rows = rows_of(1000)
    same(everything(tmp_path, engine.write(engine.values(rows), target(tmp_path))), rows.cast(SCHEMA))


def test_null_comes_first_in_the_order(engine: Engine, tmp_path: Path) -> None:
    rows = table({"fp": INT, "n": pa.int32()}, [(1, 5), (2, None), (3, -1), (4, None)])
    schema = pa.schema([FP, ("n", pa.int32())])
    for shard_by in (None, "fp"):
        folder = tmp_path / str(shard_by)
        entries = engine.write(engine.values(rows), target(folder, schema, order=("n", "fp"), shard_by=shard_by))
        assert everything(folder, entries).column("fp").to_pylist() == [2, 4, 3, 1]


def test_every_column_of_our_tables_is_read_back_as_it_was_written(engine: Engine, tmp_path: Path) -> None:
    """Columns are encoded by their names, so all the names of ours are written, with odd values, and read by the engine."""
    schema = pa.schema(list({field.name: field for spec in TABLES.values() for field in spec.schema}.values()))
    rows = odd_rows(schema, 60)
    wanted = target(tmp_path, schema, order=("rowkey", "url_fp"), shard_by="url_fp", shards=4)
    entries = engine.write(engine.values(rows), wanted)
    same(everything(tmp_path, entries), rows)
    urls = [str(tmp_path / entry.path) for entry in entries]
    same(engine.collect(engine.read(urls, schema)), rows.cast(nullable(schema)))


@pytest.fixture(scope="module")
def other_engine() -> Any:
    other = EmbeddedEngine(workers=0)
    yield other
    other.close()


def test_files_of_one_engine_are_equal_on_another(engine: Engine, other_engine: Engine, tmp_path: Path) -> None:
    rows = rows_of(2000)
    shape: dict[str, Any] = {"order": ("rowkey", "fp"), "shard_by": "fp", "shards": 4}
    here = engine.write(engine.values(rows), target(tmp_path / "a", **shape))
    there = other_engine.write(other_engine.values(rows), target(tmp_path / "b", **shape))
    for one, two in zip(here, there, strict=True):
        assert (one.shard, one.rows) == (two.shard, two.rows)
        same(content(tmp_path / "a", one), content(tmp_path / "b", two), in_order=True)
    for reader, folder, entries in ((engine, "b", there), (other_engine, "a", here)):
        read = reader.read([str(tmp_path / folder / entry.path) for entry in entries], SCHEMA)
        same(reader.collect(read), rows)


@pytest.mark.parametrize("shape", [{"shard_by": "fp", "shards": 4}, {}], ids=["sharded", "whole"])
@pytest.mark.parametrize("gap", [1, 2500], ids=["neighbours", "apart"])
def test_a_key_that_comes_twice_is_refused(engine: Engine, tmp_path: Path, shape: dict[str, Any], gap: int) -> None:
    rows = rows_of(5000).to_pylist()
    rows[100 + gap] = {**rows[100], "n": 77}
    wanted = target(tmp_path, order=("fp", "rowkey", "n"), key=("fp", "rowkey"), **shape)
    with pytest.raises(StorageError, match=rf"two rows with the same key .*{rows[100]['fp']}"):
        engine.write(engine.values(pa.Table.from_pylist(rows, nullable(SCHEMA))), wanted)


def test_a_key_is_compared_as_a_whole(engine: Engine, tmp_path: Path) -> None:
    """Rows that share each column of the key with another row, but never all of them."""
    rows = [(a, f"{b}", None) for a, b in itertools.product(range(30), range(30))]
    wanted = target(tmp_path, order=("rowkey", "fp"), key=("fp", "rowkey"), shard_by="fp", shards=2)
    entries = engine.write(engine.values(table({"fp": INT, "rowkey": TEXT, "n": pa.int32()}, rows)), wanted)
    assert sum(entry.rows for entry in entries) == 900


REFUSED: dict[str, tuple[pa.Table, str]] = {
    "null": (pa.table({"fp": [1, 2], "rowkey": ["a", None], "n": [1, 2]}), "column rowkey must not be NULL, but 1 row"),
    "null shard": (pa.table({"fp": [1, None], "rowkey": ["a", "b"], "n": [1, 2]}), "column fp must not be NULL"),
    "text for number": (pa.table({"fp": [1], "rowkey": ["a"], "n": ["7"]}), "column n holds int32, not .*string"),
    "number for text": (pa.table({"fp": [1], "rowkey": [7], "n": [7]}), "column rowkey holds string, not int64"),
    "fraction": (pa.table({"fp": [1], "rowkey": ["a"], "n": [7.0]}), "column n holds int32, not double"),
    "too large": (
        pa.table({"fp": [1], "rowkey": ["a"], "n": [2**31]}),
        "column n holds int32, which a value does not fit",
    ),
    "missing": (pa.table({"fp": [1], "rowkey": ["a"]}), "column n is missing"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_rows_that_do_not_fit_are_refused(engine: Engine, tmp_path: Path, why: str) -> None:
    rows, message = REFUSED[why]
    for shape in ({"shard_by": "fp", "shards": 4}, {"order": ("rowkey",)}):
        with pytest.raises(StorageError, match=message):
            engine.write(engine.values(rows), target(tmp_path / str(len(shape)), **shape))
        assert all(pq.read_table(left).num_rows for left in tmp_path.rglob("*.parquet"))  # what was begun is taken back


def test_wider_numbers_are_stored_as_the_schema_says(engine: Engine, tmp_path: Path) -> None:
    wide = engine.values(pa.table({"fp": [1, 1, 2], "rowkey": ["a", "a", "b"], "n": pa.array([3, 4, 5], INT)}))
    summed = wide.group_by("fp", "rowkey").aggregate(n=wide.n.sum())  # DuckDB sums in 128 bits
    found = everything(tmp_path, engine.write(summed, target(tmp_path)))
    same(found, table({"fp": INT, "rowkey": TEXT, "n": pa.int32()}, [(1, "a", 7), (2, "b", 5)]).cast(SCHEMA))


def test_more_columns_than_the_target_has_are_left_out(engine: Engine, tmp_path: Path) -> None:
    rows = rows_of(10)
    more = engine.values(rows.add_column(0, "more", pa.array(range(10))))
    same(everything(tmp_path, engine.write(more, target(tmp_path))), rows.cast(SCHEMA))


def test_deletions_are_counted(engine: Engine, tmp_path: Path) -> None:
    marks = pa.array([True, False, None, True])
    schema = pa.schema([FP, (DELETED, pa.bool_())])
    rows = pa.table({"fp": [0, 1, 2, 3], DELETED: marks})
    entries = engine.write(engine.values(rows), target(tmp_path, schema, shard_by="fp", shards=2))
    assert [(entry.shard, entry.rows, entry.deletes) for entry in entries] == [(0, 2, 1), (1, 2, 1)]
