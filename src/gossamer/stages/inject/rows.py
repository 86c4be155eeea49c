"""One part of a seed list on its way to scratch: parse, check, and sort the bad from the good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.stages.inject.changes import ORDER, new_rows
from gossamer.stages.inject.inputs import Part, blocks
from gossamer.stages.inject.lines import SHOWN, seeds_of
from gossamer.storage.parquet import PartWriter, Target, write_part
from gossamer.tables.spec import Table
from gossamer.urls.chain import UrlChain
from gossamer.urls.keys import url_columns

STAGE = "inject"
TOLD = 20  # bad lines told one by one
BAD = pa.schema([("line", pa.int64()), ("reason", pa.string()), ("url", pa.string())])
COUNTS = pa.map_(pa.string(), pa.int64())
RESULT = pa.schema(
    [
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("lines", pa.int64()),
        ("seeds", pa.int64()),
        ("rejected", COUNTS),
        ("filtered", COUNTS),
        ("failures", COUNTS),  # URLs that steps of plugins failed on
        ("told", pa.list_(pa.struct(list(BAD)))),
        ("bad_path", pa.string()),
    ]
)


@dataclass(frozen=True)
class InjectTask:
    """One part of a seed list."""

    number: int
    part: Part
    chain: UrlChain
    table: Table
    now: datetime
    interval_s: int
    target: Target
    bad: Target | None  # where all bad lines go, if somebody wants them


@dataclass(frozen=True)
class Sorted:
    """The seeds of one block: the good ones with their normalised URLs, and why the others are not."""

    good: pa.RecordBatch
    urls: pa.Array
    bad: pa.RecordBatch
    rejected: Counter[str]
    filtered: Counter[str]


@dataclass
class Tally:
    """What a part was found to hold."""

    lines: int = 0
    seeds: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    filtered: Counter[str] = field(default_factory=Counter)
    told: list[dict[str, Any]] = field(default_factory=list)
    bad: PartWriter | None = None  # opened for the first bad line


def stage_part(task: InjectTask) -> pa.Table:
    """Write a part's good seeds to scratch; one row with what was found."""
    tally = Tally()
    chain = replace(task.chain, failures=Counter())  # without workers, all tasks share one
    try:
        entry = write_part(task.target, _good(task, chain, tally), 0, task.number)
        bad = tally.bad.close() if tally.bad else None
    except BaseException:
        if tally.bad:
            tally.bad.abort()
        raise
    row = {
        "path": entry.path if entry else None,
        "rows": entry.rows if entry else 0,
        "lines": tally.lines,
        "seeds": tally.seeds,
        "rejected": list(tally.rejected.items()),
        "filtered": list(tally.filtered.items()),
        "failures": list(chain.failures.items()),
        "told": tally.told,
        "bad_path": bad.path if bad else None,
    }
    return pa.Table.from_pylist([row], RESULT)


def _good(task: InjectTask, chain: UrlChain, tally: Tally) -> Iterator[pa.RecordBatch]:
    """The good seeds block by block; `tally` learns about the others."""
    for block in blocks(task.part):
        seeds, lines = seeds_of(block, tally.lines + 1)
        order = np.arange(tally.seeds, tally.seeds + seeds.num_rows, dtype=np.int64) + (task.number << 40)
        tally.lines += lines
        tally.seeds += seeds.num_rows
        found = sort_out(seeds.append_column(ORDER, pa.array(order)), chain)
        tally.rejected += found.rejected
        tally.filtered += found.filtered
        if task.bad is not None and found.bad.num_rows:
            tally.bad = tally.bad or PartWriter(task.bad, 0, task.number)
            tally.bad.write(found.bad)
        tally.told += found.bad.slice(0, TOLD - len(tally.told)).to_pylist()
        yield new_rows(found.good, url_columns(found.urls), task.table, task.part.seeds.tag, task.now, task.interval_s)


def sort_out(seeds: pa.RecordBatch, chain: UrlChain) -> Sorted:
    """The seeds that normalise and pass the filters, and the others with their reasons."""
    nothing = pa.scalar(None, pa.string())
    urls = pc.if_else(seeds.column("reason").is_null(), seeds.column("url"), nothing)
    normal = chain.normalize(urls, STAGE)
    rejected = pc.coalesce(seeds.column("reason"), normal.reason)
    depth = pa.repeat(pa.scalar(0, pa.int16()), seeds.num_rows)
    filtered = pc.if_else(rejected.is_null(), chain.filter(normal.url, STAGE, depth), nothing)
    reasons = pc.coalesce(rejected, filtered)
    passed = reasons.is_null()
    shown = pc.utf8_slice_codeunits(seeds.column("url"), 0, SHOWN)
    bad = pa.RecordBatch.from_arrays([seeds.column("line"), reasons, shown], schema=BAD).filter(pc.invert(passed))
    return Sorted(seeds.filter(passed), normal.url.filter(passed), bad, _counted(rejected), _counted(filtered))


def _counted(reasons: pa.Array) -> Counter[str]:
    counts = pc.value_counts(reasons.drop_null())
    return Counter({row["values"]: row["counts"] for row in counts.to_pylist()})
