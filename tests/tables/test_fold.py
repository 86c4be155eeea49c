"""Base + deltas folded in Arrow, as a whole and as a stream, against the naive merge in plain Python."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.errors import CorruptError
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import DELETED, FileEntry
from gossamer.tables import fold as module
from gossamer.tables.fold import ShardFiles, finished, fold, folded_deltas, marked, read_columns
from gossamer.tables.spec import Table
from gossamer.tables.stream import distinct_keys, stream
from tests.tables.test_merge import NOON, TABLE, Row, as_table, naive, random_rows


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["b"].encode(), row["a"]))


def write(files: LocalFiles, name: str, rows: pa.Table, group: int = 7) -> FileEntry:
    path = Path(files.url(name))
    pq.write_table(rows, path, row_group_size=group)
    return FileEntry(name, 0, rows.num_rows, path.stat().st_size)


def files_of(files: LocalFiles, name: str, rows: list[Row], deletes: bool, pieces: int, group: int) -> list[FileEntry]:
    """Rows dealt out to some files, each in order: their key ranges overlap."""
    dealt = [in_order(rows)[number::pieces] for number in range(pieces)]
    parts = [as_table(part, deletes) for part in dealt if part]
    return [write(files, f"{name}-{number}", part, group) for number, part in enumerate(parts)]


def plain(rows: pa.Table) -> list[Row]:
    found: list[Row] = rows.to_pylist()
    return found


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(str(tmp_path))


class Case:
    """A random base and its change sets, in memory and in files."""

    def __init__(self, files: LocalFiles, seed: int) -> None:
        rng = random.Random(seed)
        self.base = random_rows(rng, rng.choice([0, 1, 30, 120]), deletes=False)
        self.deltas = [random_rows(rng, rng.choice([1, 10, 80]), rng.random() < 0.5) for _ in range(rng.randrange(5))]
        group = rng.choice([1, 2, 7, 1000])
        self.base_files = files_of(files, "base", self.base, False, rng.choice([1, 3]), group)
        self.delta_files = [
            files_of(files, f"delta{n}", rows, DELETED in rows[0], rng.choice([1, 2]), group)
            for n, rows in enumerate(self.deltas)
        ]
        self.shard = ShardFiles(files, tuple(self.base_files), tuple(map(tuple, self.delta_files)))
        self.expected = as_table(in_order(naive(self.base, self.deltas)), False)


@pytest.mark.parametrize("pays", [0, module.BITMAP_PAYS], ids=["bitmap", "plain"])
@pytest.mark.parametrize("seed", range(40))
def test_fold_equals_naive(files: LocalFiles, monkeypatch: pytest.MonkeyPatch, seed: int, pays: int) -> None:
    monkeypatch.setattr(module, "BITMAP_PAYS", pays)
    case = Case(files, seed)
    rows = read_columns(files, case.base_files, TABLE.names, TABLE.schema)
    deltas = folded_deltas(case.shard, TABLE, TABLE.names)
    assert (deltas is None) == (not case.deltas)
    if deltas is not None:
        rows = fold(TABLE, rows, deltas)
    found = finished(rows)
    assert found.column_names == list(TABLE.names)
    assert in_order(plain(found)) == plain(case.expected)


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_the_base_keep_their_places(files: LocalFiles, seed: int) -> None:
    rng = random.Random(seed)
    base, delta = random_rows(rng, 60, deletes=False), random_rows(rng, 60, deletes=True)
    folded = plain(fold(TABLE, as_table(base, False), marked(as_table(delta, True))))
    assert [(row["a"], row["b"]) for row in folded[: len(base)]] == [(row["a"], row["b"]) for row in base]


@pytest.mark.parametrize("seed", range(60))
def test_stream_equals_naive(files: LocalFiles, seed: int) -> None:
    """In the table's order, each key in one piece, whatever the size of row groups and the number of files."""
    case = Case(files, seed)
    pieces = list(stream(files, TABLE, case.base_files, case.delta_files))
    found = [row for piece in pieces for row in plain(piece)]
    assert found == plain(case.expected)
    assert all(piece.schema.equals(case.expected.schema, check_metadata=False) for piece in pieces if piece.num_rows)


@pytest.mark.parametrize("sets", [1, 2, 3])
def test_keys_that_are_equal_across_row_groups(files: LocalFiles, sets: int) -> None:
    """One value of the first order column fills many row groups of every file."""
    rows = [dict.fromkeys(TABLE.names) | {"a": n, "b": "x", "at": NOON, "links": 1} for n in range(50)]
    entries = [files_of(files, f"set{n}", rows, False, 1, 4) for n in range(sets)]
    found = [row for piece in stream(files, TABLE, entries[0], entries[1:]) for row in plain(piece)]
    assert [(row["a"], row["links"]) for row in found] == [(n, sets) for n in range(50)]


