"""Content codings taken off a body, bounded: what would grow beyond a limit is cut there."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pyarrow as pa

CODINGS = {b"gzip", b"x-gzip", b"deflate", b"br", b"zstd"}
NESTED = 5  # codings around one another
PIECE = 1 << 16


def codings_of(head: bytes) -> list[bytes]:
    """The content codings an answer names, in the order they were applied."""
    found = []
    for line in head.splitlines():
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-encoding":
            found += [coding.strip().lower() for coding in value.split(b",")]
    return [coding for coding in found if coding and coding != b"identity"]


def decoded(body: bytes, head: bytes, most: int) -> bytes:
    """The first `most` bytes of a body without its codings; as far as they can be read, if it is damaged."""
    codings = codings_of(head)
    if len(codings) > NESTED or not CODINGS.issuperset(codings):
        return b""
    data = body
    for coding in reversed(codings):
        data = _first(_pieces(data, coding), most if coding is codings[0] else 4 * most)
    return data[:most]


def _first(pieces: Iterator[bytes], most: int) -> bytes:
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size >= most:
            break
    return b"".join(found)[:most]


def _pieces(data: bytes, coding: bytes) -> Iterator[bytes]:
    """A body in pieces of bounded size, one coding less; ends where the data is damaged."""
    if coding in (b"gzip", b"x-gzip"):
        yield from _inflated(data, 31)
    elif coding == b"deflate":
        yield from _inflated(data, 15 if data[:1] and data[0] & 0x0F == 8 else -15)
    else:
        try:
            with pa.CompressedInputStream(pa.BufferReader(data), "brotli" if coding == b"br" else "zstd") as stream:
                while piece := stream.read(PIECE):
                    yield piece
        except (pa.ArrowException, OSError):
            return


def _inflated(data: bytes, window: int) -> Iterator[bytes]:
    stream = zlib.decompressobj(window)
    try:
        while data and not stream.eof:
            piece = stream.decompress(data, PIECE)
            data = stream.unconsumed_tail
            if not piece and not data:
                return
            yield piece
    except zlib.error:
        return
