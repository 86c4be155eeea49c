"""Turning the rows of a file into rows of a table: fill derivable keys, reject what cannot be a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from gossamer.errors import UsageError
from gossamer.storage.parquet import DELETED, Target, write_part
from gossamer.tables.spec import Kind, Table
from gossamer.urls import keys

ORDER = "_order"  # file and row number: of two rows with one key the later wins
FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
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


def format_of(path: str) -> str:
    """The format a file's name says."""
    for suffix, name in FORMATS.items():
        if path.lower().endswith(suffix):
            return name
    raise UsageError(f"{path}: unknown kind of file; give it one of the endings {', '.join(FORMATS)}")


def stamp_of(path: str) -> str:
    """Size and time of a local file, so that a changed file is another job."""
    try:
        known = Path(path).stat()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    format_of(path)
    return f"{known.st_size} {known.st_mtime_ns}"


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
    read = counts.pop("")
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
    for batch in _batches(task.path):
        order = np.arange(counts[""], counts[""] + batch.num_rows, dtype=np.int64) + (task.number << 40)
        counts[""] += batch.num_rows
        rows = to_rows(batch, task.table, task.path)
        reasons = rejections(rows, task.table)
        counts.update(reasons.drop_null().to_pylist())
        rows = rows.append_column(ORDER, pa.array(order))
        yield rows.filter(reasons.is_null())


def _batches(path: str) -> Iterator[pa.RecordBatch]:
    try:
        yield from ds.dataset(path, format=format_of(path)).to_batches()
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file") from error
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{path}: cannot be read as {format_of(path)} ({reason}); check the file") from error


def to_rows(batch: pa.RecordBatch, table: Table, path: str) -> pa.RecordBatch:
    """The batch with the table's columns; keys that follow from others are filled in."""
    schema = pa.schema([f.with_nullable(True) for f in staged_schema(table) if f.name != ORDER])
    unknown = [name for name in batch.schema.names if name not in schema.names and name != "domain"]
    if unknown:
        raise UsageError(f"{path}: {table.name} has no column {unknown[0]}; see docs/tables.md for what it has")
    given = {name: _cast(batch.column(name), schema, name, path) for name in batch.schema.names}
    given |= _derived(given, table)
    columns = [given[f.name] if f.name in given else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, schema: pa.Schema, name: str, path: str) -> pa.Array:
    if name not in schema.names:
        return column.cast(pa.string())
    try:
        return column.cast(schema.field(name).type)
    except pa.ArrowException as error:
        raise UsageError(f"{path}: column {name} does not fit {schema.field(name).type} ({error})") from error


def _derived(given: dict[str, pa.Array], table: Table) -> dict[str, pa.Array]:
    """Missing keys that can be computed: from `url` its fingerprint, row key and host, from `domain` its fingerprint."""
    rules = {
        "url_fp": ("url", keys.fingerprints),
        "rowkey": ("url", keys.rowkeys),
        "host": ("url", keys.hosts),
        "domain_fp": ("domain", keys.fingerprints),
    }
    wanted = {name: rule for name, rule in rules.items() if name in table.names and name not in given}
    return {name: compute(given[source]) for name, (source, compute) in wanted.items() if source in given}


def rejections(rows: pa.RecordBatch, table: Table) -> pa.Array:
    """Why each row cannot be taken, or NULL."""
    reasons = pa.nulls(rows.num_rows, pa.string())
    for column in table.columns:
        if not column.nullable:
            reasons = pc.if_else(rows.column(column.name).is_null(), f"{column.name} is missing", reasons)
    return reasons
