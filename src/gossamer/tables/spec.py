"""What a table is: typed columns with prose, a key, an order, and how two rows of one key merge.

Everything stored goes through one of these objects; docs/tables.md is generated from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import ibis.expr.types as ir

    Migration = Callable[[ir.Table], ir.Table]

TIMESTAMP = pa.timestamp("us", tz="UTC")
META = pa.map_(pa.string(), pa.string())


class Merge(StrEnum):
    """What becomes of a column when a change set meets an existing row of the same key."""

    KEY = "key"  # part of the key: equal by definition
    KEEP = "keep"  # the first known value stays
    NEWEST = "newest"  # the value of the row with the greatest version wins, NULLs included
    SUM = "sum"  # increments add up; integers only, as float sums differ from run to run
    MAX = "max"
    MIN = "min"


class Kind(StrEnum):
    """How the files of a table grow."""

    KEYED = "keyed"  # base + deltas, merged on read, compacted shard by shard
    SEGMENT = "segment"  # one set of files per segment, written once
    WHOLE = "whole"  # replaced as a whole


@dataclass(frozen=True)
class Column:
    """One column: its type, what it means, and how it behaves."""

    name: str
    type: pa.DataType
    doc: str
    merge: Merge = Merge.NEWEST
    measured: bool = False  # differs between two equal runs (times, offsets, run ids); left out of equality tests
    nullable: bool = True
    labels: type[IntEnum] | None = None  # what the codes of an int8 column mean
    plugin: str | None = None  # the plugin that declared it
    pass_to: tuple[str, ...] = ()  # plugin columns only: tables that carry it on (outlinks, parse, index)


@dataclass(frozen=True)
class Table:
    """One table of the crawl."""

    name: str
    doc: str
    kind: Kind
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    order: tuple[str, ...]  # of the rows in each file; ends in the key, so it is total
    shard_by: str | None = None  # an int64 fingerprint column, or None: one shard
    version_by: str | None = None  # keyed tables: the column that says which row is newer
    version: int = 1
    migrations: Mapping[int, Migration] = field(default_factory=dict)  # from version n to n + 1

    def __post_init__(self) -> None:
        names = self.names
        for used in (*self.key, *self.order, self.shard_by, self.version_by):
            if used is not None and used not in names:
                raise ValueError(f"table {self.name}: {used} is not one of its columns")
        if len(set(names)) != len(names):
            raise ValueError(f"table {self.name}: a column is declared twice")
        for column in self.columns:
            if column.merge is Merge.SUM and not pa.types.is_integer(column.type):
                raise ValueError(f"table {self.name}: {column.name} is summed, so it must be an integer")
            if (column.name in self.key) != (column.merge is Merge.KEY):
                raise ValueError(
                    f"table {self.name}: {column.name} must be merged as a key column exactly if it is one"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in stored order."""
        return tuple(column.name for column in self.columns)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema every file of this table has."""
        return pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns])

    @property
    def stable(self) -> tuple[str, ...]:
        """Columns that are equal in two runs over the same input."""
        return tuple(column.name for column in self.columns if not column.measured)

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    def keys_only(self) -> Table:
        """This table without what is not key: enough to count its rows, and cheap to read."""
        columns = tuple(column for column in self.columns if column.name in self.key)
        return replace(self, columns=columns, order=self.key, shard_by=None, version_by=None)

    def narrowed(self, names: tuple[str, ...]) -> Table:
        """This table with its key and some other columns: enough for a change set that touches nothing else."""
        columns = tuple(c for c in self.columns if c.name in self.key or c.name in names)
        version = self.version_by if self.version_by in names else None
        return replace(self, columns=columns, version_by=version)

    def with_columns(self, extra: tuple[Column, ...]) -> Table:
        """This table with plugin columns added behind its own."""
        known = set(self.names)
        return replace(self, columns=self.columns + tuple(c for c in extra if c.name not in known))
