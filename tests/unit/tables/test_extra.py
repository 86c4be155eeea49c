"""Columns that plugins add to tables."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from gossamer.errors import PluginError
from gossamer.storage.snapshots import Snapshot
from gossamer.tables import TABLES
from gossamer.tables.extra import TYPES, from_document, remembered, tables_with, to_document
from gossamer.tables.spec import Column, Merge

PRICE = Column("price", pa.float64(), "Price found on the page.", plugin="shop", pass_to=("outlinks", "parse", "index"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "url"}, "column url is already a column of crawldb; choose another name"),
        ({"name": "URL"}, "column URL is already a column of crawldb"),
        ({"name": "anchor"}, "column anchor is already a column of outlinks"),
        ({"name": "Title"}, "column Title is already a column of parse"),
        ({"name": "_price"}, "must be an identifier that does not start with an underscore"),
        ({"name": "a price"}, "must be an identifier"),
        ({"name": ""}, "must be an identifier"),
        ({"merge": Merge.KEY}, "merge must be one of keep, newest, sum, max"),
        ({"merge": Merge.MIN}, "merge must be one of keep, newest, sum, max"),
        ({"merge": Merge.SUM}, "price is summed, so it must be an integer"),
        ({"merge": Merge.MAX, "type": TYPES["map"]}, "has no greatest value; choose keep or newest"),
        ({"merge": Merge.MAX, "type": TYPES["strings"]}, "has no greatest value"),
        ({"type": pa.decimal128(10, 2)}, r"type decimal128\(10, 2\) is not supported; choose from bool, "),
        ({"type": pa.timestamp("ns")}, r"type timestamp\[ns\] is not supported"),
        ({"nullable": False}, "must be nullable: rows written before the plugin have no value"),
        ({"pass_to": ("fetch", "parse")}, "cannot be passed to fetch; choose from outlinks, parse, index"),
    ],
)
def test_what_is_refused(change: dict, said: str):
    with pytest.raises(PluginError, match=said) as error:
        tables_with([replace(PRICE, **change)])
    assert str(error.value).startswith("plugin shop: column ")


@pytest.mark.parametrize("second", ["price", "PRICE"])
def test_two_plugins_cannot_share_a_name(second: str):
    with pytest.raises(PluginError, match=f"plugin other: column {second} is already a column of crawldb"):
        tables_with([PRICE, replace(PRICE, name=second, plugin="other")])


def test_a_column_goes_to_the_crawldb_and_where_it_is_passed():
    tables = tables_with([PRICE])
    assert {name for name, table in tables.items() if "price" in table.names} == {
        "crawldb", "fetchlist", "outlinks", "parse",
    }  # fmt: skip
    assert tables["crawldb"].names == (*TABLES["crawldb"].names, "price")
    assert tables["crawldb"].column("price").plugin == "shop"
    assert "price" not in TABLES["crawldb"].names


def test_a_name_that_a_fetchlist_has_is_taken():
    with pytest.raises(PluginError, match="column score is already a column of fetchlist"):
        tables_with([replace(PRICE, name="score")])


def test_sums_add_up_in_the_crawldb_only():
    tables = tables_with([replace(PRICE, type=pa.int64(), merge=Merge.SUM)])
    assert tables["crawldb"].column("price").merge is Merge.SUM
    assert tables["outlinks"].column("price").merge is Merge.NEWEST


def test_no_plugins_no_change():
    assert tables_with([]) == TABLES


@pytest.mark.parametrize("kind", TYPES)
def test_a_snapshot_remembers_every_kind_of_column(kind: str):
    column = replace(PRICE, type=TYPES[kind], merge=Merge.KEEP, measured=True)
    assert from_document(to_document(column)) == column


def snapshot(*columns: Column) -> Snapshot:
    return Snapshot(1, 0, "r", "load", "2026-01-01T00:00:00.000Z", 1, columns=[to_document(c) for c in columns])


def test_a_column_outlives_its_plugin():
    size = replace(PRICE, name="size", type=pa.int64())
    assert remembered(snapshot(PRICE, size), []) == [PRICE, size]
    assert remembered(snapshot(PRICE), [size]) == [size, PRICE]


def test_what_the_plugin_says_now_counts():
    now = replace(PRICE, doc="Price in euro.", merge=Merge.KEEP, pass_to=())
    assert remembered(snapshot(PRICE), [now]) == [now]


def test_a_stored_column_cannot_change_its_type():
    with pytest.raises(
        PluginError, match="plugin shop: column price is stored as double and now declared as string; choose"
    ):
        remembered(snapshot(PRICE), [replace(PRICE, type=pa.string())])
