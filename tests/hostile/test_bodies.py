"""Bombs are what they claim to be, and codings lie as they say."""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from tests.hostile import bombs
from tests.hostile.clients import everything, get
from tests.hostile.server import hostile_server

READERS: dict[str, tuple[Callable[[int], bytes], Callable[[bytes], bytes]]] = {
    "gzip": (bombs.gzip, gzip.decompress),
    "deflate": (bombs.deflate, zlib.decompress),
    "br": (bombs.br, brotli.decompress),
    "zstd": (bombs.zstd, lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)),
}


@pytest.mark.parametrize("coding", READERS)
@pytest.mark.parametrize("megabytes", [16, 48])
def test_a_bomb_is_sound_to_its_last_byte(coding: str, megabytes: int):
    make, read = READERS[coding]
    assert read(make(megabytes)) == b" " * (megabytes << 20)


@pytest.mark.parametrize("coding", READERS)
def test_a_bomb_is_small_and_quickly_made(coding: str):
    start = time.monotonic()
    assert len(READERS[coding][0](4096)) < 5 << 20
    assert time.monotonic() - start < 2


def test_sums_of_repeated_blocks():
    assert bombs.crc_of_repeats(b"abc", 5) == zlib.crc32(b"abc" * 5)
    assert bombs.crc_of_repeats(b"abc", 0) == 0


def test_codings_over_the_wire():
    with hostile_server() as server:
        for coding, (make, _) in READERS.items():
            _, headers, body = get(server.port, f"/{coding}-bomb?mb=32")
            assert (headers["Content-Encoding"], body) == (coding, make(32))
        _, headers, body = get(server.port, "/gzip-nested?n=4")
        assert headers["Content-Encoding"] == "gzip, gzip, gzip, gzip"
        for _ in range(4):
            body = gzip.decompress(body)
        assert body.startswith(b"<!doctype html>")
        _, _, body = get(server.port, "/gzip-nested-bomb?mb=32")
        assert len(body) < 2000
        assert len(gzip.decompress(gzip.decompress(body))) == 32 << 20
        assert get(server.port, "/coding-lie")[2].startswith(b"<!doctype")
        with pytest.raises(EOFError):
            gzip.decompress(get(server.port, "/gzip-cut")[2])
        with pytest.raises(gzip.BadGzipFile, match="CRC"):
            gzip.decompress(get(server.port, "/gzip-bad-sum")[2])
        endless = everything(server.port, "/endless-gzip", at_most=1 << 20).partition(b"\r\n\r\n")[2]
        chunks = [each for each in endless.split(b"\r\n")[1::2] if len(each) == 10_000 or each.startswith(b"\x1f")]
        assert zlib.decompressobj(31).decompress(b"".join(chunks[:50])) == b""
