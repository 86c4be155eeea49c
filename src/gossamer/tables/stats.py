"""Statistics of the crawldb: counts by status, host, domain and TLD from one scan of a few narrow columns.

The engine counts URLs by host and status; only these few rows learn their domain and TLD, in the workers, and everything
else is summed up from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import ibis
import pyarrow as pa

from gossamer.tables.spec import TIMESTAMP

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.engine.base import Engine

GROUPS = ("status", "host", "domain", "tld")
FETCHED, UNFETCHED, GONE = ("fetched", "not_modified"), ("unfetched",), ("gone",)
MOMENTS = ("oldest", "newest")
COUNTED = pa.schema(
    [
        ("status", pa.string()),
        ("host", pa.string()),
        ("domain", pa.string()),
        ("tld", pa.string()),
        ("urls", pa.int64()),
        ("due", pa.int64()),
        ("oldest", TIMESTAMP),
        ("newest", TIMESTAMP),
    ]
)


def counted(engine: Engine, rows: ir.Table, now: datetime) -> ir.Table:
    """URLs by host and status; `rows` are those of a crawldb whose statuses are names."""
    present = ibis.literal(now, type="timestamp('UTC')")
    back = (rows.status == "gone") & (rows.linked_at > rows.updated_at)
    due = rows.next_fetch.isnull() | (rows.next_fetch <= present) | back.fill_null(False)  # as generate sees it
    narrow = rows.select("host", "status", "first_seen", due=due)
    by_host = narrow.group_by("host", "status").aggregate(
        urls=narrow.count(),
        due=narrow.due.cast("int64").sum().fill_null(0),
        oldest=narrow.first_seen.min(),
        newest=narrow.first_seen.max(),
    )
    return engine.map_batches(by_host, with_domains, COUNTED)


def with_domains(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Counts by host with the domain and the TLD of each."""
    from gossamer.urls.domains import domains

    for batch in batches:
        hosts = batch.column("host").cast(pa.string())
        known = {name: batch.column(name) for name in batch.schema.names} | {"host": hosts}
        known |= {"domain": domains(hosts), "tld": pa.array(map(tld_of, hosts.to_pylist()), pa.string())}
        yield pa.RecordBatch.from_arrays([known[f.name].cast(f.type) for f in COUNTED], schema=COUNTED)


def tld_of(host: str | None) -> str | None:
    """The last label of a host; an address has none."""
    if host is None or host.startswith("[") or host.replace(".", "").isdigit():
        return None
    return host.rstrip(".").rsplit(".", 1)[-1]


def total(counts: ir.Table) -> ir.Table:
    """One row for everything."""
    return counts.aggregate(**_sums(counts), oldest=counts.oldest.min(), newest=counts.newest.max())


def grouped(counts: ir.Table, group: str) -> ir.Table:
    """The counts of each status, host, domain or TLD; the largest is the first."""
    if group == "status":
        rows = counts.group_by(group).aggregate(urls=counts.urls.sum(), due=counts.due.sum())
    else:
        rows = counts.group_by(group).aggregate(**_sums(counts))
    rows = rows.mutate(**{name: rows[name].cast("int64") for name in rows.columns if name != group})
    return rows.order_by(ibis.desc("urls"), ibis.asc(group, nulls_first=True))


def _sums(counts: ir.Table) -> dict[str, ir.Value]:
    """Counts by what is believed of the URLs, and how many are due."""

    def among(statuses: tuple[str, ...]) -> ir.Value:
        return ibis.ifelse(counts.status.isin(statuses), counts.urls, 0).sum().fill_null(0).cast("int64")

    return {
        "urls": counts.urls.sum().fill_null(0).cast("int64"),
        "fetched": among(FETCHED),
        "unfetched": among(UNFETCHED),
        "gone": among(GONE),
        "due": counts.due.sum().fill_null(0).cast("int64"),
    }
