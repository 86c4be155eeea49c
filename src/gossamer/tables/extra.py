"""Plugin columns: typed columns that plugins add to the crawldb and pass on to the tables made from it.

A snapshot remembers the columns its files hold, so that compaction keeps them even while the plugin is not installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from gossamer.errors import PluginError
from gossamer.storage.snapshots import Snapshot
from gossamer.tables import TABLES
from gossamer.tables.spec import META, TIMESTAMP, Column, Merge, Table

CARRIERS = ("outlinks", "parse", "index")  # where a plugin column of the crawldb may be passed on to
MERGES = (Merge.KEEP, Merge.NEWEST, Merge.SUM, Merge.MAX)
TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "timestamp": TIMESTAMP,
    "strings": pa.list_(pa.string()),
    "map": META,
}


def tables_with(columns: Iterable[Column]) -> dict[str, Table]:
    """All tables, with plugin columns on the crawldb and on the tables they are passed on to."""
    tables = dict(TABLES)
    for column in columns:
        check_column(column, tables)
        for name in ("crawldb", "fetchlist", *column.pass_to):
            if name in tables:
                merge = Merge.NEWEST if name != "crawldb" and column.merge is Merge.SUM else column.merge
                tables[name] = tables[name].with_columns((replace(column, merge=merge),))
    return tables


def check_column(column: Column, tables: dict[str, Table]) -> None:
    """Refuse a plugin column that would clash (for the engines case does not count) or cannot be merged."""
    whose = f"plugin {column.plugin or '?'}: column {column.name}"
    for table in (tables[name] for name in ("crawldb", "fetchlist", *column.pass_to) if name in tables):
        if column.name.casefold() in {name.casefold() for name in table.names}:
            raise PluginError(f"{whose} is already a column of {table.name}; choose another name")
    if not column.name.isidentifier() or column.name.startswith("_"):
        raise PluginError(f"{whose}: the name must be an identifier that does not start with an underscore")
    if column.merge not in MERGES:
        raise PluginError(f"{whose}: merge must be one of {', '.join(MERGES)}")
    if column.type not in TYPES.values():
        raise PluginError(f"{whose}: type {column.type} is not supported; choose from {', '.join(TYPES)}")
    if not column.nullable:
        raise PluginError(f"{whose} must be nullable: rows written before the plugin have no value")
    if column.merge is Merge.MAX and column.type.num_fields:
        raise PluginError(f"{whose}: {column.type} has no greatest value; choose keep or newest")
    unknown = [name for name in column.pass_to if name not in CARRIERS]
    if unknown:
        raise PluginError(f"{whose}: cannot be passed to {', '.join(unknown)}; choose from {', '.join(CARRIERS)}")
    try:
        tables["crawldb"].with_columns((column,))
    except ValueError as error:
        raise PluginError(f"{whose}: {error}") from error


def remembered(snapshot: Snapshot, declared: Iterable[Column]) -> list[Column]:
    """Declared columns, then those only the files still hold."""
    columns = list(declared)
    known = {column.name: column for column in columns}
    stored = [from_document(document) for document in snapshot.columns]
    for column in stored:
        now = known.get(column.name, column)
        if now.type != column.type:
            raise PluginError(
                f"plugin {now.plugin or '?'}: column {column.name} is stored as {column.type} and now declared as "
                f"{now.type}; choose another name"
            )
    return columns + [column for column in stored if column.name not in known]


def to_document(column: Column) -> dict[str, Any]:
    """A plugin column as a snapshot stores it."""
    kind = next(name for name, kind in TYPES.items() if kind == column.type)
    return {
        "name": column.name,
        "type": kind,
        "doc": column.doc,
        "merge": column.merge.value,
        "measured": column.measured,
        "plugin": column.plugin,
        "pass_to": list(column.pass_to),
    }


def from_document(document: dict[str, Any]) -> Column:
    """The column a snapshot stores."""
    return Column(
        document["name"],
        TYPES[document["type"]],
        document["doc"],
        Merge(document["merge"]),
        document["measured"],
        plugin=document["plugin"],
        pass_to=tuple(document["pass_to"]),
    )
