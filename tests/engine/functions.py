"""What the contract suite runs inside workers: module-level functions, importable there."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from gossamer.errors import CorruptError

Batches = Iterator[pa.RecordBatch]
INT, TEXT = pa.int64(), pa.string()

TRACE = pa.schema([("call", TEXT), ("place", INT), ("id", INT)])
RANKED = pa.schema([("id", INT), ("place", INT)])
PEAK = pa.schema([("rows", INT), ("ordered", pa.bool_()), ("peak_mb", INT)])
POSTING = pa.schema([("term", TEXT), ("url", TEXT), ("frequency", pa.int32()), ("age", pa.int8())])
INDEX = pa.schema([("term", TEXT), ("urls", pa.list_(TEXT)), ("frequencies", pa.list_(pa.int32()))])
INLINKS = pa.schema([("dst", TEXT), ("src", TEXT), ("score", pa.float64()), ("place", INT), ("cash", INT)])


def mark(folder: str, name: str) -> str:
    """Leave a file that says this was run; running twice leaves two."""
    unique = f"{name}-{uuid.uuid4().hex}"
    (Path(folder) / unique).touch()
    return unique


def rows_of(batches: Batches) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def batches_of(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Batches:
    found = list(rows)
    if found:
        columns = [pa.array([row[i] for row in found], field.type) for i, field in enumerate(schema)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def traced(batches: Batches, folder: str) -> Batches:
    """Which call saw which row, in which place."""
    call = mark(folder, "call")
    yield from batches_of(((call, place, row["id"]) for place, row in enumerate(rows_of(batches))), TRACE)


def ranked(batches: Batches, key: tuple[str, ...]) -> Batches:
    """The place of each row among those of its key."""
    places: Counter[str] = Counter()
    out = []
    for row in rows_of(batches):
        name = repr([row[column] for column in key])
        out.append((row["id"], places[name]))
        places[name] += 1
    yield from batches_of(out, RANKED)


def echo(batches: Batches) -> Batches:
    yield from batches


def nothing(batches: Batches) -> Batches:
    for _ in batches:
        pass
    yield from ()


def first_only(batches: Batches) -> Batches:
    """Leaves most of its input unread."""
    yield next(batches).slice(0, 1)


def peak(batches: Batches) -> Batches:
    """Count a long key without holding it, and say how much memory that took."""
    rows, last, ordered = 0, -1, True
    for batch in batches:
        ids = batch.column("id").to_numpy()
        ordered = ordered and bool(ids[0] > last) and bool((ids[1:] > ids[:-1]).all())
        rows, last = rows + len(ids), int(ids[-1])
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    yield from batches_of([(rows, ordered, peak_mb)], PEAK)


def top(batches: Batches, n: int) -> Batches:
    """A3: rows come by decreasing score within each bucket; keep the first n of each."""
    for _, rows in groupby(rows_of(batches), key=lambda row: row["fp"] & 7):
        found = list(rows)[:n]
        yield from batches_of(((row["id"], place) for place, row in enumerate(found)), RANKED)


def capped_inlinks(batches: Batches, cap: int) -> Batches:
    """D7: the best inlinks of each page, and the cash they bring."""
    for dst, rows in groupby(rows_of(batches), key=lambda row: row["dst"]):
        best = list(rows)[:cap]
        cash = sum(row["cash"] for row in best)
        yield from batches_of(((dst, r["src"], r["score"], i, cash) for i, r in enumerate(best)), INLINKS)


def postings(batches: Batches) -> Batches:
    """E4, map: the terms of each document with their frequency."""
    for row in rows_of(batches):
        counted = Counter(row["text"].split())
        yield from batches_of(((t, row["url"], n, row["age"]) for t, n in counted.items()), POSTING)


def newest(batches: Batches) -> Batches:
    """E4, merge: each URL once per term; its newest posting comes first."""
    for _, rows in groupby(rows_of(batches), key=lambda row: (row["term"], row["url"])):
        first = next(rows)
        yield from batches_of([tuple(first.values())], POSTING)


def inverted(batches: Batches) -> Batches:
    """E4, reduce: frequency is part of the sort key, so a term's postings arrive in the order they are stored."""
    for term, rows in groupby(rows_of(batches), key=lambda row: row["term"]):
        found = list(rows)
        yield from batches_of([(term, [r["url"] for r in found], [r["frequency"] for r in found])], INDEX)


def square(task: int) -> pa.Table:
    time.sleep(0.02 * (task % 3))  # so that tasks do not end in the order they began
    return pa.table({"task": [task], "square": [task * task], "worker": [os.getpid()]})


def recorded(task: int, folder: str) -> pa.Table:
    mark(folder, f"task-{task}")
    return pa.table({"task": [task]})


class Brittle(Exception):
    """An exception that cannot be unpickled, as those of many libraries."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{reason} ({code})")


class Fragile(CorruptError):
    """One of ours that cannot be unpickled, as a plugin may have."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{reason} ({code})")


def fails(task: int, folder: str, how: str) -> pa.Table:
    """Task 2 fails in the given way; each run of a task leaves a mark."""
    mark(folder, f"task-{task}")
    if task == 2:
        fail(how)
    return pa.table({"task": [task]})


def fails_in_map(batches: Batches, folder: str, how: str) -> Batches:
    """The call that meets row 2 fails in the given way; each such call leaves a mark."""
    for batch in batches:
        if 2 in batch.column("id").to_pylist():
            mark(folder, "met")
            fail(how)
        yield batch


def fail(how: str) -> None:
    if how == "ours":
        raise CorruptError("x.warc.gz: damaged; restore it")
    if how == "theirs":
        raise KeyError("missing\nkey")
    if how == "brittle":
        raise Brittle(7, "broken pipe")
    if how == "fragile":
        raise Fragile(8, "torn")
    if how == "sys.exit":
        sys.exit(0)
    if how == "os._exit":
        os._exit(3)
    if how == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "executor":
        next(p for p in psutil.Process().parents() if p.name() == "java").kill()
        time.sleep(30)
    raise ValueError(how)


def not_a_table(task: int) -> Any:
    return {"task": [task]}


def another_schema(task: int) -> pa.Table:
    return pa.table({f"column{task}": [task]})


def waits(task: int, folder: str, failing: int = 0) -> pa.Table:
    """Waits for longer than any test does; the failing task only until all have begun."""
    mark(folder, f"pid-{os.getpid()}")
    end = time.monotonic() + 60
    while time.monotonic() < end and (task != failing or len(list(Path(folder).glob("pid-*"))) < 2):
        time.sleep(0.05)
    raise CorruptError("enough")


def modules(task: int) -> pa.Table:
    return pa.table({"module": sorted(sys.modules)})
