"""WARC/1.1 records: one request and its answer → gzip members, one to a record, as bytes for somebody else to write.

The response (or revisit) comes first, then its request and metadata, as warcio orders them: a torn end costs what
matters least, and `WARC-Concurrent-To` always points back. Everything a server can choose is hostile: no URL, header or
error text can end a line of ours. Level 1 of isal takes a quarter of the time of zlib's level 1 at its ratio; on pages of
19 KB, level 2 gains about one percent, 3 two or three at more than twice the time, and 0 gives away a tenth.
"""

from __future__ import annotations

import os
import re
import time
from base64 import b32encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha1
from typing import BinaryIO, Literal, NamedTuple
from urllib.parse import quote

from isal import isal_zlib

from gossamer.storage.warc_heads import revisit_head, stored_head

LEVEL = 1
GZIP = 31  # wbits: the largest window, with gzip's header and checksum
JOINED = 1 << 20  # bytes of a body up to which one copy is cheaper than a call for each piece
READ = 1 << 15
LONGEST = 14_000  # characters of a URL, and twice that of a request: fastwarc gives up on a file at a header of 32 KiB
IDS = 256  # made at once
PROFILES = {
    "identical": "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
    "not-modified": "http://netpreserve.org/warc/1.1/revisit/server-not-modified",
}
SAFE_URL = re.compile(r"[!-;=?-~]*")  # printable ASCII; old readers take a URL in <> for one in brackets
URL_CHARACTERS = "".join(map(chr, range(33, 127))).replace("<", "").replace(">", "")
BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # whatever some reader ends a line at
CONTENT_TYPE = re.compile(rb"(?im)^content-type:[ \t]*([^\r\n]+)")
NOT_TOKEN = re.compile(r"[^!#$%&'*+\-.^_`|~0-9A-Za-z]+")
VERSION_4 = bytes(byte & 0x0F | 0x40 for byte in range(256))
VARIANT_1 = bytes(byte & 0x3F | 0x80 for byte in range(256))

