"""update: fetch + parse + outlinks of some segments → change sets of the crawldb, and the links now counted.

Two change sets: the new state of every URL that was fetched, and what links, redirects and canonicals give to their
targets. Neither needs the crawldb to be read, so the cost follows the batch and not the crawl.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import ibis
import pyarrow as pa

from gossamer.engine.base import canonical
from gossamer.errors import UsageError
from gossamer.stages.update import links
from gossamer.stages.update.known import KEY, known_rows
from gossamer.stages.update.transition import (
    EVENTS,
    FROM_FETCH,
    FROM_PARSE,
    KNOWN,
    PARSED,
    Rules,
    output_schema,
    run_states,
)
from gossamer.tables.spec import Merge
from gossamer.tables.statuses import PageKind

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.runner import Run

PASS_LINKS = 1_500_000  # links whose targets are gathered and sorted in one go
REASONS = {"stale": "older than what is known", "untried": "not tried"}


def run(run: Run, segments: list[str]) -> None:
    """Apply segments; those applied before change only what a new parse says."""
    for segment in segments:
        if not run.snapshot.sets("fetch", segment):
            known = sorted({s.segment for s in run.snapshot.sets("fetch") if s.segment})
            raise UsageError(f"segment {segment} has not been fetched; there are {', '.join(known[-5:]) or 'none'}")
        run.mark(segment)
    run.phase("apply fetches")
    pages = _pages(run, segments)
    _count_events(run, pages, segments)
    run.phase("count links")
    counted, others = _count_links(run, pages, segments)
    run.phase("write crawldb")
    _write(run, segments, pages, counted, others)


def _pages(run: Run, segments: list[str]) -> ir.Table:
    """One row per fetched URL: its new state, and what to do with its links."""
    fetched = _of(run, "fetch", segments)
    known = known_rows(run, fetched, segments)
    parse = _of(run, "parse", segments)
    crawldb = run.tables["crawldb"]
    newest = pa.schema([pa.field(c.name, c.type) for c in crawldb.columns if c.merge is Merge.NEWEST])
    said = parse.select(
        *(parse[k].name(f"{PARSED}{k}") for k in ("domain_fp", "url_fp", "rowkey", "segment")),
        *(parse[name].name(f"{PARSED}{name}") for name in FROM_PARSE),
    ).view()
    had = known.select(
        *(known[k].name(f"{KNOWN}{k}") for k in KEY),
        *(known[name].name(f"{KNOWN}{name}") for name in ("url", "depth", "cash", *newest.names)),
    ).view()
    rows = fetched.select(*KEY, *FROM_FETCH).view()
    rows = rows.left_join(said, [*((k, f"{PARSED}{k}") for k in KEY), ("segment", f"{PARSED}segment")])
    rows = rows.left_join(had, [(k, f"{KNOWN}{k}") for k in KEY])
    wanted = [*KEY, *FROM_FETCH, *(f"{PARSED}{n}" for n in FROM_PARSE)]
    wanted += [f"{KNOWN}{n}" for n in ("url", "depth", "cash", *newest.names)]
    rules = Rules(run.clock.now, run.crawl.settings.schedule, newest)
    return run.crawl.engine.map_batches(
        rows.select(*wanted).view(),
        partial(run_states, rules),
        output_schema(newest),
        by=["domain_fp", "url_fp", "rowkey"],
        sort=["fetched_at", "segment"],
    )


def _of(run: Run, name: str, segments: list[str]) -> ir.Table:
    """A table of some segments."""
    parts = [run.table(name, segment=s) for s in segments]
    return ibis.union(*parts) if len(parts) > 1 else parts[0]


def _count_events(run: Run, pages: ir.Table, segments: list[str]) -> None:
    """How the fetches were taken; the rows read are known from the snapshot."""
    sums = run.crawl.engine.collect(
        pages.aggregate(**{name: pages[name].sum() for name in EVENTS}, known=pages.known.sum())
    ).to_pylist()[0]
    run.count(fetches=sum(s.rows for segment in segments for s in run.snapshot.sets("fetch", segment)))
    run.count(**{name: sums[name] or 0 for name in EVENTS})
    for name, reason in REASONS.items():
        run.drop(reason, sums[name] or 0)


def _count_links(run: Run, pages: ir.Table, segments: list[str]) -> tuple[ir.Table, ir.Table | None]:
    """Write the links that count now, per segment; those links, and the ones that only make their target known."""
    outlinks = _classified(run, pages, segments)
    fates = {row["reason"]: row["links"] for row in run.crawl.engine.collect(links.reasons(outlinks)).to_pylist()}
    run.count(links=sum(s.rows for segment in segments for s in run.snapshot.sets("outlinks", segment)))
    run.count(links_entered=fates.pop(links.ENTERED, 0))
    fates.pop(links.COUNTED, 0)
    for reason, count in sorted(fates.items()):
        run.drop(reason, count)
        run.count(links_dropped=count)
    kept = outlinks.filter(outlinks[links.REASON] == links.COUNTED)
    for segment in segments:
        own = kept.filter(kept.segment == segment)
        run.count(links_counted=run.write("counted", own, segment=segment))
    return _written(run, segments), links.entries(outlinks) if run.record.counters["links_entered"] else None


def _classified(run: Run, pages: ir.Table, segments: list[str]) -> ir.Table:
    """All outlinks with their fate, caps included."""
    settings = run.crawl.settings.links
    outlinks = links.classified(_of(run, "outlinks", segments), pages, settings)
    per = links.per_page(outlinks)
    most = run.crawl.engine.collect(per.aggregate(most=per.links.max())).column("most")[0].as_py() or 0
    if settings.max_per_page and most > settings.max_per_page:
        outlinks = links.capped(outlinks, settings.max_per_page)
    if settings.max_new_per_page and most > settings.max_new_per_page:
        crowded = per.filter(per.links > settings.max_new_per_page).view()
        asked = outlinks.semi_join(crowded, [*links.SRC, "segment"]).select(*KEY).distinct().view()
        table = run.tables["crawldb"].keys_only()
        known = run.source.rows(table, run.snapshot.sets("crawldb"), among=asked)
        outlinks = links.capped_news(outlinks, known, settings.max_new_per_page)
    return outlinks


def _written(run: Run, segments: list[str]) -> ir.Table:
    """The links just written, read back from their files: cheaper than to find them again."""
    sets = tuple(s for s in run.replaced["counted"] if s.segment in segments)
    return run.source.rows(run.tables["counted"], sets)


def _write(run: Run, segments: list[str], pages: ir.Table, counted: ir.Table, others: ir.Table | None) -> None:
    """The two change sets."""
    given = _stored(run, links.shares(counted, pages))
    old = _taken_back(run, pages)
    parts = [links.gains(counted, old, given), links.led_to(pages)]
    if any(run.snapshot.sets("found", segment) for segment in segments):
        parts.append(links.named(_of(run, "found", segments)))
    if others is not None:
        parts.append(others)
    if old is not None:
        parts.append(links.losses(counted, old))
    states = _states(run, pages, given)
    run.count(states_written=run.write("crawldb", states, delta=True, part="states"))
    run.count(targets_written=_write_targets(run, parts))


def _stored(run: Run, rows: ir.Table) -> ir.Table:
    """A small relation, computed once: used twice in a query it would be kept in memory with all it is made from."""
    return run.crawl.engine.map_batches(rows, unchanged, canonical(rows))


def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What comes in."""
    return batches


