"""Content codings taken off a body, bounded: what would grow beyond a limit is cut there."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO

import pyarrow as pa

NESTED = 5  # codings around one another
PIECE = 1 << 16
INNER = 4  # times as much may be read of a coding inside another: it may give little and be endless
GZIP, MAGIC = 31, b"\x1f\x8b"


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
    pieces: Iterator[bytes] = (body[at : at + PIECE] for at in range(0, len(body), PIECE))
    for coding in reversed(codings):  # each takes pieces from the one before, so that only the last result is whole
        pieces = _first(_READERS[coding](pieces), INNER * most)
    found = BytesIO()  # which hands over its bytes without a copy
    for piece in _first(pieces, most):
        found.write(piece)
    return found.getvalue()


def _first(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    """So many bytes, then no more."""
    left = most
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _gunzipped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    return _inflated(pieces, lambda _: GZIP)


def _undeflated(pieces: Iterator[bytes]) -> Iterator[bytes]:
    return _inflated(pieces, lambda start: 15 if _is_zlib(start) else -15)


def _is_zlib(start: bytes) -> bool:
    """Whether it is what the standard calls deflate; some servers send it bare."""
    return len(start) > 1 and start[0] & 0x0F == 8 and int.from_bytes(start[:2], "big") % 31 == 0


def _inflated(pieces: Iterator[bytes], window: Callable[[bytes], int]) -> Iterator[bytes]:
    """Inflate pieces; gzip files may follow one another, and end where a piece does or just before."""
    stream, kind, data, files = None, 0, b"", 0
    try:
        for piece in pieces:
            data += piece
            while data:
                if stream is None:
                    if len(data) < len(MAGIC):
                        break
                    if files and not data.startswith(MAGIC):
                        return
                    kind = window(data)
                    stream = zlib.decompressobj(kind)
                    files += 1
                yield stream.decompress(data, PIECE)
                data = stream.unconsumed_tail
                if stream.eof:
                    if kind != GZIP:
                        return
                    data = stream.unused_data
                    stream = None
        if stream is not None:
            yield stream.flush()  # what did not fit into the last piece
    except zlib.error:
        return


def _streamed(name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    try:
        with pa.CompressedInputStream(pa.PythonFile(_Source(pieces), mode="r"), name) as stream:
            while piece := stream.read(PIECE):
                yield piece
    except (pa.ArrowException, OSError):
        return


class _Source:
    """Pieces as a file."""

    closed = False

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left = pieces, b""

    def read(self, size: int) -> bytes:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._left = piece
        found, self._left = self._left[:size], self._left[size:]
        return found

    def close(self) -> None:
        """Nothing is open."""


_READERS: dict[bytes, Callable[[Iterator[bytes]], Iterator[bytes]]] = {
    b"gzip": _gunzipped,
    b"x-gzip": _gunzipped,
    b"deflate": _undeflated,
    b"br": partial(_streamed, "brotli"),
    b"zstd": partial(_streamed, "zstd"),
}
CODINGS = frozenset(_READERS)
