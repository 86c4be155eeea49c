"""What a table may be, and that ours are."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from gossamer.tables import TABLES
from gossamer.tables.spec import TIMESTAMP, Column, Kind, Merge, Table

GOOD = Table(
    "t",
    "A table.",
    Kind.KEYED,
    (
        Column("k", pa.int64(), "Key.", Merge.KEY, nullable=False),
        Column("n", pa.int32(), "Number.", Merge.SUM),
        Column("at", TIMESTAMP, "Time.", Merge.MAX, measured=True),
    ),
    key=("k",),
    order=("k",),
    shard_by="k",
    version_by="at",
)
TWICE = Column("n", pa.int32(), "Again.")
FLOAT = Column("f", pa.float64(), "Float.", Merge.SUM)
FALSE_KEY = Column("f", pa.int64(), "No key.", Merge.KEY)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"key": ("x",)}, "x is not one of its columns"),
        ({"order": ("k", "x")}, "x is not one of its columns"),
        ({"shard_by": "x"}, "x is not one of its columns"),
        ({"version_by": "x"}, "x is not one of its columns"),
        ({"columns": (*GOOD.columns, TWICE)}, "declared twice"),
        ({"columns": (*GOOD.columns, FLOAT)}, "f is summed, so it must be an integer"),
        ({"columns": (*GOOD.columns, FALSE_KEY)}, "f must be merged as a key column exactly if it is one"),
        ({"key": ("k", "n")}, "n must be merged as a key column exactly if it is one"),
    ],
)
def test_bad_tables_are_refused(change: dict, said: str):
    with pytest.raises(ValueError, match=said):
        replace(GOOD, **change)


def test_schema_and_stable_columns():
    assert GOOD.names == ("k", "n", "at")
    assert GOOD.stable == ("k", "n")
    assert GOOD.schema == pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int32()), ("at", TIMESTAMP)])
    assert GOOD.column("n").merge is Merge.SUM


def test_with_columns_adds_behind_and_never_twice():
    more = GOOD.with_columns((Column("x", pa.string(), "New."), TWICE))
    assert more.names == ("k", "n", "at", "x")
    assert more.column("n").merge is Merge.SUM
    assert GOOD.names == ("k", "n", "at")


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
class TestOurs:
    def test_it_is_explained(self, table: Table):
        assert table.doc.endswith(".")
        for column in table.columns:
            assert column.doc, column.name
            assert column.doc.endswith("."), column.name
            assert "|" not in column.doc, "would break the table in docs/tables.md"

    def test_sorted_rows_have_a_total_order(self, table: Table):
        assert table.key
        if table.order:
            assert set(table.key) <= set(table.order)

    def test_keys_are_never_null(self, table: Table):
        assert not any(table.column(name).nullable for name in (*table.key, *table.order))

    def test_codes_have_names(self, table: Table):
        for column in table.columns:
            if column.type == pa.int8() and column.name != "distance":
                assert column.labels, f"{column.name}: which codes does it have?"
            if column.labels:
                assert column.type == pa.int8()
                assert all(0 < label.value < 128 for label in column.labels)

    def test_shards_are_cut_by_a_fingerprint(self, table: Table):
        if table.shard_by:
            assert table.column(table.shard_by).type == pa.int64()
        assert table.shard_by or table.kind is not Kind.KEYED

    def test_the_newer_row_is_known_by_a_time(self, table: Table):
        assert (table.version_by is not None) == (table.kind is Kind.KEYED)
        if table.version_by:
            assert table.column(table.version_by).type == TIMESTAMP
            assert table.column(table.version_by).merge is Merge.MAX

    def test_every_older_version_can_be_migrated(self, table: Table):
        assert set(table.migrations) <= set(range(1, table.version))

    def test_rows_of_a_segment_name_it(self, table: Table):
        if table.kind is Kind.SEGMENT:
            assert not table.column("segment").nullable

    def test_names_differ_in_more_than_case(self, table: Table):
        assert len({name.casefold() for name in table.names}) == len(table.names)


def test_tables_are_found_by_their_name():
    assert all(name == table.name for name, table in TABLES.items())
    assert {"crawldb", "fetchlist", "fetch", "parse", "text", "outlinks", "linkdb"} <= set(TABLES)
    assert {"hosts", "robots", "edges", "ranks", "clusters"} <= set(TABLES)


def test_all_types_can_be_written_and_read(tmp_path):
    import pyarrow.parquet as pq

    for table in TABLES.values():
        pq.write_table(table.schema.empty_table(), tmp_path / f"{table.name}.parquet")
        assert pq.read_schema(tmp_path / f"{table.name}.parquet").equals(table.schema)
