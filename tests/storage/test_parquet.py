"""Parquet as it is written: exact schemas, complete files or none, and damage that is named."""

from __future__ import annotations

import gc
import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from xxhash import xxh3_64_hexdigest

from gossamer.errors import CorruptError, StorageError
from gossamer.storage import parquet
from gossamer.storage.files import Files
from gossamer.storage.parquet import FileEntry, PartWriter, Target, blame, entries_of, entries_table, write_part
from tests.storage.building import SCHEMA, descriptors, names, rows


def stored(files: Files, path: str) -> pa.Table:
    return pq.read_table(io.BytesIO(files.read(path)))


def test_rows_come_back_as_they_were(files: Files):
    target = Target(files, "tables/t/run", SCHEMA, attempt=7, metadata={"gossamer.run": "run"})
    entry = write_part(target, [rows(0, 3), rows(3, 0), rows(3, 4)], 2, 5)
    assert entry is not None
    stored_bytes = files.read(entry.path)
    digest = xxh3_64_hexdigest(stored_bytes)
    assert entry == FileEntry("tables/t/run/part-00002-00005-007.parquet", 2, 7, len(stored_bytes), 0, digest)
    table = stored(files, entry.path)
    assert table.schema.equals(SCHEMA)
    assert table.schema.metadata[b"gossamer.run"] == b"run"
    assert table["url_fp"].to_pylist() == list(range(7))
    assert list(files.list("tables")) == [(entry.path, entry.bytes)]


def test_no_rows_make_no_file(files: Files):
    assert write_part(Target(files, "t", SCHEMA), [rows(0, 0)], 0, 0) is None
    assert names(files, "") == []


def test_deletes_are_counted(files: Files):
    schema = SCHEMA.append(pa.field("_deleted", pa.bool_()))
    batch = pa.RecordBatch.from_arrays([*rows(0, 3).columns, pa.array([True, None, True])], schema=schema)
    entry = write_part(Target(files, "t", schema), [batch], 0, 0)
    assert entry is not None
    assert (entry.rows, entry.deletes) == (3, 2)


def test_row_groups_have_a_size_whatever_the_batches(files: Files, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 10)
    entry = write_part(Target(files, "t", SCHEMA), [rows(n * 3, 3) for n in range(11)], 0, 0)
    assert entry is not None
    metadata = pq.ParquetFile(io.BytesIO(files.read(entry.path))).metadata
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [10, 2, 10, 2, 9]
    assert metadata.row_group(0).column(0).statistics.max == 9


def test_a_failing_source_leaves_no_file_and_no_descriptor(files: Files):
    def source() -> Iterator[pa.RecordBatch]:
        yield rows()
        raise RuntimeError("the parser died")

    write_part(Target(files, "warm", SCHEMA), [rows()], 0, 0)
    before = descriptors()
    for _ in range(3):
        with pytest.raises(RuntimeError):
            write_part(Target(files, "t", SCHEMA), source(), 0, 0)
    gc.collect()  # pyarrow ends its file when it is let go, which must not reach ours
    assert names(files, "t") == []
    if "://" not in files.root:
        assert descriptors() == before


def test_an_aborted_part_leaves_nothing(files: Files):
    writer = PartWriter(Target(files, "t", SCHEMA), 0, 0)
    writer.write(rows())
    writer.abort()
    del writer
    gc.collect()
    assert names(files, "t") == []


def test_narrower_and_wider_columns_are_cast(files: Files):
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, 2], pa.int8()), pa.array(["a", None], pa.large_string())], ["url_fp", "url"]
    )
    entry = write_part(Target(files, "t", SCHEMA), [batch], 0, 0)
    assert entry is not None
    assert stored(files, entry.path).to_pylist() == [{"url_fp": 1, "url": "a"}, {"url_fp": 2, "url": None}]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"url": pa.array(["a"])}, "column url_fp is missing"),
        ({"url_fp": pa.array([1]), "url": pa.array(["a"]), "x": pa.array([1])}, "column x is not one of the table's"),
        (
            {"url_fp": pa.array([None], pa.int64()), "url": pa.array(["a"])},
            "column url_fp must not be NULL, but 1 rows",
        ),
        ({"url_fp": pa.array(["1"]), "url": pa.array(["a"])}, "column url_fp holds int64, not string"),
        ({"url_fp": pa.array([1.0]), "url": pa.array(["a"])}, "column url_fp holds int64, not double"),
        ({"url_fp": pa.array([2**63], pa.uint64()), "url": pa.array(["a"])}, "which a value does not fit"),
    ],
)
@pytest.mark.parametrize("files", ["local"], indirect=True)
def test_rows_of_another_shape_are_refused(files: Files, columns: dict[str, Any], reason: str):
    batch = pa.RecordBatch.from_pydict(columns)
    with pytest.raises(StorageError, match=reason):
        write_part(Target(files, "t", SCHEMA), [batch], 0, 0)
    assert names(files, "t") == []


def test_entries_travel_as_rows():
    entries = [FileEntry("b", 1, 2, 3), FileEntry("a", 1, 2, 3, 4), FileEntry("c", 0, 0, 0)]
    assert entries_of(entries_table(entries)) == [entries[2], entries[1], entries[0]]


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "bits", "text"])
def test_the_file_behind_a_failure_is_named(files: Files, damage: str):
    target = Target(files, "tables/t/run", SCHEMA)
    good, bad = (write_part(target, [rows(0, 5000)], 0, task) for task in (0, 1))
    assert good is not None
    assert bad is not None
    assert blame([files.url(good.path), files.url(bad.path)], ValueError("query failed")) is None
    data = files.read(bad.path)
    middle = data[:100] + bytes(b ^ 0xFF for b in data[100:200]) + data[200:]
    broken = {"empty": b"", "cut": data[:-10], "bits": middle, "text": b"<html>"}
    files.delete(bad.path)
    if damage != "missing":
        files.replace(bad.path, broken[damage])
    error = blame([files.url(good.path), files.url(bad.path)], ValueError("query failed"))
    assert isinstance(error, CorruptError)
    assert str(error).startswith(files.url(bad.path))
    assert "\n" not in str(error)


def test_a_lack_of_memory_is_nobodys_fault():
    assert blame(["/no/such/file"], MemoryError("Out of Memory Error: could not allocate")) is None


def test_an_error_of_the_device_is_not_taken_for_damage(files: Files, monkeypatch: pytest.MonkeyPatch):
    entry = write_part(Target(files, "t", SCHEMA), [rows()], 0, 0)
    assert entry is not None

    def failing(self: Files, path: str) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(type(files), "open", failing)
    error = blame([files.url(entry.path)], ValueError("query failed"))
    assert isinstance(error, StorageError)
    assert "check the disk" in str(error)
