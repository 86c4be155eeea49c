"""Seeds as rows of the crawldb: what a new URL begins with, and what a known one may learn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import IntEnum

import pyarrow as pa
import pyarrow.compute as pc

from gossamer.tables.spec import META, TIMESTAMP, Merge, Table
from gossamer.tables.statuses import PageKind, Status

MICRO = 1_000_000
ORDER = "_order"  # part and position: of two equal URLs the first wins
GIVEN = "_interval"  # the interval the line names
WHAT = "_what"
TOLD = {"_seed": "seed", "_meta": "meta", GIVEN: GIVEN}  # what a seed tells of a known URL


class What(IntEnum):
    """What a seed was to a URL the crawldb knew."""

    KNOWN = 0  # nothing
    TAGGED = 1  # it had no source tag
    UPDATED = 2


def staged_schema(table: Table) -> pa.Schema:
    """Rows of the crawldb, the order of arrival, and what only known URLs want to know."""
    return table.schema.append(pa.field(ORDER, pa.int64())).append(pa.field(GIVEN, pa.int32()))


def known_schema(table: Table) -> pa.Schema:
    """Rows of the crawldb, and what became of each."""
    return table.schema.append(pa.field(WHAT, pa.int8()))


def new_rows(
    seeds: pa.RecordBatch, keys: dict[str, pa.Array], table: Table, tag: str, now: datetime, interval_s: int
) -> pa.RecordBatch:
    """Rows of URLs that are due at once; `keys` has their URLs and all that follows from those."""
    count = seeds.num_rows

    def all_are(value: object, kind: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, kind), count)

    present = all_are(now, TIMESTAMP)
    columns = keys | {
        "status": all_are(Status.UNFETCHED.value, pa.int8()),
        "inlinks": all_are(0, pa.int32()),
        "cash": pc.coalesce(seeds.column("cash"), pa.scalar(MICRO, pa.int64())),
        "depth": all_are(0, pa.int16()),
        "updated_at": present,
        "next_fetch": present,
        "first_seen": present,
        "interval_s": pc.coalesce(seeds.column("interval_s"), pa.scalar(interval_s, pa.int32())),
        "failures": all_are(0, pa.int16()),
        "seed": all_are(tag, pa.string()),
        "kind": pc.coalesce(seeds.column("kind"), pa.scalar(PageKind.PAGE.value, pa.int8())),
        "meta": seeds.column("meta"),
        ORDER: seeds.column(ORDER),
        GIVEN: seeds.column("interval_s"),
    }
    schema = staged_schema(table)
    return pa.RecordBatch.from_arrays(
        [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in schema], schema=schema
    )


def known_rows(
    batches: Iterator[pa.RecordBatch], *, table: Table, now: datetime, update: bool
) -> Iterator[pa.RecordBatch]:
    """What becomes of known URLs: their rows beside what a seed tells (`TOLD`) → change set rows."""
    for batch in batches:
        yield updated(batch, table, now) if update else tagged(batch, table)


def tagged(batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """Known URLs with the source tag they lacked: no version, so nothing else of the row counts."""
    untagged = batch.column("seed").is_null()
    what = pc.if_else(untagged, pa.scalar(What.TAGGED.value, pa.int8()), pa.scalar(What.KNOWN.value, pa.int8()))
    kept = {name: batch.column(name) for name in (*table.key, "url")}
    return _rows(kept | {"seed": batch.column("_seed"), WHAT: what}, batch.num_rows, table)


def updated(batch: pa.RecordBatch, table: Table, now: datetime) -> pa.RecordBatch:
    """Known rows with the interval and the metadata of the seed; increments are left out, they are counted already."""
    columns = {c.name: batch.column(c.name) for c in table.columns if c.merge is not Merge.SUM}
    interval = pc.coalesce(batch.column(GIVEN), columns["interval_s"])
    meta = _merged(columns["meta"], batch.column("_meta"))
    untagged = columns["seed"].is_null()
    changed = pc.or_(
        pc.and_(batch.column(GIVEN).is_valid(), pc.not_equal(interval, columns["interval_s"]).fill_null(True)),
        pa.array([a != b for a, b in zip(meta, _pairs(columns["meta"]), strict=True)], pa.bool_()),
    )
    version, present = columns["updated_at"], pa.scalar(now, TIMESTAMP)
    columns |= {
        "interval_s": interval,
        "meta": pa.array([sorted(pairs.items()) if pairs else None for pairs in meta], META),
        "seed": pc.coalesce(columns["seed"], batch.column("_seed")),
        "updated_at": pc.if_else(pc.greater(version, present).fill_null(False), version, present),
    }
    what = pc.if_else(
        changed,
        pa.scalar(What.UPDATED.value, pa.int8()),
        pc.if_else(untagged, pa.scalar(What.TAGGED.value, pa.int8()), pa.scalar(What.KNOWN.value, pa.int8())),
    )
    return _rows(columns | {WHAT: what}, batch.num_rows, table)


def _merged(known: pa.Array, told: pa.Array) -> list[dict[str, str]]:
    """The metadata of each row, with what the seed tells over it."""
    return [old | new for old, new in zip(_pairs(known), _pairs(told), strict=True)]


def _pairs(meta: pa.Array) -> list[dict[str, str]]:
    return [dict(pairs or ()) for pairs in meta.to_pylist()]


def _rows(columns: dict[str, pa.Array], count: int, table: Table) -> pa.RecordBatch:
    schema = known_schema(table)
    return pa.RecordBatch.from_arrays(
        [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in schema], schema=schema
    )
