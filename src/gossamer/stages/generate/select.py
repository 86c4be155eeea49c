"""From the candidates of all shards to batches: the best of all within their limits, batch after batch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import ibis

from gossamer.stages.generate.candidates import BELOW, CHOSEN, OVER_LIMIT
from gossamer.stages.generate.hosts import Limits
from gossamer.storage.parquet import FileEntry, Target

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.engine.base import Engine

BEST_FIRST = (ibis.desc("score"), ibis.desc("tie"), "url_fp", "domain_fp")
KEY = ("domain_fp", "url_fp")


@dataclass(frozen=True)
class Taken:
    """For each batch the files of its URLs, one per group of shards; and what the last one chose from."""

    batches: list[list[FileEntry]]
    pool: ir.Table
    full: bool  # every batch has as many URLs as it may

    @property
    def rows(self) -> int:
        """URLs in all batches."""
        return sum(entry.rows for entries in self.batches for entry in entries)


def take_batches(engine: Engine, candidates: ir.Table, limits: Limits, target: Target) -> Taken:
    """Batches, each below a folder of its own; each takes the best of what earlier ones left."""
    taken = Taken([], candidates, full=False)
    for number in range(1, limits.batches + 1):
        pool = _without(engine, candidates, taken.batches, target)
        if limits.limited:
            pool = pool.mutate(nth=ibis.row_number().over(group_by="group", order_by=BEST_FIRST))
        fitting = pool.filter(pool.nth < pool["limit"]) if limits.limited else pool
        best = fitting.order_by(*BEST_FIRST).limit(limits.top)
        entries = engine.write(best, replace(target, folder=f"{target.folder}/chosen-{number}"))
        if not entries:
            return replace(taken, full=False)
        full = sum(entry.rows for entry in entries) == limits.top
        taken = Taken([*taken.batches, entries], pool, full)
    return taken


def _without(engine: Engine, candidates: ir.Table, batches: list[list[FileEntry]], target: Target) -> ir.Table:
    """The candidates that are in none of the batches."""
    if not batches:
        return candidates
    return candidates.anti_join(_rows(engine, batches, target).select(*KEY), list(KEY)).view()


def _rows(engine: Engine, batches: list[list[FileEntry]], target: Target) -> ir.Table:
    return engine.read([target.files.url(e.path) for entries in batches for e in entries], target.schema)


def settle(
    engine: Engine, taken: Taken, limits: Limits, target: Target, fates: Counter[tuple[str, str]], by_host: bool
) -> None:
    """Candidates that no batch took are not chosen after all: over the limit of their host, or below the top."""
    found = {host: count for (host, fate), count in fates.items() if fate == CHOSEN}
    chosen = _counted(engine, _rows(engine, taken.batches, target)) if by_host else {"": taken.rows}
    lost = {host: count - chosen.get(host, 0) for host, count in found.items()}
    over = lost if limits.limited and not taken.full else {}
    if limits.limited and taken.full and any(lost.values()):
        counted = _counted(engine, taken.pool.filter(taken.pool.nth >= taken.pool["limit"]))
        over = counted if by_host else {"": sum(counted.values())}
    for host, count in lost.items():
        fates[host, CHOSEN] -= count
        fates[host, OVER_LIMIT] += over.get(host, 0)
        fates[host, BELOW] += count - over.get(host, 0)


def _counted(engine: Engine, rows: ir.Table) -> dict[str, int]:
    """How many rows each host has."""
    counts = engine.collect(rows.group_by("host").agg(n=rows.count()))
    return dict(zip(counts.column("host").to_pylist(), counts.column("n").to_pylist(), strict=True))