Body = bytes | list[bytes]


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as the fetcher saw them."""

    url: str
    at: float  # seconds since the epoch, of the request
    ip: str | None
    protocol: str  # http/1.0, http/1.1, h2, h3
    request: bytes  # the head as sent; empty: no record
    head: bytes  # status line, header lines and blank line as received
    body: Body  # without transfer coding, in its content coding
    truncated: str | None = None  # length, time, disconnect, unspecified
    refers_to: float | None = None  # when the capture was made that a revisit repeats
    revisit: Literal["identical", "not-modified"] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)  # empty: no record
    digest: str | None = None  # `payload_digest` of the body, if it is known


class Packed(NamedTuple):
    """Gzip members, and which part of them is the response (or revisit)."""

    data: bytes
    offset: int
    length: int


def payload_digest(body: Body) -> str:
    """Base32 of the SHA-1, as WARC digests are written."""
    return _digest([body] if isinstance(body, bytes) else body)


def pack(exchange: Exchange, *, with_request: bool = True) -> Packed:
    """The records of one exchange; a URL too long for readers is whole in the metadata only, and such a request left out."""
    answer_id, date, uri, metadata = _record_id(), warc_date(exchange.at), target_uri(exchange.url), exchange.metadata
    if len(uri) > LONGEST:
        uri, metadata = uri[:LONGEST], {**metadata, "url": uri}
    make = _resource if not uri.startswith("http") else _response if exchange.revisit is None else _revisit
    answer = make(exchange, answer_id, date, uri)
    members = [answer]
    linked = f"WARC-Date: {date}\r\nWARC-Target-URI: {uri}\r\nWARC-Concurrent-To: <urn:uuid:{answer_id}>\r\n"
    if with_request and 0 < len(exchange.request) <= 2 * LONGEST:
        fields = linked + "Content-Type: application/http; msgtype=request\r\n"
        members.append(_record("request", _record_id(), fields, [exchange.request]))
    if metadata:
        fields = linked + "Content-Type: application/warc-fields\r\n"
        members.append(_record("metadata", _record_id(), fields, [warc_fields(metadata)]))
    return Packed(b"".join(members), 0, len(answer))


def warcinfo(filename: str, at: float, fields: Mapping[str, str]) -> bytes:
    """The record that opens a file."""
    headers = f"WARC-Date: {warc_date(at)}\r\nWARC-Filename: {one_line(filename)}\r\nContent-Type: application/warc-fields\r\n"
    return _record("warcinfo", _record_id(), headers, [warc_fields(fields)])


def whole_members(stream: BinaryIO) -> int:
    """The length of the longest prefix that is whole gzip members, every checksum right."""
    whole = position = 0  # the end of the last whole member, and of what has been read
    inflater = isal_zlib.decompressobj(GZIP)
    while data := stream.read(READ):
        position += len(data)
        while data:
            try:
                inflater.decompress(data, READ)
            except isal_zlib.error:  # type: ignore[misc]  # a class, which its stubs call an instance
                return whole
            data = inflater.unconsumed_tail
            if inflater.eof:
                data = inflater.unused_data
                whole = position - len(data)
                inflater = isal_zlib.decompressobj(GZIP)
    return whole


def warc_date(at: float) -> str:
    """UTC with microseconds."""
    seconds, micros = divmod(round(at * 1e6), 1_000_000)
    return f"{_second(seconds)}.{micros:06d}Z"


def target_uri(url: str) -> str:
    """The URL in printable ASCII, whatever it was made of."""
    return url if SAFE_URL.fullmatch(url) else quote(url.encode("utf-8", "surrogatepass"), safe=URL_CHARACTERS)


def one_line(text: str) -> str:
    """Text that ends no line."""
    if text.isascii() and text.isprintable():
        return text
    return BREAKS.sub(" ", text).encode("utf-8", "replace").decode()


def warc_fields(fields: Mapping[str, str]) -> bytes:
    """A block of application/warc-fields."""
    lines = (f"{NOT_TOKEN.sub('-', name) or '-'}: {one_line(value)}\r\n" for name, value in fields.items())
    return "".join(lines).encode()


def _response(exchange: Exchange, record_id: str, date: str, uri: str) -> bytes:
    body = exchange.body
    pieces = [body] if isinstance(body, bytes) else body
    length = sum(map(len, pieces))
    if len(pieces) > 1 and length <= JOINED:
        pieces = [b"".join(pieces)]
    digest = exchange.digest or _digest(pieces)
    truncated = f"WARC-Truncated: {one_line(exchange.truncated)}\r\n" if exchange.truncated else ""
    fields = f"{_answer_fields(exchange, date, uri)}WARC-Payload-Digest: sha1:{digest}\r\n{truncated}"
    return _record("response", record_id, fields, [stored_head(exchange.head, length), *pieces])


def _resource(exchange: Exchange, record_id: str, date: str, uri: str) -> bytes:
    """What another protocol than HTTP gave: the bytes alone, of the type their head names."""
    named = CONTENT_TYPE.search(exchange.head)
    kind = one_line(named[1].decode("latin-1")) if named else "application/octet-stream"
    truncated = f"WARC-Truncated: {one_line(exchange.truncated)}\r\n" if exchange.truncated else ""
    fields = f"WARC-Date: {date}\r\nWARC-Target-URI: {uri}\r\nContent-Type: {kind}\r\n{truncated}"
    return _record(
        "resource", record_id, fields, [exchange.body] if isinstance(exchange.body, bytes) else exchange.body
    )


def _revisit(exchange: Exchange, record_id: str, date: str, uri: str) -> bytes:
    assert exchange.revisit is not None
    fields = (
        f"{_answer_fields(exchange, date, uri)}WARC-Profile: {PROFILES[exchange.revisit]}\r\n"
        f"WARC-Refers-To-Target-URI: {uri}\r\n"
    )
    if exchange.refers_to is not None:
        fields += f"WARC-Refers-To-Date: {warc_date(exchange.refers_to)}\r\n"
    if exchange.revisit == "identical":  # the standard has a body left out for being the same count as cut for length
        digest = exchange.digest or payload_digest(exchange.body)
        fields += f"WARC-Payload-Digest: sha1:{digest}\r\nWARC-Truncated: length\r\n"
    return _record("revisit", record_id, fields, [revisit_head(exchange.head)])


def _answer_fields(exchange: Exchange, date: str, uri: str) -> str:
    ip = f"WARC-IP-Address: {one_line(exchange.ip)}\r\n" if exchange.ip else ""
    return (
        f"WARC-Date: {date}\r\nWARC-Target-URI: {uri}\r\n{ip}WARC-Protocol: {one_line(exchange.protocol)}\r\n"
        "Content-Type: application/http; msgtype=response\r\n"
    )


def _record(kind: str, record_id: str, fields: str, block: list[bytes]) -> bytes:
    """One gzip member; `fields` are header lines that vary with the kind."""
    length = sum(map(len, block))
    header = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{record_id}>\r\n{fields}"
        f"WARC-Block-Digest: sha1:{_digest(block)}\r\nContent-Length: {length}\r\n\r\n"
    ).encode()
    pieces = [header, *block, b"\r\n\r\n"]
    if length <= JOINED:
        return isal_zlib.compress(b"".join(pieces), LEVEL, GZIP)
    deflater = isal_zlib.compressobj(LEVEL, wbits=GZIP)
    members = [deflater.compress(piece) for piece in pieces]
    return b"".join([*members, deflater.flush()])


def _digest(pieces: Iterable[bytes]) -> str:
    hashed = sha1(usedforsecurity=False)
    for piece in pieces:
        hashed.update(piece)
    return b32encode(hashed.digest()).decode()


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


_ids: list[str] = []
os.register_at_fork(after_in_child=_ids.clear)  # a child takes none of its parent's


def _record_id() -> str:
    """A random UUID (version 4), from a stock that one call to the system fills."""
    try:
        return _ids.pop()
    except IndexError:
        fresh = _new_ids(IDS)
        last = fresh.pop()  # ours, whatever other threads take from the stock meanwhile
        _ids.extend(fresh)
        return last


def _new_ids(count: int) -> list[str]:
    noise = bytearray(os.urandom(16 * count))
    noise[6::16] = noise[6::16].translate(VERSION_4)
    noise[8::16] = noise[8::16].translate(VARIANT_1)
    digits = noise.hex()
    return [
        f"{digits[n : n + 8]}-{digits[n + 8 : n + 12]}-{digits[n + 12 : n + 16]}-{digits[n + 16 : n + 20]}-{digits[n + 20 : n + 32]}"
        for n in range(0, len(digits), 32)
    ]
