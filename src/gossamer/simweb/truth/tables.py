"""The truth about a web as Parquet: hosts, urls, states and links with the times in which they hold, and how far each URL is from the seeds.

Sites are surveyed in parallel, a range of them per part; then URLs that only other sites name are looked up where they belong, until none is new.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from multiprocessing import active_children, get_context
from os import _exit, cpu_count, getpid, getppid
from pathlib import Path
from shutil import rmtree
from signal import SIG_IGN, SIGINT, signal
from threading import Thread
from time import sleep
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.errors import UsageError
from gossamer.simweb.config import WebConfig
from gossamer.simweb.sites.life import NEVER
from gossamer.simweb.truth.survey import Survey, survey
from gossamer.simweb.web import Web

TIME = pa.timestamp("s", tz="UTC")
HOSTS = pa.schema(
    [
        ("host", pa.string()), ("origin", pa.string()), ("other_host", pa.string()), ("rank", pa.int32()), ("kind", pa.string()),
        ("language", pa.string()), ("charset", pa.string()), ("items", pa.int64()), ("launched", TIME), ("relaunched", TIME),
        ("robots", pa.string()), ("crawl_delay", pa.int32()), ("manner", pa.string()),
    ]
)  # fmt: skip
URLS = pa.schema(
    [
        ("url", pa.string()), ("host", pa.string()), ("site", pa.int32()), ("kind", pa.string()), ("page", pa.string()),
        ("format", pa.string()), ("useful", pa.bool_()), ("language", pa.string()), ("charset", pa.string()), ("declared", pa.string()),
        ("duplicate", pa.int64()), ("near", pa.int64()), ("trap", pa.bool_()), ("allowed", pa.bool_()),
    ]
)  # fmt: skip
STATES = pa.schema(
    [
        ("url", pa.string()), ("valid_from", TIME), ("valid_to", TIME), ("status", pa.int16()), ("target", pa.string()),
        ("soft", pa.bool_()), ("changed", TIME),
    ]
)  # fmt: skip
LINKS = pa.schema(
    [
        ("src", pa.string()), ("dst", pa.string()), ("anchor", pa.string()), ("kind", pa.string()), ("nofollow", pa.bool_()),
        ("valid_from", TIME), ("valid_to", TIME),
    ]
)  # fmt: skip
SCHEMAS = {"hosts": HOSTS, "urls": URLS, "states": STATES, "links": LINKS}
LAST = "truth.json"  # written when all else is there
SITES_PER_PART = 64
ROWS_PER_WRITE = 200_000
SEEDS = 10


class Span(NamedTuple):
    """The time the truth is about; an instant if both are the same."""

    start: int
    end: int


def write_truth(
    config: WebConfig,
    folder: Path,
    span: Span,
    seeds: Sequence[str] = (),
    workers: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, int]:
    """Write all tables into a new folder; returns the number of rows in each."""
    from gossamer.simweb.truth.reach import add_depths

    if span.end < span.start:
        raise UsageError("the truth must end after it starts; see --until")
    web = Web(config)
    for seed in seeds:
        if web.find(urlsplit(seed).hostname or "") is None:
            raise UsageError(f"the seed {seed} is not on this web; seeds are URLs, one a line")
    fresh(folder, {*SCHEMAS, "seeds.txt"}, LAST)
    for name in SCHEMAS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    pq.write_table(_hosts(web, span.start), folder / "hosts" / "part-00000.parquet")
    _survey_all(web, folder, span, workers, tell)
    chosen = list(seeds) or [f"{web.site(index).origin}/" for index in range(min(SEEDS, web.hosts))]
    (folder / "seeds.txt").write_text("".join(f"{seed}\n" for seed in chosen), encoding="utf-8")
    tell("reachability")
    add_depths(folder, chosen, span.start)
    counts = {name: _rows(folder / name) for name in SCHEMAS}
    about = {"web": msgspec.to_builtins(config), "from": span.start, "until": span.end, "rows": counts}
    (folder / LAST).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return counts


def fresh(folder: Path, ours: Set[str], last: str) -> None:
    """Make a folder ready to be written: a new or empty one, or one that a run of ours did not finish."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a new folder")
    if last in names or not names <= ours:
        raise UsageError(f"{folder} is not empty; name a new folder")
    for name in names:
        path = folder / name
        rmtree(path) if path.is_dir() else path.unlink()


