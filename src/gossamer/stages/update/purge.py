"""purge: crawldb → deletions of URLs that are gone, whose last link disappeared a year ago, and that are no seeds."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import ibis

from gossamer.storage.parquet import DELETED
from gossamer.tables.statuses import Status

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.runner import Run

UNLINKED = timedelta(days=365)
LONG_AGO = "timestamp('UTC', 6)"


def run(run: Run) -> None:
    """Write the deletions; without any there is nothing to publish but the record."""
    crawldb = run.table("crawldb")
    gone = crawldb.filter(crawldb.status == Status.GONE.value)
    old = _forgotten(gone, run)
    counts = gone.aggregate(gone=gone.count(), purged=old.sum()).view()
    told = run.crawl.engine.collect(counts).to_pylist()[0]
    run.count(gone=told["gone"])
    if told["purged"]:
        rows = gone.filter(old).mutate(**{DELETED: ibis.literal(True)})
        run.count(purged=run.write("crawldb", rows, delta=True, deletes=True))
    run.count(kept=told["gone"] - (told["purged"] or 0))


def _forgotten(rows: ir.Table, run: Run) -> ir.BooleanValue:
    """Not linked, for a year neither linked nor unlinked, no seed."""
    limit = ibis.literal(run.clock.now - UNLINKED, LONG_AGO)
    quiet = [rows[name].isnull() | (rows[name] <= limit) for name in ("first_seen", "linked_at", "unlinked_at")]
    return (rows.inlinks.fill_null(0) <= 0) & rows.seed.isnull() & quiet[0] & quiet[1] & quiet[2]
