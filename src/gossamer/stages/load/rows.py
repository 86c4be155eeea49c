"""Turning the rows of a file into rows of a table: fill derivable keys, reject what cannot be a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.errors import UsageError
from gossamer.stages.load import inputs
from gossamer.stages.load.values import cast
from gossamer.storage.parquet import DELETED, Target, write_part
from gossamer.tables.spec import TIMESTAMP, Kind, Table
from gossamer.urls import keys

ORDER = "_order"  # file and row number: of two rows with one key the later wins
DOMAIN = "domain"  # a file may name the domain in the place of its fingerprint
YEARS = (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))  # what Python can hold
RESULT = pa.schema(
    [
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("rows_read", pa.int64()),
        ("rejected", pa.map_(pa.string(), pa.int64())),
        ("deletes", pa.int64()),
    ]
)


@dataclass(frozen=True)
class LoadTask:
    """One input file on its way to scratch."""

    number: int
    path: str
    table: Table
    target: Target
    now: datetime  # the version of rows that name none
    segment: str | None = None


def staged_schema(table: Table) -> pa.Schema:
    """The table's columns, the deletion mark of keyed tables, and the order of arrival."""
    schema = table.schema
    if table.kind is Kind.KEYED:
        schema = schema.append(pa.field(DELETED, pa.bool_()))
    return schema.append(pa.field(ORDER, pa.int64()))


def stage_file(task: LoadTask) -> pa.Table:
    """Write a file's good rows to scratch; one row with the file's name and what was read and rejected."""
    counts: Counter[str] = Counter()
    entry = write_part(task.target, _good_rows(task, counts), 0, task.number)
    read = counts.pop("", 0)
    row = {
        "path": entry.path if entry else None,
        "rows": entry.rows if entry else 0,
        "rows_read": read,
        "rejected": list(counts.items()),
        "deletes": entry.deletes if entry else 0,
    }
    return pa.Table.from_pylist([row], RESULT)


def _good_rows(task: LoadTask, counts: Counter[str]) -> Iterator[pa.RecordBatch]:
    """Rows that fit; `counts` learns how many were read (under "") and why others were rejected."""
    types = staged_schema(task.table).append(pa.field(DOMAIN, pa.string()))
    codes = [column.name for column in task.table.columns if column.labels is not None]
    for batch in inputs.batches(task.path, types, codes):
        order = np.arange(counts[""], counts[""] + batch.num_rows, dtype=np.int64) + (task.number << 40)
        counts[""] += batch.num_rows
        rows = to_rows(batch, task.table, task.path, task.now, task.segment)
        reasons = rejections(rows, task.table, task.segment)
        counts.update(reasons.drop_null().to_pylist())
        rows = rows.append_column(ORDER, pa.array(order))
        yield rows.filter(reasons.is_null())


def to_rows(
    batch: pa.RecordBatch, table: Table, path: str, now: datetime, segment: str | None = None
) -> pa.RecordBatch:
    """The batch with the table's columns; keys that follow from others are filled in, and `now` as the version."""
    schema = pa.schema([f.with_nullable(True) for f in staged_schema(table) if f.name != ORDER])
    given: dict[str, pa.Array] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in given:
            raise UsageError(f"{path}: column {name} comes twice; keep one of them")
        if name not in schema.names and name != DOMAIN:
            raise UsageError(f"{path}: {table.name} has no column {name}; see docs/tables.md for what it has")
        given[name] = _cast(column, table, name, path)
    given |= _derived(given, table)
    if table.version_by and table.version_by not in given:
        given[table.version_by] = pa.repeat(pa.scalar(now, TIMESTAMP), batch.num_rows)
    if table.kind is Kind.SEGMENT and "segment" in table.names and "segment" not in given:
        given["segment"] = pa.repeat(pa.scalar(segment, pa.string()), batch.num_rows)
    columns = [given[f.name] if f.name in given else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, table: Table, name: str, path: str) -> pa.Array:
    known = table.column(name) if name in table.names else None
    kind = known.type if known else pa.bool_() if name == DELETED else pa.string()
    try:
        return cast(column, kind, known.labels if known else None)
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{path}: column {name} does not fit {kind} ({reason}); correct it") from error


def _derived(given: dict[str, pa.Array], table: Table) -> dict[str, pa.Array]:
    """Missing keys that can be computed: from `url` its fingerprint, row key and host, from `domain` its fingerprint."""
    rules = {
        "url_fp": ("url", keys.fingerprints),
        "rowkey": ("url", keys.rowkeys),
        "host": ("url", keys.hosts),
        "domain_fp": (DOMAIN, keys.fingerprints),
    }
    filled = {}
    for name, (source, compute) in rules.items():
        if name in table.names and source in given and (name not in given or given[name].null_count):
            computed = compute(given[source])
            filled[name] = pc.coalesce(given[name], computed) if name in given else computed
    return filled


def rejections(rows: pa.RecordBatch, table: Table, segment: str | None = None) -> pa.Array:
    """Why each row cannot be taken, or NULL."""
    reasons = pa.nulls(rows.num_rows, pa.string())
    if segment is not None and "segment" in table.names:
        other = pc.not_equal(rows.column("segment"), segment).fill_null(False)
        reasons = pc.if_else(other, "another segment's row", reasons)
    for column in table.columns:
        values = rows.column(column.name)
        if not column.nullable:
            reasons = pc.if_else(values.is_null(), f"{column.name} is missing", reasons)
        if column.labels is not None:
            known = pc.is_in(values, pa.array([None, *column.labels], column.type))
            reasons = pc.if_else(known, reasons, f"{column.name} has an unknown code")
        if column.type == TIMESTAMP and len(values) > values.null_count:
            beyond = pc.or_(pc.less(values, YEARS[0]), pc.greater(values, YEARS[1])).fill_null(False)
            reasons = pc.if_else(beyond, f"{column.name} is no possible time", reasons)
    return reasons
