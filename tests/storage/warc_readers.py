"""WARC files as three programs that are not ours read them: fastwarc, warcio and the HTTP client of Python."""

from __future__ import annotations

import io
from http.client import HTTPResponse
from typing import Any, NamedTuple

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator


class Read(NamedTuple):
    kind: str
    headers: list[tuple[str, str]]
    block: bytes
    status: str | None
    names: list[str]  # of the headers within the block
    body: bytes

    def __getitem__(self, name):
        (value,) = (value for key, value in self.headers if key == name)
        return value

    def has(self, name):
        return any(key == name for key, _ in self.headers)


def by_fastwarc(data):
    blocks = [record.reader.read() for record in FastIterator(io.BytesIO(data), parse_http=False)]
    parsed = FastIterator(io.BytesIO(data), verify_digests=True)
    found = []
    for block, record in zip(blocks, parsed, strict=True):
        http = record.http_headers if record.is_http else None
        status = (http.status_line or "").partition(" ")[2].strip() if http is not None else None
        names = [name.decode("latin-1") for name, _ in http.items_bytes()] if http is not None else []
        kind = str(record.record_type).rsplit(".", maxsplit=1)[-1]
        found.append(Read(kind, list(record.headers.items()), block, status, names, record.reader.read()))
    return found


def by_warcio(data):
    whole = ArchiveIterator(io.BytesIO(data), no_record_parse=True)
    blocks = [record.raw_stream.read() for record in whole]
    found: list[Read] = []
    for record in ArchiveIterator(io.BytesIO(data), check_digests="raise"):
        http = record.http_headers
        status = http.statusline if http else None
        names = [name for name, _ in http.headers] if http else []
        body = record.raw_stream.read()
        found.append(Read(record.rec_type, record.rec_headers.headers, blocks[len(found)], status, names, body))
    return found


def read(data):
    """The records of a file, on which both readers agree."""
    fast, slow = by_fastwarc(data), by_warcio(data)
    assert [(r.kind, r.headers, r.block, r.names, r.body) for r in fast] == [
        (r.kind, r.headers, r.block, r.names, r.body) for r in slow
    ]
    return slow


class _Socket:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self.data)


def by_http_client(block: bytes):
    """Status, headers and body of a stored response, as an HTTP client takes it from the wire."""
    socket: Any = _Socket(block)
    response = HTTPResponse(socket)
    response.begin()
    return response.status, response.getheaders(), response.read()
