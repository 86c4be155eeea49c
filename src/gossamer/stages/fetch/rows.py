"""Decided requests → rows of the tables fetch and robots, a part at a time.

What a URL's keys are is known from its fetchlist; only those that came up on the way have to be computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from gossamer.stages.fetch.robots import Robots
from gossamer.tables.hosts import ROBOTS
from gossamer.tables.segment import FETCH
from gossamer.tables.spec import TIMESTAMP
from gossamer.tables.statuses import Outcome
from gossamer.urls import keys
from gossamer.urls.keys import fingerprint, reverse_host


class Place(NamedTuple):
    """Where a record lies."""

    file: str | None = None
    offset: int | None = None
    length: int | None = None


NOWHERE = Place()


class Row(NamedTuple):
    """What became of one URL; names are those of the table, times are seconds since 1970."""

    url: str
    outcome: Outcome
    fetched_at: float
    via: str | None = None
    http_code: int | None = None
    started_at: float | None = None
    latency_ms: int | None = None
    retry_after_s: int | None = None
    content_type: str | None = None
    length: int | None = None
    truncated_reason: str | None = None
    redirect_to: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    payload_digest: str | None = None
    ip: str | None = None
    protocol: str | None = None
    tls: str | None = None
    error: str | None = None
    robots_line: str | None = None
    x_robots_tag: str | None = None
    place: Place = NOWHERE


PLAIN = tuple(
    name for name in Row._fields if name in FETCH.names and name not in ("started_at", "fetched_at", "outcome")
)


class Answered(NamedTuple):
    """What an origin said of its robots.txt."""

    origin: str
    host: str
    at: float
    expires_at: float
    http_code: int | None
    robots: Robots | None  # None: unreachable
    body: bytes
    error: str | None
    place: Place = NOWHERE


def fetch_rows(rows: Sequence[Row], segment: str, rules_version: int) -> pa.Table:
    """Rows of the table fetch."""
    columns = dict(zip(Row._fields, zip(*rows, strict=True), strict=True))
    found = keys.url_columns(pa.array(columns["url"], pa.string()))
    files, offsets, lengths = zip(*columns["place"], strict=True)
    given = {
        **{name: found[name] for name in ("domain_fp", "url_fp", "rowkey")},
        **{name: columns[name] for name in PLAIN},
        "segment": [segment] * len(rows),
        "outcome": [int(outcome) for outcome in columns["outcome"]],
        "started_at": moments(columns["started_at"]),
        "fetched_at": moments(columns["fetched_at"]),
        "truncated": [reason is not None for reason in columns["truncated_reason"]],
        "warc_file": files,
        "warc_offset": offsets,
        "warc_length": lengths,
        "rules_version": [rules_version] * len(rows),
    }
    return _table(given, FETCH.schema)


def robots_rows(answers: Sequence[Answered]) -> pa.Table:
    """Rows of the table robots."""
    given = {
        "host_fp": [fingerprint(answer.host) for answer in answers],
        "host_key": [reverse_host(answer.host) for answer in answers],
        "origin": [answer.origin for answer in answers],
        "updated_at": moments([answer.at for answer in answers]),
        "expires_at": moments([answer.expires_at for answer in answers]),
        "http_code": [answer.http_code for answer in answers],
        "reachable": [answer.robots is not None for answer in answers],
        "body": [answer.body for answer in answers],
        "sitemaps": [list(answer.robots.sitemaps) if answer.robots else [] for answer in answers],
        "error": [answer.error for answer in answers],
        "warc_file": [answer.place.file for answer in answers],
        "warc_offset": [answer.place.offset for answer in answers],
        "warc_length": [answer.place.length for answer in answers],
    }
    return _table(given, ROBOTS.schema)


def moments(seconds: Sequence[float | None]) -> pa.Array:
    """Times in UTC, truncated to milliseconds."""
    return pa.array([None if at is None else int(at * 1000) * 1000 for at in seconds], pa.int64()).cast(TIMESTAMP)


def _table(given: dict[str, Sequence[object] | pa.Array], schema: pa.Schema) -> pa.Table:
    columns = [
        column if isinstance(column := given[field.name], pa.Array) else pa.array(column, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
