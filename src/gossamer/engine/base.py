"""The seam: six verbs that every stage is written in, embedded and on Spark.

Only this folder imports duckdb or pyspark. Stages see Ibis tables and never execute them themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa
from ibis.common.deferred import Deferred

from gossamer.errors import EngineError, StorageError
from gossamer.storage.parquet import FileEntry, Target

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
TaskFunction = Callable[[Any], pa.Table]
SortKey: TypeAlias = str | ir.Value | Deferred  # a column name, or an expression such as ibis.desc("score")


class Engine(Protocol):
    """Where relations are computed and functions run."""

    name: str

    @property
    def workers(self) -> int:
        """How many tasks run side by side; 0: in this process, one after the other."""

    def read(self, files: Sequence[str], schema: pa.Schema) -> ir.Table:
        """Parquet files of one layout as a table; columns the files lack are NULL, others are cast to the schema."""

    def values(self, table: pa.Table) -> ir.Table:
        """Rows in memory as a table."""

    def collect(self, table: ir.Table) -> pa.Table:
        """Compute a table and bring its rows here."""

    def map_batches(
        self,
        table: ir.Table,
        fn: BatchFunction,
        schema: pa.Schema,
        *,
        by: SortKey | Sequence[SortKey] | None = None,
        sort: Sequence[SortKey] = (),
        partitions: int | None = None,
    ) -> ir.Table:
        """Run `fn` over the rows in all workers: Iterator[RecordBatch] -> Iterator[RecordBatch].

        With `by`, all rows of a key reach one call, keys in order and the rows of a key ordered by `sort` (NULLs first,
        or last where descending; text by its bytes; NaN above all numbers); one call may hold many keys and a key may
        span batches. Without it rows come in any order, dealt out evenly to `partitions` if that is given; Spark
        otherwise keeps the partitions the table has. Materialised before it returns: fn runs exactly once per partition
        that has rows. `fn` is a module-level function or a partial of one.
        """

    def run_tasks(self, tasks: Sequence[Any], fn: TaskFunction) -> pa.Table:
        """One call of `fn` per task (a shard, a partition), no shuffle; exactly one result of each is accepted."""

    def write(self, table: ir.Table, target: Target) -> list[FileEntry]:
        """Write a table as Parquet parts, sharded and ordered as the target says."""

    def close(self) -> None:
        """Stop workers and drop scratch files."""


@dataclass(frozen=True)
class Ordered:
    """A table with helper columns to sort by in front of its own, the same on every engine."""

    table: ir.Table
    by: tuple[str, ...]
    sort: tuple[tuple[str, bool], ...]  # column, ascending
    names: tuple[str, ...]  # the table's own columns


def ordered(table: ir.Table, by: SortKey | Sequence[SortKey] | None, sort: Sequence[SortKey]) -> Ordered:
    """Turn keys and sort expressions into plain columns."""
    keys = [] if by is None else list(by) if isinstance(by, list | tuple) else [by]
    if sort and not keys:
        raise ValueError("sort orders the rows of a key; give `by` too")
    helpers = {f"__by{i}": _split(table, key)[0] for i, key in enumerate(keys)}
    order: list[tuple[str, bool]] = []
    for i, key in enumerate(sort):
        helpers[f"__sort{i}"], ascending = _split(table, key)
        order.append((f"__sort{i}", ascending))
    names = tuple(table.columns)
    with_helpers = table.mutate(**helpers) if helpers else table
    return Ordered(with_helpers, tuple(f"__by{i}" for i in range(len(keys))), tuple(order), names)


def _split(table: ir.Table, key: SortKey) -> tuple[ir.Value, bool]:
    """The value a sort key orders by, and whether upwards."""
    if isinstance(key, str):
        return table[key], True
    bound = table.bind(key)[0]
    operation = bound.op()
    if isinstance(operation, ops.SortKey):
        return operation.arg.to_expr(), operation.ascending
    return bound, True


def canonical(table: ir.Table, names: Sequence[str] | None = None) -> pa.Schema:
    """The Arrow schema of a table as every engine gives it: timestamps in UTC, all columns nullable."""
    schema = table.schema().to_pyarrow()
    chosen = schema.names if names is None else names
    return pa.schema([pa.field(name, _canonical_type(schema.field(name).type)) for name in chosen])


def _canonical_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_map(kind):
        return pa.map_(_canonical_type(kind.key_type), _canonical_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_canonical_type(kind.value_type))
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    return kind


def fitted(table: ir.Table, target: Target) -> ir.Table:
    """The columns a target wants, in its order."""
    missing = [name for name in target.schema.names if name not in table.columns]
    if missing:
        raise StorageError(f"column {missing[0]} is missing; the rows do not fit the table's schema")
    return table.select(*target.schema.names)


def files_behind(table: ir.Table, files: Mapping[str, Sequence[str]]) -> list[str]:
    """The files a table is computed from, when `files` names those of every table read."""
    sources = table.op().find(ops.DatabaseTable)
    return list(dict.fromkeys(file for source in sources for file in files.get(source.name, ())))


def one_result(tasks: Sequence[Any], results: list[pa.Table], name: str) -> pa.Table:
    """The results of tasks as one table, after making sure that each gave exactly one."""
    if not tasks:
        raise EngineError(f"{name} was given no tasks")
    if len(results) != len(tasks):
        raise EngineError(f"{len(tasks)} tasks of {name} gave {len(results)} results; run the same command again")
    schemas = {result.schema for result in results}
    if len(schemas) > 1:
        raise EngineError(f"{name} failed: its tasks gave tables of {len(schemas)} different schemas")
    return pa.concat_tables(results)
