"""Servers that are slow, silent or gone: stalls, drips, and connections broken off at every point."""

from __future__ import annotations

import asyncio

from tests.hostile.behaviours.base import BODIES, HTML, Request, Writer, behaviour, head, page

PAGE = page("Slowly")
LENGTH = {"Content-Length": str(len(PAGE))}
LATE, CUT = "fail: time-out by the total deadline", "success, truncated: time"
GONE = "fail: connection closed"


@behaviour("stall", BODIES, LATE)
async def stall(_: Request, writer: Writer) -> None:
    """Reads the request and never says a word."""
    await writer.stall()


@behaviour("stall-in-headers", BODIES, LATE)
async def stall_in_headers(_: Request, writer: Writer) -> None:
    """Stops after a header."""
    await writer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
    await writer.stall()


@behaviour("stall-after-headers", BODIES, f"{CUT}, length 0; or fail")
async def stall_after_headers(_: Request, writer: Writer) -> None:
    """Stops before the first byte of the body."""
    await writer.head(headers=LENGTH)
    await writer.stall()


@behaviour("stall-in-body", BODIES, CUT)
async def stall_in_body(_: Request, writer: Writer) -> None:
    """Stops in the middle of the body."""
    await writer.head(headers=LENGTH)
    await writer.send(PAGE[: len(PAGE) // 2])
    await writer.stall()


@behaviour("stall-at-end", BODIES, CUT)
async def stall_at_end(_: Request, writer: Writer) -> None:
    """Sends all of a body without length, and does not close."""
    await writer.head(headers={"Connection": "close"})
    await writer.send(PAGE)
    await writer.stall()


@behaviour("late", BODIES, "success, with latency_ms")
async def late(request: Request, writer: Writer) -> None:
    """A good page after `?s=` seconds (1)."""
    await asyncio.sleep(request.number("s", 1))
    await writer.answer(body=PAGE)


async def drip(request: Request, writer: Writer, data: bytes) -> None:
    """One byte each `?s=` seconds (1)."""
    for byte in data:
        await writer.send(bytes([byte]))
        await asyncio.sleep(request.number("s", 1))


@behaviour("drip", BODIES, CUT)
async def drip_body(request: Request, writer: Writer) -> None:
    """The body comes a byte each `?s=` seconds (1): never silent for long, never done."""
    await writer.head(headers=LENGTH)
    await drip(request, writer, PAGE)


@behaviour("drip-headers", BODIES, LATE)
async def drip_headers(request: Request, writer: Writer) -> None:
    """The headers come a byte each `?s=` seconds (1)."""
    await drip(request, writer, head(200, {"Content-Type": HTML} | LENGTH) + PAGE)


@behaviour("drip-chunks", BODIES, CUT)
async def drip_chunks(request: Request, writer: Writer) -> None:
    """Endless chunks of one byte, each `?s=` seconds (1)."""
    await writer.head(headers={"Transfer-Encoding": "chunked"})
    while True:
        await writer.chunk(b"x")
        await asyncio.sleep(request.number("s", 1))


@behaviour("close", BODIES, GONE)
async def close(_: Request, writer: Writer) -> None:
    """Closes before the status line."""


@behaviour("close-in-status", BODIES, GONE)
async def close_in_status(_: Request, writer: Writer) -> None:
    """Closes within the status line."""
    await writer.send(b"HTTP/1.")


@behaviour("close-in-headers", BODIES, GONE)
async def close_in_headers(_: Request, writer: Writer) -> None:
    """Closes within a header."""
    await writer.send(b"HTTP/1.1 200 OK\r\nContent-Le")


@behaviour("reset", BODIES, GONE)
async def reset(_: Request, writer: Writer) -> None:
    """RST before the status line."""
    await writer.reset()


@behaviour("reset-after-headers", BODIES, "success, truncated: disconnect, length 0; or fail")
async def reset_after_headers(_: Request, writer: Writer) -> None:
    """RST after the headers."""
    await writer.head(headers=LENGTH)
    await writer.reset()


@behaviour("reset-in-body", BODIES, "success, truncated: disconnect")
async def reset_in_body(_: Request, writer: Writer) -> None:
    """RST in the middle of the body."""
    await writer.head(headers=LENGTH)
    await writer.send(PAGE[: len(PAGE) // 2])
    await writer.reset()


@behaviour("close-idle", BODIES, "success; a request that meets the closed connection is tried again on a new one")
async def close_idle(_: Request, writer: Writer) -> None:
    """Promises to keep the connection, and closes it after the answer."""
    await writer.answer(body=PAGE, headers={"Connection": "keep-alive", "Keep-Alive": "timeout=60"})
    writer.keep = False
