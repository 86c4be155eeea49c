"""Ledgers to try: exchanges, rows, and what the files of a segment say."""

from __future__ import annotations

import gzip
import json
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq

from gossamer.stages.fetch.ledger import FETCH, LENGTHS, Form, Home, Ledger
from gossamer.stages.fetch.rows import NOWHERE, Row
from gossamer.storage.disk import Disk
from gossamer.storage.files import Files
from gossamer.storage.local import LocalFiles
from gossamer.storage.warc import Exchange, whole_members
from gossamer.tables.statuses import Outcome

SEGMENT, AT = "r00001-0", 1_782_907_200.0
FORM = Form({"software": "test"}, 1 << 30, True, 1)


def home_at(root: Path, disk: Disk | None = None) -> Home:
    files = LocalFiles(str(root), disk)
    return Home(files, files, SEGMENT)


def begun(home: Home, generation: int = 1, task: int = 0) -> None:
    """A journal is there: this generation is not finished."""
    path = home.journal(task, generation)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def url_of(n: int) -> str:
    return f"http://host.test/{n}"


def fetched(ledger: Ledger, n: int, body: bytes = b"") -> None:
    """A page that was archived, and its row."""
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    exchange = Exchange(url_of(n), AT, "192.0.2.1", "http/1.1", b"GET / HTTP/1.1\r\n\r\n", head, body or b"page %d" % n)
    ledger.add(Row(url_of(n), Outcome.SUCCESS, AT, place=ledger.archive(exchange, AT)))


def refused(ledger: Ledger, n: int) -> None:
    """A URL that was not asked for."""
    ledger.add(Row(url_of(n), Outcome.ROBOTS_DENIED, AT, place=NOWHERE))


def published(home: Home, files: Files | None = None) -> dict[str, dict[str, object]]:
    """Rows of the published parts by URL; every record they point to is there, whole and theirs."""
    files = files or home.files
    rows: dict[str, dict[str, object]] = {}
    for path in home.parts(FETCH):
        with files.open(path) as stream:
            table = pq.read_table(stream).to_pylist()
        for row in table:
            assert row["url"] not in rows, "two rows of one URL"
            rows[row["url"]] = row
            if row["warc_file"] is None:
                continue
            data = files.read(f"{home.warc}/{row['warc_file']}")
            record = data[row["warc_offset"] : row["warc_offset"] + row["warc_length"]]
            text = gzip.decompress(record)
            assert text.startswith(b"WARC/1.1\r\nWARC-Type: response")
            assert f"WARC-Target-URI: {row['url']}\r\n".encode() in text
    return rows


def warcs(home: Home) -> dict[str, int]:
    """WARC files and their sizes; each is whole gzip members."""
    found = {}
    for path, size in home.spool.list(home.warc):
        assert whole_members(BytesIO(home.spool.read(path))) == size, path
        found[path.rsplit("/", 1)[-1]] = size
    return found


def lengths(home: Home) -> list[dict[str, int]]:
    """What each part says of the WARC files."""
    found = []
    for path in home.parts(FETCH):
        with home.files.open(path) as stream:
            found.append(json.loads((pq.read_schema(stream).metadata or {})[LENGTHS]))
    return found
