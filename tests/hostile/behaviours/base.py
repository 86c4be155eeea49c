"""What every behaviour is made of: the request it answers, the wire it misbehaves on, and the registry it is found in.

A behaviour that returns leaves its connection to be closed, unless it answered with `writer.answer` and the client may ask again.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qs

ADDRESSES, REDIRECTS, ROBOTS = "Addresses", "Redirects", "robots.txt"
SITEMAPS, BODIES, MALFORMED = "Sitemaps", "Bodies", "Malformed HTTP"
POLITENESS = "-"  # ordinary manners of the web, of which HOSTILE.md has no line
PIECE = 64 * 1024
HTML = "text/html; charset=utf-8"
PAGE_SIZE = 19_000
NO_LINGER = struct.pack("ii", 1, 0)
PHRASES = {status.value: status.phrase for status in HTTPStatus}
Headers = dict[str, str]


class Seen(NamedTuple):
    """A request as the server's record keeps it."""

    time: float  # monotonic
    connection: int
    host: str  # as the Host header gives it
    method: str
    target: str
    headers: list[tuple[str, str]]  # names in lower case


@dataclass(frozen=True)
class Request:
    """A request as a behaviour sees it."""

    seen: Seen
    tls: bool
    port: int

    @property
    def host(self) -> str:
        """The host asked for, without its port."""
        name, _, port = self.seen.host.rpartition(":")
        return (name if port.isdecimal() else self.seen.host).lower().rstrip(".")

    @property
    def path(self) -> str:
        return self.seen.target.partition("?")[0]

    @property
    def segments(self) -> list[str]:
        return self.path.strip("/").split("/")

    def query(self, name: str, default: str) -> str:
        """A parameter of the query."""
        return parse_qs(self.seen.target.partition("?")[2], keep_blank_values=True).get(name, [default])[0]

    def number(self, name: str, default: float) -> float:
        return float(self.query(name, str(default)))

    def count(self, name: str, default: int) -> int:
        return int(self.query(name, str(default)))

    def header(self, name: str) -> str | None:
        """The first header of a name, given in lower case."""
        return next((value for key, value in self.seen.headers if key == name), None)


class Writer:
    """The server's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.stream = reader, writer
        self.keep = False

    async def send(self, data: bytes) -> None:
        """Send, and let others have their turn: bodies without end would keep the loop for themselves."""
        self.stream.write(data)
        await self.stream.drain()
        await asyncio.sleep(0)

    async def head(self, status: int = 200, headers: Headers | None = None, kind: str = HTML) -> None:
        """A status line and headers, of a response that ends with its connection unless they say otherwise."""
        await self.send(head(status, {"Content-Type": kind} | (headers or {})))

    async def answer(self, status: int = 200, body: bytes = b"", headers: Headers | None = None) -> None:
        """A response without fault, after which the connection stays open."""
        length = {"Content-Length": str(len(body))}
        await self.send(head(status, {"Content-Type": HTML} | length | (headers or {})) + body)
        self.keep = True

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def stall(self) -> None:
        """Say nothing more until the client has left."""
        while await self.reader.read(PIECE):
            pass

    async def reset(self) -> None:
        """Break the connection off with RST, once what was sent has had time to arrive."""
        await asyncio.sleep(0.05)
        peer: socket.socket = self.stream.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.stream.transport.abort()


Answer = Callable[[Request, Writer], Awaitable[None]]


@dataclass(frozen=True)
class Behaviour:
    """One way to misbehave."""

    name: str
    does: str
    line: str  # of HOSTILE.md
    expect: str  # our view of what a correct fetcher records
    answer: Answer


BEHAVIOURS: Final[dict[str, Behaviour]] = {}  # by the first segment of the path
ROBOTS_OF: Final[dict[str, Behaviour]] = {}  # by the first label of the host


def behaviour(
    name: str, line: str, expect: str, registry: dict[str, Behaviour] = BEHAVIOURS
) -> Callable[[Answer], Answer]:
    """Register a function, whose docstring says what it does."""

    def register(answer: Answer) -> Answer:
        add(Behaviour(name, inspect.getdoc(answer) or "", line, expect, answer), registry)
        return answer

    return register


def fixed(name: str, line: str, expect: str, does: str, response: bytes) -> None:
    """Register a response that is always the same bytes, after which the connection is closed."""

    async def answer(_: Request, writer: Writer) -> None:
        await writer.send(response)

    add(Behaviour(name, does, line, expect, answer), BEHAVIOURS)


def add(what: Behaviour, registry: dict[str, Behaviour]) -> None:
    """Register a behaviour under a name that is still free."""
    if what.name in registry:
        raise ValueError(f"there are two behaviours {what.name}")
    if not what.does:
        raise ValueError(f"{what.name} does not say what it does")
    registry[what.name] = what


def head(status: int, headers: Headers) -> bytes:
    """A status line and headers; what is not Latin-1 goes out as UTF-8."""
    lines = [
        f"HTTP/1.1 {status} {PHRASES.get(status, 'Odd')}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("utf-8", "surrogateescape")


def page(title: str, size: int = PAGE_SIZE, links: tuple[str, ...] = ()) -> bytes:
    """An ordinary HTML page of a size."""
    start = f"<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1>\n"
    start += "".join(f'<p><a href="{link}">{link}</a></p>\n' for link in links)
    end = "</body></html>\n"
    line = "<p>Nothing on this page is out of the ordinary, as far as anybody can see.</p>\n"
    room = max(size - len(start) - len(end), 0)
    return (start + (line * (room // len(line) + 1))[:room] + end).encode()
