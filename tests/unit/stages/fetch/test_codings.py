"""Bodies without their content codings: bounded, whatever a server sends."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from random import Random

import brotli
import pytest
import zstandard

from gossamer.stages.fetch.codings import NESTED, codings_of, decoded
from tests.hostile import bombs

TEXT = b"User-agent: *\nDisallow: /private/\n" * 2_000
MOST = 1 << 20


def raw(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}
BOMBS = {"gzip": bombs.gzip, "deflate": bombs.deflate, "br": bombs.br, "zstd": bombs.zstd}


def head(*codings: str) -> bytes:
    lines = "".join(f"Content-Encoding: {coding}\r\n" for coding in codings)
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{lines}\r\n".encode()


@pytest.mark.parametrize("coding", PACKERS)
def test_each_coding_is_taken_off(coding: str):
    assert decoded(PACKERS[coding](TEXT), head(coding), MOST) == TEXT
    assert decoded(PACKERS[coding](b""), head(coding), MOST) == b""
    noise = Random(1).randbytes(300_000)  # in more pieces than one
    assert decoded(PACKERS[coding](noise), head(coding), MOST) == noise


def test_plain_bodies_stay_as_they_are():
    assert decoded(TEXT, head(), MOST) == TEXT
    assert decoded(TEXT, head("identity"), MOST) == TEXT
    assert decoded(TEXT, head(), 100) == TEXT[:100]
    assert decoded(b"", head(), 100) == b""


@pytest.mark.parametrize("first", [b"x", b"8", b"\x08", b"h" * 40, TEXT])
def test_bare_deflate_is_read_as_well(first: bytes):
    assert decoded(raw(first), head("deflate"), MOST) == first


def test_gzip_files_one_after_the_other():
    assert decoded(gzip.compress(b"one ") + gzip.compress(b"two"), head("gzip"), MOST) == b"one two"
    assert decoded(gzip.compress(b"one") + b"garbage after it", head("gzip"), MOST) == b"one"


@pytest.mark.parametrize("size", [0, 1, 11, 65_536 - 18 - 5, 65_537 - 18 - 5, 65_535 - 18 - 5])
def test_gzip_files_that_end_near_the_end_of_a_piece(size: int):
    """Stored without compression, a file is 18 bytes longer than its content, and 5 for each 65,535 bytes of that."""
    packed = [gzip.compress(bytes([n]) * size, 0, mtime=0) for n in range(200 if size < 100 else 5)]
    content = b"".join(bytes([n]) * size for n in range(len(packed)))
    body = b"".join(packed * (10 if size < 100 else 1))
    assert decoded(body + gzip.compress(b"end"), head("gzip"), MOST) == content * (10 if size < 100 else 1) + b"end"


@pytest.mark.parametrize("coding", BOMBS)
@pytest.mark.parametrize("most", [1 << 19, 1 << 22])
def test_a_bomb_is_cut_and_takes_less_than_twice_what_is_kept(coding: str, most: int):
    body = BOMBS[coding](64)
    tracemalloc.start()
    try:
        found = decoded(body, head(coding), most)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == b" " * most
    assert peak < 2 * most


@pytest.mark.parametrize("outer", BOMBS)
@pytest.mark.parametrize("inner", ["gzip", "zstd"])
def test_a_bomb_in_a_bomb_takes_no_more(outer: str, inner: str):
    body = PACKERS[outer](BOMBS[inner](2048))
    tracemalloc.start()
    try:
        found = decoded(body, head(inner, outer), MOST)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == b" " * MOST
    assert peak < 2 * MOST


def test_a_coding_inside_that_gives_nothing_is_not_read_to_its_end():
    """64 MB of empty gzip files, packed: each layer may be read to a few times the limit only."""
    empty = gzip.compress(b"", mtime=0)
    body = gzip.compress(empty * (64_000_000 // len(empty)) + gzip.compress(b"late"), 1)
    assert decoded(body, head("gzip, gzip"), 100_000) == b""
    assert decoded(gzip.compress(empty * 10 + gzip.compress(b"soon")), head("gzip, gzip"), 100_000) == b"soon"


def test_codings_are_taken_off_in_reverse():
    body = gzip.compress(brotli.compress(TEXT))
    assert decoded(body, head("br, gzip"), MOST) == decoded(body, head("br", "gzip"), MOST) == TEXT
    assert decoded(body, head("gzip, br"), MOST) == b""


def test_too_many_codings_are_not_read():
    body = TEXT
    for _ in range(NESTED):
        body = gzip.compress(body)
    assert decoded(body, head(", ".join(["gzip"] * NESTED)), MOST) == TEXT
    assert decoded(gzip.compress(body), head(", ".join(["gzip"] * (NESTED + 1))), MOST) == b""


@pytest.mark.parametrize("coding", PACKERS)
def test_what_is_damaged_is_read_as_far_as_it_goes(coding: str):
    noise = Random(2).randbytes(400_000)
    body = PACKERS[coding](noise)
    found = decoded(body[: len(body) * 3 // 4], head(coding), MOST)
    assert len(found) > 100_000
    assert noise.startswith(found)


@pytest.mark.parametrize("coding", PACKERS)
def test_a_coding_that_is_a_lie_gives_nothing(coding: str):
    assert decoded(TEXT, head(coding), MOST) == b""
    assert decoded(b"", head(coding), MOST) == b""
    assert decoded(b"\x1f", head(coding), MOST) == b""


@pytest.mark.parametrize("coding", PACKERS)
def test_damage_anywhere_raises_nothing(coding: str):
    random, body = Random(3), PACKERS[coding](TEXT)
    for _ in range(200):
        at = random.randrange(len(body))
        decoded(body[:at] + random.randbytes(2) + body[at + 2 :], head(coding), MOST)


def test_an_unknown_coding_gives_nothing():
    assert decoded(TEXT, head("compress"), MOST) == b""
    assert decoded(gzip.compress(TEXT), head("gzip, rot13"), MOST) == b""


def test_codings_are_found_however_they_are_written():
    assert codings_of(b"HTTP/1.1 200 OK\r\nCONTENT-encoding : GZip ,, Identity,br\r\nX: gzip\r\n\r\n") == [
        b"gzip",
        b"br",
    ]
