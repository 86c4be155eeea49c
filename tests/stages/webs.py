"""A small random web that changes from round to round, and what fetching and parsing it gives, as rows of our tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa

from gossamer.crawl import Crawl
from gossamer.storage import snapshots
from gossamer.storage.parquet import Target, write_part
from gossamer.storage.snapshots import Change, FileSet
from gossamer.tables import TABLES
from gossamer.tables.read import layout_of
from gossamer.tables.statuses import LinkKind, Outcome, ParseStatus
from gossamer.urls import keys

OK, MOVED, LOST, DEAD, BUSY, ERROR = "ok", "moved", "lost", "dead", "busy", "error"


@dataclass
class Page:
    """A page as the web shows it now."""

    state: str = OK
    links: tuple[str, ...] = ()
    text: int = 0
    target: str | None = None
    canonical: str | None = None


@dataclass
class Web:
    """Pages by URL."""

    pages: dict[str, Page] = field(default_factory=dict)

    @classmethod
    def random(cls, seed: int, hosts: int = 6, per_host: int = 25) -> Web:
        rng = Random(seed)
        web = cls({f"https://h{h}.example/p{p}": Page() for h in range(hosts) for p in range(per_host)})
        for url in web.pages:
            web.shake(url, rng)
        return web

    def shake(self, url: str, rng: Random) -> None:
        """The page becomes another."""
        others = list(self.pages)
        links = tuple(dict.fromkeys(rng.choice(others) for _ in range(rng.randrange(8))))
        state = rng.choices([OK, MOVED, LOST, DEAD, BUSY, ERROR], [20, 2, 2, 1, 1, 2])[0]
        canonical = url.replace("/p", "/c") if rng.random() < 0.1 else None
        self.pages[url] = Page(
            state, links, rng.randrange(1000), rng.choice(others) if state == MOVED else None, canonical
        )

    def change(self, rng: Random, share: float) -> None:
        for url in list(self.pages):
            if rng.random() < share:
                self.shake(url, rng)


@dataclass
class Fetched:
    """What fetching one URL gave."""

    url: str
    outcome: Outcome
    at: datetime
    segment: str
    retry_after: int | None = None
    target: str | None = None
    digest: str | None = None
    signature: int | None = None
    canonical: str | None = None
    links: tuple[str, ...] | None = None  # None: not parsed


def fetch(web: Web, url: str, at: datetime, segment: str) -> Fetched:
    """One look at the web."""
    page = web.pages.get(url, Page(LOST))
    found = Fetched(url, Outcome.SUCCESS, at, segment)
    if page.state == MOVED:
        found.outcome, found.target = Outcome.REDIRECT_PERMANENT, page.target
    elif page.state in (LOST, DEAD):
        found.outcome = Outcome.GONE if page.state == LOST else Outcome.GONE_FOR_GOOD
    elif page.state == BUSY:
        found.outcome, found.retry_after = Outcome.RETRY_LATER, 7200
    elif page.state == ERROR:
        found.outcome = Outcome.FAIL
    else:
        found.digest, found.signature, found.canonical = f"sha{page.text}", page.text, page.canonical
        found.links = page.links
    return found


def publish(crawl: Crawl, segment: str, given: dict[str, pa.Table]) -> None:
    """Make tables of a segment what is given, in one snapshot and without an engine."""
    sets: dict[str, tuple[FileSet, ...]] = {}
    number = crawl.snapshot.id
    for name, rows in given.items():
        spec = crawl.tables_at(crawl.snapshot)[name]
        target = Target(crawl.files, f"segments/{segment}/{name}/{number:08d}-test", spec.schema)
        entry = write_part(target, rows.to_batches(), 0, 0)
        entries = [entry] if entry else []
        snapshots.write_manifest(crawl.files, target.folder, entries, 1)
        layout = layout_of(spec.schema)
        size = sum(e.bytes for e in entries)
        sets[name] = (
            FileSet(target.folder, spec.version, rows.num_rows, size, len(entries), segment=segment, layout=layout),
        )
    change = Change(f"{number:08d}-test", "test", "2026-03-01T12:00:00.000Z", replace=sets)
    snapshots.publish(crawl.files, change, crawl.snapshot)


def store(crawl: Crawl, segment: str, found: Iterable[Fetched]) -> None:
    """Put what was found into the tables of a segment, as fetch and parse would."""
    fetched = list(found)
    parsed = [f for f in fetched if f.links is not None]
    links = [(f, n, url) for f in parsed for n, url in enumerate(dict.fromkeys(f.links or ()))]
    given = {
        "fetch": rows(
            "fetch",
            [f.url for f in fetched],
            segment=segment,
            outcome=[int(f.outcome) for f in fetched],
            fetched_at=[f.at for f in fetched],
            retry_after_s=[f.retry_after for f in fetched],
            redirect_to=[f.target for f in fetched],
            payload_digest=[f.digest for f in fetched],
        ),
        "parse": rows(
            "parse",
            [f.url for f in parsed],
            segment=segment,
            status=[int(ParseStatus.OK)] * len(parsed),
            signature=[f.signature for f in parsed],
            canonical=[f.canonical for f in parsed],
        ),
        "outlinks": rows(
            "outlinks",
            [url for _, _, url in links],
            segment=segment,
            position=[n for _, n, _ in links],
            kind=[int(LinkKind.ANCHOR)] * len(links),
            **{f"src_{n}": c for n, c in _keys([f.url for f, _, _ in links]).items()},
        ),
    }
    publish(crawl, segment, given)


def _keys(urls: list[str]) -> dict[str, pa.Array]:
    columns = keys.url_columns(pa.array(urls, pa.string()))
    return {name: columns[name] for name in ("domain_fp", "url_fp", "rowkey", "url")}


def rows(name: str, urls: list[str], **columns: Any) -> pa.Table:
    """Rows of a table; keys come from the URLs."""
    schema = TABLES[name].schema
    given: dict[str, Any] = dict(_keys(urls)) | {"host": keys.hosts(pa.array(urls, pa.string()))} | columns
    made = {}
    for f in schema:
        value = given.get(f.name)
        value = [value] * len(urls) if isinstance(value, str) else value
        if value is None:
            made[f.name] = pa.nulls(len(urls), f.type)
        else:
            made[f.name] = value.cast(f.type) if isinstance(value, pa.Array) else pa.array(value, f.type)
    return pa.table(made)


def later(moment: datetime, days: float) -> datetime:
    return moment + timedelta(days=days)