def _survey_all(web: Web, folder: Path, span: Span, workers: int, tell: Callable[[str], None]) -> None:
    """Survey every site, then what links name beyond that."""
    parts: list[dict[int, Sequence[str]]] = [
        dict.fromkeys(range(low, min(low + SITES_PER_PART, web.hosts)), ())
        for low in range(0, web.hosts, SITES_PER_PART)
    ]
    known: set[str] = set()
    elsewhere: set[str] = set()
    for done, (urls, others) in enumerate(_side_by_side(web.config, folder, span, parts, workers), 1):
        known |= urls
        elsewhere |= others
        tell(f"{done} of {len(parts)} parts surveyed, {len(known):,} URLs")
    number = len(parts)
    while wanted := _by_site(web, elsewhere - known):
        urls, elsewhere = survey_part(web.config, folder, span, number, wanted, known)
        known |= urls
        number += 1


def _side_by_side(
    config: WebConfig, folder: Path, span: Span, parts: list[dict[int, Sequence[str]]], workers: int
) -> Iterator[tuple[set[str], set[str]]]:
    count = min(len(parts), workers or cpu_count() or 1)
    if count == 1:
        yield from (survey_part(config, folder, span, number, part) for number, part in enumerate(parts))
        return
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=_die_with, initargs=(getpid(),))
    try:
        running = [pool.submit(survey_part, config, folder, span, number, part) for number, part in enumerate(parts)]
        for future in as_completed(running):
            yield future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in active_children():
            process.terminate()
        raise
    pool.shutdown()


def _die_with(parent: int) -> None:
    """Let a worker leave interrupts to its parent, and end when that has ended."""
    signal(SIGINT, SIG_IGN)

    def watch() -> None:
        while getppid() == parent:
            sleep(0.5)
        _exit(1)

    Thread(target=watch, daemon=True).start()


def survey_part(
    config: WebConfig,
    folder: Path,
    span: Span,
    number: int,
    sites: Mapping[int, Sequence[str]],
    before: Set[str] = frozenset(),
) -> tuple[set[str], set[str]]:
    """Survey some sites into one file per table; gives their URLs and those of other sites that they name."""
    web = Web(config)
    known: set[str] = set()
    elsewhere: set[str] = set()
    writers = {
        name: pq.ParquetWriter(folder / name / f"part-{number:05d}.parquet", SCHEMAS[name])
        for name in ("urls", "states", "links")
    }
    held = Survey([], [], [], set())
    try:
        for index, asked in sites.items():
            found = survey(web, index, span.start, span.end, asked, before)
            known.update(row.url for row in found.urls)
            elsewhere |= found.elsewhere
            held.urls.extend(found.urls)
            held.states.extend(found.states)
            held.links.extend(found.links)
            if len(held.links) >= ROWS_PER_WRITE:
                _write(writers, held)
        _write(writers, held)
    finally:
        for writer in writers.values():
            writer.close()
    return known, elsewhere - known


def _write(writers: dict[str, Any], held: Survey) -> None:
    tables: dict[str, list[Any]] = {"urls": held.urls, "states": held.states, "links": held.links}
    for name, rows in tables.items():
        writers[name].write_table(_table(rows, SCHEMAS[name]))
        rows.clear()


def _table(rows: Sequence[Any], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = []
    for field, values in zip(schema, columns, strict=True):
        dated = pa.types.is_timestamp(field.type)
        chosen = [value if 0 < value < NEVER else None for value in values] if dated else values
        arrays.append(pa.array(chosen, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _by_site(web: Web, urls: set[str]) -> dict[int, Sequence[str]]:
    """URLs by the site they belong to; those of no site of this web are left out."""
    found: dict[int, list[str]] = {}
    for url in sorted(urls):
        site = web.find(url.partition("://")[2].partition("/")[0].partition(":")[0])
        if site is not None:
            found.setdefault(site.index, []).append(url)
    return dict(found)


def _hosts(web: Web, moment: int) -> pa.Table:
    rows = []
    for index in range(web.hosts):
        site = web.site(index)
        rows.append(
            {
                "host": site.host, "origin": site.origin, "other_host": site.other_host, "rank": index + 1, "kind": site.kind.name,
                "language": site.code, "charset": site.charset, "items": site.count(moment),
                "launched": _moment(site.launch), "relaunched": _moment(site.relaunch),
                "robots": site.manner.robots, "crawl_delay": site.manner.crawl_delay, "manner": json.dumps(msgspec.to_builtins(site.manner)),
            }
        )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=HOSTS)


def _moment(seconds: int) -> datetime | None:
    return None if seconds == NEVER else datetime.fromtimestamp(seconds, UTC)


def _rows(folder: Path) -> int:
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))
