"""Bodies that are larger, longer or otherwise coded than they say."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable

import brotli

from tests.hostile import bombs
from tests.hostile.behaviours.base import (
    BEHAVIOURS,
    BODIES,
    HTML,
    PIECE,
    Behaviour,
    Request,
    Writer,
    add,
    behaviour,
    fixed,
    head,
    page,
)

CUT = "success, truncated: length"
CODED = "fail, or success with the bytes as they came; an error counted, never a crash"
PAGE = page("What it really is")
PACKED = gzip.compress(PAGE, mtime=0)
CHUNKED = {"Transfer-Encoding": "chunked"}


def _bomb(coding: str, make: Callable[[int], bytes]) -> None:
    async def answer(request: Request, writer: Writer) -> None:
        body = make(request.count("mb", 1024))
        await writer.head(headers={"Content-Encoding": coding, "Content-Length": str(len(body))})
        await _in_pieces(writer, body)
        writer.keep = True

    name = {"gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}[coding]
    does = f"`?mb=` megabytes (1024) of spaces in a little {coding}."
    add(Behaviour(f"{name}-bomb", does, BODIES, CUT, answer), BEHAVIOURS)


async def _in_pieces(writer: Writer, body: bytes) -> None:
    for at in range(0, len(body), PIECE):
        await writer.send(body[at : at + PIECE])


for _coding, _make in {"gzip": bombs.gzip, "deflate": bombs.deflate, "br": bombs.br, "zstd": bombs.zstd}.items():
    _bomb(_coding, _make)


@behaviour("gzip-nested", BODIES, "fail, or success; an error counted for more codings than are bearable")
async def gzip_nested(request: Request, writer: Writer) -> None:
    """A page in gzip in gzip and so on, `?n=` times (10)."""
    times, body = request.count("n", 10), PAGE
    for _ in range(times):
        body = gzip.compress(body, mtime=0)
    await writer.answer(body=body, headers={"Content-Encoding": ", ".join(["gzip"] * times)})


@behaviour("gzip-nested-bomb", BODIES, CUT)
async def gzip_nested_bomb(request: Request, writer: Writer) -> None:
    """`?mb=` megabytes (1024) in gzip in gzip: a few kilobytes on the wire."""
    body = await asyncio.to_thread(lambda: gzip.compress(bombs.gzip(request.count("mb", 1024)), mtime=0))
    await writer.answer(body=body, headers={"Content-Encoding": "gzip, gzip"})


@behaviour("codings-many", BODIES, CODED)
async def codings_many(_: Request, writer: Writer) -> None:
    """A plain page whose Content-Encoding names a thousand codings."""
    await writer.answer(body=PAGE, headers={"Content-Encoding": ", ".join(["gzip", "br"] * 500)})


def _coded(name: str, does: str, coding: str, body: bytes, expect: str = CODED) -> None:
    headers = {"Content-Type": HTML, "Content-Encoding": coding, "Content-Length": str(len(body))}
    fixed(name, BODIES, expect, does, head(200, headers | {"Connection": "close"}) + body)


_coded("coding-lie", "Plain HTML that claims to be gzip.", "gzip", PAGE)
_coded("coding-lie-br", "Gzip that claims to be brotli.", "br", PACKED)
_coded(
    "coding-lie-deflate",
    "Raw deflate, as some servers send for deflate.",
    "deflate",
    zlib.compress(PAGE)[2:-4],
    "success",
)
_coded("coding-unknown", "A coding nobody knows.", "x-snake", PAGE)
_coded("coding-identity", "The coding identity, spelled out.", "identity", PAGE, "success")
_coded("coding-x-gzip", "Gzip by its old name.", "x-gzip", PACKED, "success")
_coded(
    "gzip-cut",
    "Gzip that ends in its middle.",
    "gzip",
    PACKED[: len(PACKED) // 2],
    "success, truncated: disconnect, or fail",
)
_coded("gzip-bad-sum", "Gzip whose checksum is wrong.", "gzip", PACKED[:-8] + bytes(8))
_coded("gzip-tail", "Gzip with other bytes behind it.", "gzip", PACKED + b"and then some" * 100)
_coded("gzip-members", "Gzip of two members.", "gzip", PACKED + PACKED, "success")
_coded("gzip-empty", "Gzip of no bytes at all, not even a header.", "gzip", b"", "success, length 0")
_coded("br-garbage", "Noise that claims to be brotli.", "br", bytes(range(256)) * 64)
_coded(
    "br-cut",
    "Brotli that ends in its middle.",
    "br",
    brotli.compress(PAGE)[:-20],
    "success, truncated: disconnect, or fail",
)
fixed("gzip-unsaid", BODIES, "success with the bytes as they came", "Gzip that calls itself plain HTML.",
      head(200, {"Content-Type": HTML, "Content-Length": str(len(PACKED)), "Connection": "close"}) + PACKED)  # fmt: skip


@behaviour("endless", BODIES, CUT)
async def endless(_: Request, writer: Writer) -> None:
    """A chunked body without end, as fast as it is taken."""
    await writer.head(headers=CHUNKED)
    while True:
        await writer.chunk(b"<p>and on</p>\n" * 1000)


@behaviour("endless-close", BODIES, CUT)
async def endless_close(_: Request, writer: Writer) -> None:
    """A body without length and without end."""
    await writer.head(headers={"Connection": "close"})
    while True:
        await writer.send(b"<p>and on</p>\n" * 1000)


@behaviour("endless-gzip", BODIES, CUT)
async def endless_gzip(_: Request, writer: Writer) -> None:
    """A gzip stream without end that holds nothing: empty blocks, so that only bytes on the wire can be counted."""
    await writer.head(headers=CHUNKED | {"Content-Encoding": "gzip"})
    await writer.chunk(b"\x1f\x8b\x08" + bytes(6) + b"\xff")
    while True:
        await writer.chunk(b"\x00\x00\x00\xff\xff" * 2000)


@behaviour("tiny-chunks", BODIES, "success, in bearable time")
async def tiny_chunks(request: Request, writer: Writer) -> None:
    """`?n=` chunks (10^6) of one byte each."""
    await writer.head(headers=CHUNKED)
    left = request.count("n", 1_000_000)
    while left:
        now = min(left, 5000)
        await writer.send(b"1\r\nx\r\n" * now)
        left -= now
    await writer.send(b"0\r\n\r\n")
    writer.keep = True


@behaviour("short", BODIES, "success, truncated: disconnect")
async def short(_: Request, writer: Writer) -> None:
    """A body that ends before its Content-Length."""
    await writer.send(head(200, {"Content-Type": HTML, "Content-Length": str(len(PAGE) + 10_000)}) + PAGE)


@behaviour("long", BODIES, "success, length as said; the connection not used again")
async def long(_: Request, writer: Writer) -> None:
    """A body that goes on after its Content-Length, with what looks like another response."""
    more = head(200, {"Content-Type": HTML, "Content-Length": "8"}) + b"smuggled"
    await writer.send(head(200, {"Content-Type": HTML, "Content-Length": str(len(PAGE))}) + PAGE + more)
    writer.keep = True


@behaviour("until-close", BODIES, "success")
async def until_close(_: Request, writer: Writer) -> None:
    """A body without length that ends when the connection does."""
    await writer.head(headers={"Connection": "close"})
    await writer.send(PAGE)
