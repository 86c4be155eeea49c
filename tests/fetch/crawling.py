"""What tests of fetch share: a crawl of given URLs, a round of it, and what rows and WARC files say afterwards.

Hosts of `.test` are reached at 127.0.0.1 by `fetch.connect_to`, at the ports their URLs name. Time-outs are short.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import BufferedReader
from warcio.cli import main as warcio_main

from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.tables.statuses import Outcome
from tests.stages.crawls import seed_rows, write_rows
from tests.storage.warc_readers import read

QUICK = {
    "fetch.delay_ms": 0,
    "fetch.connect_timeout_s": 1.0,
    "fetch.read_timeout_s": 1.0,
    "fetch.deadline_s": 3.0,
    "fetch.max_bytes": 1 << 20,
    "fetch.tail_s": 0,
    "fetch.connect_to": {"*.test": "127.0.0.1"},
    "agent.name": "testbot",
}


@dataclass
class Record:
    """A record of a WARC file, as warcio reads it."""

    type: str
    url: str
    headers: dict[str, str]
    http: dict[str, str]  # of responses, names in lower case
    status: str
    body: bytes


@dataclass
class Round:
    """What a round of fetching gave."""

    segment: str
    rows: dict[str, dict[str, Any]]  # by URL
    files: list[Path]
    seconds: float
    counts: dict[str, int] = field(default_factory=dict)

    def outcome(self, url: str) -> str:
        """The outcome of a URL, in words; `nothing` if it has no row."""
        return Outcome(self.rows[url]["outcome"]).name if url in self.rows else "nothing"

    def records(self, url: str | None = None, kind: str | None = None) -> list[Record]:
        """Records of the WARC files, of one URL or kind, or all."""
        found = [record for path in self.files for record in read_warc(path)]
        return [r for r in found if (url is None or r.url == url) and (kind is None or r.type == kind)]

    def record(self, url: str) -> Record:
        """The record a row points to, read by fastwarc from its very place."""
        row = self.rows[url]
        path = next(path for path in self.files if path.name == row["warc_file"])
        with path.open("rb") as stream:
            stream.seek(row["warc_offset"])
            piece = stream.read(row["warc_length"])
        found = next(iter(FastIterator(io.BytesIO(piece), parse_http=True, record_types=WarcRecordType.any_type)))
        headers, http = dict(found.headers), {n.lower(): v for n, v in found.http_headers or ()}
        return Record(
            headers["WARC-Type"], headers["WARC-Target-URI"], headers, http, found.http_headers.status_line or "",
            found.reader.read(),
        )  # fmt: skip


def sets(given: dict[str, Any]) -> list[str]:
    """Settings as the command line has them."""
    return [f"{name}={value if isinstance(value, str) else _toml(value)}" for name, value in given.items()]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(n)} = {_toml(v)}" for n, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def crawl_of(
    folder: Path, engine: Any, urls: Iterable[str], settings: dict[str, Any] | None = None, **rows: Any
) -> Crawl:
    """A crawl that knows some URLs, all due; `settings` by dotted names, besides short time-outs."""
    crawl = Crawl.init(str(folder / "crawl"), shards=1, engine=engine, sets=sets({**QUICK, **(settings or {})}))
    crawl.load("crawldb", write_rows(folder / "seeds.parquet", seed_rows(list(urls), **rows)))
    return crawl


def reopened(crawl: Crawl, settings: dict[str, Any] | None = None) -> Crawl:
    """The same crawl with other settings."""
    return Crawl(crawl.files.root, engine=crawl.engine, clock=crawl.clock, sets=sets({**QUICK, **(settings or {})}))


def later(crawl: Crawl, **by: float) -> Crawl:
    """Set the clock of a crawl forward."""
    crawl.clock = lambda: Clock(Clock.system().now + timedelta(**by))
    return crawl


def fetch_round(crawl: Crawl, *, top: int | None = None) -> Round:
    """Generate a batch and fetch it; the WARC files are sound."""
    (segment,) = crawl.generate(top=top)
    began = time.monotonic()
    record = crawl.fetch(segment)
    seconds = time.monotonic() - began
    assert record is not None
    rows = crawl.engine.collect(crawl.table("fetch", segment=segment)).to_pylist()
    urls = [row["url"] for row in rows]
    assert len(urls) == len(set(urls)), "a URL has two rows"
    files = sorted(Path(crawl.files.url(f"segments/{segment}/warc")).glob("*.warc.gz"))
    for path in files:
        check(path)
    return Round(segment, {row["url"]: row for row in rows}, files, seconds, dict(record.counters))


def fetched(
    folder: Path, engine: Any, urls: Sequence[str], settings: dict[str, Any] | None = None, **rows: Any
) -> Round:
    """One round of a new crawl."""
    return fetch_round(crawl_of(folder, engine, urls, settings, **rows))


def check(path: Path) -> None:
    """A WARC file passes `warcio check`, and both readers agree on its records, heads and bodies."""
    told = io.StringIO()
    with (
        redirect_stdout(told),
        patch.object(BufferedReader, "get_supported_decompressors", tuple),
    ):  # broken codings are content, too
        try:
            code = warcio_main(["check", str(path)])
        except SystemExit as ended:
            code = ended.code
    assert not code, told.getvalue()
    read(path.read_bytes())


def read_warc(path: Path) -> list[Record]:
    """All records of a WARC file."""
    found = []
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream):
            headers = dict(record.rec_headers.headers)
            http = {n.lower(): v for n, v in record.http_headers.headers} if record.http_headers else {}
            status = record.http_headers.statusline if record.http_headers else ""
            body = record.raw_stream.read()
            found.append(Record(record.rec_type, headers.get("WARC-Target-URI", ""), headers, http, status, body))
    return found


def table(crawl: Crawl, name: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of a table."""
    rows: pa.Table = crawl.engine.collect(crawl.table(name, **options))
    return rows.to_pylist()