def test_empty_row_groups_are_passed_over(files: LocalFiles) -> None:
    rows = as_table([dict.fromkeys(TABLE.names) | {"a": n, "b": b} for n, b in enumerate("acegi")], False)
    other = as_table([dict.fromkeys(TABLE.names) | {"a": n, "b": b} for n, b in enumerate("bdfh")], False)
    with pq.ParquetWriter(files.url("gaps"), rows.schema) as writer:
        for at in range(5):
            for length in (0, 0, 0, 1):
                writer.write_table(rows.slice(at, length))
    entries = [FileEntry("gaps", 0, 5, 0), write(files, "other", other, 2)]
    assert [row["b"] for piece in stream(files, TABLE, entries, []) for row in plain(piece)] == list("abcdefghi")


def test_nothing_at_all(files: LocalFiles) -> None:
    assert list(stream(files, TABLE, [], [])) == []
    assert folded_deltas(ShardFiles(files, (), ((), ())), TABLE, TABLE.names) is None
    assert read_columns(files, [], TABLE.names, TABLE.schema).num_rows == 0
    assert distinct_keys(files, TABLE, []) == 0


@pytest.mark.parametrize("seed", range(10))
def test_narrow_change_sets(files: LocalFiles, seed: int) -> None:
    """A change set that lacks columns changes nothing in them; one without a version decides nothing."""
    rng = random.Random(seed)
    base = random_rows(rng, 60, deletes=False)
    kept = rng.choice([("links",), ("links", "cash"), ("at", "links"), ("via",), ()])
    thin = [{n: v if n in ("a", "b", *kept) else None for n, v in row.items()} for row in random_rows(rng, 60, False)]
    if "at" in kept:  # then the newer row wins, NULLs included: that is what the rule says
        kept = (*kept, "state", "etag", "meta")
    entries = files_of(files, "base", base, False, 1, 9)
    narrow = as_table(in_order(thin), False).select(["a", "b", *(n for n in TABLE.names if n in kept)])
    delta = [write(files, "narrow", narrow, 5)]
    expected = in_order(naive(base, [thin]))
    assert [row for piece in stream(files, TABLE, entries, [delta]) for row in plain(piece)] == expected
    rows = read_columns(files, entries, TABLE.names, TABLE.schema)
    deltas = folded_deltas(ShardFiles(files, (), (tuple(delta),)), TABLE, TABLE.names)
    assert deltas is not None
    assert in_order(plain(finished(fold(TABLE, rows, deltas)))) == expected


@pytest.mark.parametrize("texts", [(), ("b", "etag")], ids=["plain", "dictionaries"])
def test_some_columns_as_dictionaries(files: LocalFiles, texts: tuple[str, ...]) -> None:
    rng = random.Random(3)
    rows, more = random_rows(rng, 50, deletes=False), random_rows(rng, 50, deletes=False)
    entries = [*files_of(files, "rows", rows, False, 3, 6), *files_of(files, "more", more, False, 1, 6)]
    found = read_columns(files, entries, ("a", "b", "etag", "links"), TABLE.schema, texts)
    assert all(pa.types.is_dictionary(found.schema.field(name).type) for name in texts)
    decoded = found.cast(pa.schema([pa.field(n, TABLE.column(n).type) for n in found.column_names]))
    assert decoded.num_rows == len(rows) + len(more)
    both = [{n: row[n] for n in found.column_names} for row in (*rows, *more)]
    assert sorted(map(str, plain(decoded))) == sorted(map(str, both))


@pytest.mark.parametrize("seed", range(10))
def test_distinct_keys(files: LocalFiles, seed: int) -> None:
    """By the integers of the key: equal to the number of keys where integers tell them apart."""
    case = Case(files, seed)
    entries = [*case.base_files, *(entry for entries in case.delta_files for entry in entries)]
    every = [row for rows in (case.base, *case.deltas) for row in rows]
    assert distinct_keys(files, TABLE, entries) == len({row["a"] for row in every})
    for_two = two_integers()
    numbers = [(row["a"] - 20, row["links"] or 0) for row in every]
    entry = write(files, "pairs", pa.table({"a": [n for n, _ in numbers], "c": [c for _, c in numbers]}))
    if every:
        assert distinct_keys(files, for_two, [entry]) == len(set(numbers))


def two_integers() -> Table:
    a, b, *_ = TABLE.columns
    columns = (a, replace(a, name="c"), b)
    return replace(TABLE, columns=columns, key=("a", "c", "b"), order=("b", "a", "c"), version_by=None)


def test_damage_is_told_by_name(files: LocalFiles) -> None:
    rows = as_table(random_rows(random.Random(1), 50, deletes=False), False)
    entry = write(files, "rows", rows)
    path = Path(files.url("rows"))
    path.write_bytes(path.read_bytes()[:-9])
    for read in readings(files, entry):
        with pytest.raises(CorruptError, match="rows: damaged Parquet file"):
            read()


def readings(files: LocalFiles, entry: FileEntry) -> Iterator[Any]:
    yield lambda: read_columns(files, [entry], ["a"], TABLE.schema)
    yield lambda: list(stream(files, TABLE, [entry], []))
    yield lambda: distinct_keys(files, TABLE, [entry])