def _write_targets(run: Run, parts: list[ir.Table]) -> int:
    """The targets' change set; on one machine a group of shards at a time, so that nothing has to spill to disk."""
    table = run.tables["crawldb"].narrowed(links.TARGET_COLUMNS)
    target = run.target(table, part="targets")
    passes = 1
    if run.crawl.engine.name == "embedded":
        counted = run.record.counters.get("links_counted", 0)
        passes = min(target.shards, 1 << (counted // PASS_LINKS).bit_length())
    entries = []
    for number in range(passes):
        own = [part.filter((part.url_fp & (passes - 1)) == number) if passes > 1 else part for part in parts]
        rows = links.targets(own, run.clock.now, run.crawl.settings.schedule)
        entries += run.crawl.engine.write(rows, target)
    run.add(table, target, entries, delta=True)
    return sum(entry.rows for entry in entries)


def _taken_back(run: Run, pages: ir.Table) -> ir.Table | None:
    """The links counted before for the pages at hand, if any."""
    moved = pages.filter(pages.old_parsed.notnull() & pages.recount)
    before = run.crawl.engine.collect(moved.select("old_parsed").distinct()).column(0).to_pylist()
    sets = tuple(s for name in sorted(before) for s in run.snapshot.sets("counted", name))
    if not sets:
        return None
    return links.taken_back(run.source.rows(run.tables["counted"], sets), pages)


def _states(run: Run, pages: ir.Table, given: ir.Table) -> ir.Table:
    """Rows of the crawldb for the URLs whose state changed; cash that was spent is taken off."""
    changed = pages.filter(pages.changed)
    spent = given.select(*(given[k].name(f"g_{k}") for k in links.SRC), spent=given.spent).view()
    joined = changed.left_join(spent, [("domain_fp", "g_src_domain_fp"), ("url_fp", "g_src_url_fp")])
    now = ibis.literal(run.clock.now, "timestamp('UTC', 6)")
    rows = joined.mutate(
        updated_at=now,
        first_seen=now,
        inlinks=ibis.literal(0, "int32"),
        cash=(-ibis.coalesce(joined.spent, 0)).cast("int64"),
        depth=ibis.null("int16"),
        kind=ibis.literal(PageKind.PAGE.value, "int8"),
    )
    table = run.tables["crawldb"]
    missing = {c.name: ibis.null(ibis.dtype(c.type)) for c in table.columns if c.name not in rows.columns}
    return rows.mutate(**missing).select(*table.names)
