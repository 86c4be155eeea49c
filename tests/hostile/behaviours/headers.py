"""Header sections that are too large, too many or never over."""

from __future__ import annotations

from itertools import count

from tests.hostile.behaviours.base import BODIES, PIECE, Request, Writer, behaviour, head, page

PAGE = page("Under a heap of headers")
REFUSED = "fail: headers over the cap; memory bounded"


@behaviour("headers-many", BODIES, REFUSED)
async def many(request: Request, writer: Writer) -> None:
    """`?n=` headers (10^5) of their own names."""
    await writer.send(b"HTTP/1.1 200 OK\r\n")
    left, step = request.count("n", 100_000), 1000
    for start in range(0, left, step):
        await writer.send(b"".join(b"X-Header-%d: %d\r\n" % (n, n) for n in range(start, min(start + step, left))))
    await _finish(writer)


@behaviour("headers-same", BODIES, REFUSED)
async def same(request: Request, writer: Writer) -> None:
    """`?n=` headers (10^5) of one name: they would be joined."""
    await writer.send(b"HTTP/1.1 200 OK\r\n")
    for _ in range(request.count("n", 100_000) // 1000):
        await writer.send(b"Set-Cookie: a=b\r\n" * 1000)
    await _finish(writer)


@behaviour("header-large", BODIES, REFUSED)
async def large(request: Request, writer: Writer) -> None:
    """One header of `?mb=` megabytes (10)."""
    await writer.send(b"HTTP/1.1 200 OK\r\nX-Large: ")
    for _ in range((request.count("mb", 10) << 20) // PIECE):
        await writer.send(b"x" * PIECE)
    await writer.send(b"\r\n")
    await _finish(writer)


@behaviour("header-endless", BODIES, REFUSED)
async def endless_header(_: Request, writer: Writer) -> None:
    """One header without end."""
    await writer.send(b"HTTP/1.1 200 OK\r\nX-Endless: ")
    while True:
        await writer.send(b"x" * PIECE)


@behaviour("headers-endless", BODIES, REFUSED)
async def endless_headers(_: Request, writer: Writer) -> None:
    """Headers without end."""
    await writer.send(b"HTTP/1.1 200 OK\r\n")
    for number in count():
        await writer.send(b"".join(b"X-Header-%d-%d: x\r\n" % (number, n) for n in range(500)))


@behaviour("status-line-endless", BODIES, REFUSED)
async def endless_status_line(_: Request, writer: Writer) -> None:
    """A status line whose phrase never ends."""
    await writer.send(b"HTTP/1.1 200 ")
    while True:
        await writer.send(b"OK " * 10_000)


@behaviour("trailers-endless", BODIES, "success, truncated; or fail; memory bounded")
async def endless_trailers(_: Request, writer: Writer) -> None:
    """A chunked body whose trailers never end."""
    await writer.head(headers={"Transfer-Encoding": "chunked"})
    await writer.chunk(PAGE)
    await writer.send(b"0\r\n")
    while True:
        await writer.send(b"X-Trailer: x\r\n" * 1000)


@behaviour("endless-100", BODIES, REFUSED)
async def endless_100(_: Request, writer: Writer) -> None:
    """100 Continue without end."""
    while True:
        await writer.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 500)


@behaviour("endless-103", BODIES, REFUSED)
async def endless_103(_: Request, writer: Writer) -> None:
    """103 Early Hints without end."""
    while True:
        await writer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" * 200)


@behaviour("hints", BODIES, "success with http_code 200")
async def hints(_: Request, writer: Writer) -> None:
    """100 and 103 once each, then a page."""
    await writer.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-Early: yes\r\n\r\n")
    await writer.answer(body=PAGE)


@behaviour("switching", BODIES, "fail; never another protocol")
async def switching(_: Request, writer: Writer) -> None:
    """101 to a protocol nobody asked for."""
    await writer.send(head(101, {"Upgrade": "websocket", "Connection": "Upgrade"}) + b"\x81\x05hello")
    await writer.stall()


async def _finish(writer: Writer) -> None:
    await writer.send(b"Content-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE))
    writer.keep = True
