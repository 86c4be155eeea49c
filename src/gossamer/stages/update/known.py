"""What the crawldb knew of the URLs that were fetched, found without reading the whole of it.

A fetchlist carries the state of its URLs as generate saw it. Only change sets published since then can say anything
newer, so known = fetchlist + those; the cost follows the batch. URLs that were fetched without being listed (redirects
inside a partition), and lists made before the last compaction, are looked up in the crawldb itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis

from gossamer.storage import runs
from gossamer.storage.snapshots import FileSet
from gossamer.tables.merge import merge

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.runner import Run

KEY = ("domain_fp", "url_fp", "rowkey")


def known_rows(run: Run, fetched: ir.Table, segments: list[str]) -> ir.Table:
    """Crawldb rows of the fetched URLs; those without one are left out."""
    listed = [(s, _since(run, s)) for s in segments]
    usable = [(s, sets) for s, sets in listed if sets is not None]
    if len(usable) < len(listed) or not usable or _overlap(run, segments):
        return run.source.table("crawldb", among=fetched.select(*KEY).distinct())
    parts = [_from_list(run, segment, sets) for segment, sets in usable]
    names = run.tables["crawldb"].names
    known = ibis.union(*(p.select(*names) for p in parts)) if len(parts) > 1 else parts[0].select(*names)
    unlisted = fetched.anti_join(_lists(run, segments), list(KEY)).select(*KEY).distinct().view()
    if not _any(run, unlisted):
        return known
    return ibis.union(known, run.source.table("crawldb", among=unlisted).select(*names))


def _lists(run: Run, segments: list[str]) -> ir.Table:
    lists = [run.table("fetchlist", segment=s).select(*KEY) for s in segments]
    return ibis.union(*lists) if len(lists) > 1 else lists[0]


def _any(run: Run, rows: ir.Table) -> bool:
    return bool(run.crawl.engine.collect(rows.aggregate(n=rows.count())).column("n")[0].as_py())


def _overlap(run: Run, segments: list[str]) -> bool:
    """Whether a URL is in several of the lists: then they may tell different stories."""
    if len(segments) == 1:
        return False
    lists = _lists(run, segments)
    return _any(run, lists.group_by(*KEY).having(lists.count() > 1).agg())


def _since(run: Run, segment: str) -> tuple[FileSet, ...] | None:
    """Change sets of the crawldb published since the list was made; None if the base is another by now."""
    lists = run.snapshot.sets("fetchlist", segment)
    record = runs.load(run.crawl.files, lists[0].folder.rsplit("/", 1)[1]) if len(lists) == 1 else None
    if record is None or "crawldb" not in record.inputs:
        return None
    seen = set(record.inputs["crawldb"])
    sets = run.snapshot.sets("crawldb")
    if not seen <= {s.folder for s in sets}:
        return None
    since = tuple(s for s in sets if s.folder not in seen and s.rows)
    return since if all(s.delta for s in since) else None


def _from_list(run: Run, segment: str, since: tuple[FileSet, ...]) -> ir.Table:
    """The rows of a list as the crawldb would have them."""
    table = run.tables["crawldb"]
    rows = run.table("fetchlist", segment=segment)
    rows = rows.mutate(segment=rows.fetched_in, inlinks=ibis.null("int32"))
    types = run.source.table("crawldb").schema()  # as the engine has them, which tells times of no zone from ours
    rows = rows.mutate(**{name: ibis.null(types[name]) for name in table.names if name not in rows.columns})
    rows = rows.select(*table.names)
    if not since:
        return rows
    keys = rows.select(*KEY).view()
    deltas = [run.source.changes(table, s, among=keys) for s in since]
    return merge(table, rows, deltas).semi_join(keys, list(KEY)).view()
