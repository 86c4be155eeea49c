"""What tests of generate share: crawls with given rows, fetchlists as dictionaries, scorers that misbehave."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.plugins.hookspecs import hookimpl
from gossamer.stages.generate.score import Context, Scorer
from gossamer.tables import TABLES
from gossamer.tables.spec import Column, Merge
from gossamer.urls import keys
from tests.stages.crawls import NOW, seed_rows, write_rows

NUMBERS = count()


def add_rows(crawl: Crawl, folder: Path, urls: Sequence[str], **columns: Any) -> None:
    """Another change set of the crawldb; columns are lists, or one value for all."""
    given = {n: v if isinstance(v, list | pa.Array) else [v] * len(urls) for n, v in columns.items()}
    rows = seed_rows(list(urls), **given)
    for name in given.keys() - set(rows.column_names):  # plugin columns, deletions
        rows = rows.append_column(name, pa.array(given[name]))
    crawl.load("crawldb", write_rows(folder / f"rows-{next(NUMBERS)}.parquet", rows))


def crawl_of(folder: Path, engine: Any, urls: Sequence[str] = (), *settings: str, **columns: Any) -> Crawl:
    """A crawl of four shards that knows some URLs, with settings."""
    crawl = Crawl.init(str(folder / "crawl"), shards=4, clock=NOW, engine=engine, sets=settings)
    crawl.clock = lambda: NOW
    if urls:
        add_rows(crawl, folder, urls, **columns)
    return crawl


def add_hosts(crawl: Crawl, folder: Path, **hosts: dict[str, Any]) -> None:
    """Rows of the hosts table; `_` in a name stands for a dot."""
    names = [name.replace("_", ".") for name in hosts]
    of_urls = keys.url_columns(pa.array([f"http://{name}/" for name in names]))
    rows = [
        {
            "host_fp": keys.fingerprint(name),
            "host_key": keys.reverse_host(name),
            "host": name,
            "domain_fp": of_urls["domain_fp"][at].as_py(),
            **facts,
        }
        for at, (name, facts) in enumerate(zip(names, hosts.values(), strict=True))
    ]
    schema = pa.schema([f.with_nullable(True) for f in TABLES["hosts"].schema])
    crawl.load("hosts", write_rows(folder / f"hosts-{next(NUMBERS)}.parquet", pa.Table.from_pylist(rows, schema)))


def pages(host: str, number: int) -> list[str]:
    return [f"https://{host}/p{n}" for n in range(number)]


def fetchlist(crawl: Crawl, segment: str) -> list[dict[str, Any]]:
    """Rows of a batch in the order in which they are stored."""
    rows = crawl.engine.collect(
        crawl.table("fetchlist", segment=segment).order_by("partition", "position", "domain_fp", "url_fp")
    ).to_pylist()
    return [row | {name: dict(row[name] or ()) for name in ("parts", "meta")} for row in rows]


def listed(crawl: Crawl, *segments: str) -> list[str]:
    return sorted(row["url"] for segment in segments for row in fetchlist(crawl, segment))


def chosen(crawl: Crawl, **options: Any) -> list[str]:
    """The URLs of the batches that generate makes."""
    return listed(crawl, *crawl.generate(**options))


def per_host(urls: Sequence[str]) -> dict[str, int]:
    hosts = [url.split("/")[2] for url in urls]
    return {host: hosts.count(host) for host in sorted(set(hosts))}


def later(crawl: Crawl, **delta: float) -> None:
    """Move the clock on."""
    crawl.clock = partial(Clock, crawl.clock().now + timedelta(**delta))


def twice(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    previous *= 2  # scorers may write into what they are given
    return previous


def raises(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    previous *= 100
    raise LookupError("no model")


def short(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    return previous[1:]


def nan(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    """NaN, both infinities and a number, by the shade of a URL."""
    values = np.array([np.nan, np.inf, -np.inf, 0.25])
    return values[facts.column("shade").fill_null(3).to_numpy(zero_copy_only=False)]


def negative(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    """-0.0 for shade 1, else a half."""
    return np.where(facts.column("shade").fill_null(0).to_numpy(zero_copy_only=False) == 1, -0.0, 0.5)


def by_host(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    return np.array([1.0 / len(host) for host in facts.column("host").to_pylist()]) * context.weight("by_host")


@hookimpl
def gossamer_columns() -> list[Column]:
    return [Column("shade", pa.int32(), "A number for scorers.", Merge.NEWEST)]


@hookimpl
def gossamer_scorers() -> list[Scorer]:
    return [
        Scorer("twice", (), twice),
        Scorer("raises", (), raises),
        Scorer("short", (), short),
        Scorer("nan", ("shade",), nan),
        Scorer("negative", ("shade",), negative),
        Scorer("by_host", ("host",), by_host),
        Scorer("blind", ("no_such_column",), twice),
    ]


PLUGIN = 'plugins.load=["tests.stages.generating"]'
