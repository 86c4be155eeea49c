"""The map: every stage in the order data takes, what it reads and writes, and its balance equation.

Command line, runner, `gossamer graph` and the docs derive from this page. A balance is an equation over the counters of
a run; if it does not hold, nothing is published.
"""

from __future__ import annotations

from dataclasses import dataclass

ANY = ("*",)  # the table is chosen when the stage is run


@dataclass(frozen=True)
class Stage:
    """One verb: a job between tables."""

    name: str
    doc: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    balance: str
    job: str  # `module:function`, imported when it runs
    keeps: bool = False  # tables hold the same rows before and after
    per_segment: bool = False
    alone: bool = False  # one run at a time, whatever the segment


STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            "inject",
            "Add the URLs of seed lists to the crawldb; what it knows already stays as it is.",
            reads=("crawldb",),
            writes=("crawldb",),
            balance="seeds = injected + known + updated + rejected + filtered + duplicates",
            job="gossamer.stages.inject.job:run",
        ),
        Stage(
            "load",
            "Add rows from Parquet, CSV or JSON files to a table; one that takes no change sets is replaced.",
            reads=(),
            writes=ANY,
            balance="rows_read = rows_written + rejected + duplicates",
            job="gossamer.stages.load.job:run",
        ),
        Stage(
            "generate",
            "Choose the URLs to fetch next and cut them into batches.",
            reads=("crawldb", "fetchlist", "hosts"),
            writes=("fetchlist",),
            balance="urls = listed + left_out",
            job="gossamer.stages.generate.job:run",
        ),
        Stage(
            "fetch",
            "Fetch a batch: answers go to WARC files, what became of each URL to rows.",
            reads=("fetchlist", "hosts", "robots"),
            writes=("fetch", "found", "hosts", "robots"),
            balance="urls + redirected = rows; rows = success + not_modified + redirects + gone + failed"
            " + robots_denied + refused + later + untried",
            job="gossamer.stages.fetch.job:run",
            per_segment=True,
            alone=True,
        ),
        Stage(
            "drop",
            "Give up batches: their URLs may be chosen again.",
            reads=("fetchlist",),
            writes=(),
            balance="batches = dropped",
            job="gossamer.stages.generate.batches:drop",
        ),
        Stage(
            "update",
            "Apply what was fetched and parsed to the crawldb: states, schedules, links, new URLs.",
            reads=("fetchlist", "fetch", "found", "parse", "outlinks", "counted", "crawldb"),
            writes=("crawldb", "counted"),
            balance="fetches = applied + again + stale + untried; links = links_counted + links_entered + links_dropped",
            job="gossamer.stages.update.job:run",
        ),
        Stage(
            "purge",
            "Take out URLs that are gone and that nothing has linked to for a year.",
            reads=("crawldb",),
            writes=("crawldb",),
            balance="gone = purged + kept",
            job="gossamer.stages.update.purge:run",
        ),
        Stage(
            "compact",
            "Fold a table's change sets into its base, shard by shard.",
            reads=ANY,
            writes=ANY,
            balance="rows_before = rows_written",
            job="gossamer.stages.rewrite.job:compact",
            keeps=True,
        ),
        Stage(
            "fold",
            "Make one change set of all change sets of a table.",
            reads=ANY,
            writes=ANY,
            balance="rows_before = rows_written",
            job="gossamer.stages.rewrite.job:fold",
            keeps=True,
        ),
        Stage(
            "migrate",
            "Rewrite files of older schema versions in today's.",
            reads=ANY,
            writes=ANY,
            balance="rows_before = rows_written",
            job="gossamer.stages.rewrite.job:migrate",
            keeps=True,
        ),
        Stage(
            "reshard",
            "Cut every sharded table into another number of shards.",
            reads=ANY,
            writes=ANY,
            balance="rows_before = rows_written",
            job="gossamer.stages.rewrite.job:reshard",
            keeps=True,
        ),
    )
}


def balanced(equations: str, counters: dict[str, int]) -> bool:
    """Whether both sides of each balance equation are equal; a counter that was never touched is 0."""
    for equation in equations.split(";"):
        left, right = ([term.strip() for term in side.split("+")] for side in equation.split("="))
        if sum(counters.get(t, 0) for t in left) != sum(counters.get(t, 0) for t in right):
            return False
    return True
