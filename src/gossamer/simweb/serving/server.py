"""The simulated web on loopback: one port for all hosts, told apart by the Host header.

It is a web server, and a proxy too: a client whose proxy it is needs no DNS (absolute request targets for http, CONNECT for https). One process
and one thread; the pages cost more than the protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gossamer.errors import UsageError
from gossamer.simweb.pages.linked import PLAIN
from gossamer.simweb.pages.respond import Response, respond
from gossamer.simweb.pages.robots import allowed, crawl_delay
from gossamer.simweb.serving.accesslog import CLOSE, AccessLog, Entry
from gossamer.simweb.web import Web

if TYPE_CHECKING:
    from gossamer.simweb.serving.tls import Authority

LARGEST_HEAD = 64 * 1024
TURN = 8  # requests of one client answered before others have theirs
ABSOLUTE = re.compile(r"(https?)://([^/?]*)(.*)", re.IGNORECASE)
STALL = 300  # seconds after which a host that never answers hangs up
WINDOW = 10  # seconds over which requests to a host that limits them are counted
PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Time:
    """The web's clock: stands at a moment, or runs from there faster than ours."""

    def __init__(self, moment: int, speed: float = 0) -> None:
        self.moment, self.speed, self.began = moment, speed, time.monotonic()

    def now(self) -> int:
        """The simulated time."""
        return self.moment + int((time.monotonic() - self.began) * self.speed)


class Server:
    """What all connections share."""

    def __init__(self, web: Web, clock: Time, log: AccessLog | None = None, authority: Authority | None = None) -> None:
        self.web, self.clock, self.log, self.authority = web, clock, log, authority
        self.connections = 0
        self.served = 0
        self.recent: dict[str, tuple[int, int]] = {}  # host → window, requests in it

    def answer(self, scheme: str, host: str, target: str, headers: dict[str, str]) -> Response:
        """The response to a request, unless the host has had too many."""
        self.served += 1
        site = self.web.find(host)
        if site is not None and site.manner.limit and self._too_many(host, site.manner.limit):
            wait = [("Retry-After", str(site.manner.retry_after))] if site.manner.retry_after else []
            return Response(429, [*wait, ("Content-Type", "text/plain")], b"too many requests\n", page="limit")
        return respond(self.web, scheme, host, target, self.clock.now(), headers)

    def _too_many(self, host: str, limit: int) -> bool:
        window = int(time.monotonic()) // WINDOW
        last, count = self.recent.get(host, (window, 0))
        count = count + 1 if last == window else 1
        if len(self.recent) > 10_000:
            self.recent.clear()
        self.recent[host] = window, count
        return count > limit

    async def start(self, addresses: list[str], port: int, *, tls: bool = False) -> list[asyncio.Server]:
        """Listen; port 0 takes a free one."""
        loop = asyncio.get_running_loop()
        if tls and self.authority is None:
            raise UsageError("https needs a certificate authority")
        context = self.authority.listening() if tls and self.authority else None
        servers = []
        for address in addresses:
            server = await loop.create_server(
                lambda: Connection(self, "https" if tls else "http"), address, port, ssl=context, backlog=1024
            )
            servers.append(server)
            port = server.sockets[0].getsockname()[1]
        return servers


class Connection(asyncio.Protocol):
    """One client's connection: requests in turn, each answered before the next is read."""

    def __init__(self, server: Server, scheme: str) -> None:
        self.server, self.scheme = server, scheme
        server.connections += 1
        self.number = server.connections
        self.buffer = b""
        self.busy = False
        self.last: Entry | None = None
        self.transport: Any = None
        self.full = False
        self.waiting: asyncio.TimerHandle | None = None
        self.turn: asyncio.Handle | None = None
        self.client = self.address = "-"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is here."""
        self.transport = transport
        self.client, self.address = (
            str((transport.get_extra_info(name) or ("-",))[0]) for name in ("peername", "sockname")
        )

    def connection_lost(self, error: Exception | None) -> None:
        """The client has left."""
        if self.waiting is not None:
            self.waiting.cancel()
        if self.server.log is not None and self.last is not None:
            now = time.time()
            self.server.log.add(
                self.last._replace(start=now, end=now, method=CLOSE, target="-", status=0, bytes=0, page="-", wait=0)
            )

    def data_received(self, data: bytes) -> None:
        """Answer what is complete: a few requests, then it is the others' turn; a client that does not read is not read from either."""
        self.buffer += data
        for _ in range(TURN):
            if self.busy or not self.buffer or self.transport.is_closing():
                break
            head, mark, rest = self.buffer.partition(b"\r\n\r\n")
            if not mark:
                if len(self.buffer) > LARGEST_HEAD:
                    self._refuse(431)
                return
            self.buffer = rest
            self._request(head)
        else:
            if self.buffer:
                self.busy = True
                self.turn = asyncio.get_running_loop().call_soon(self._go_on)
        if self.busy and len(self.buffer) > LARGEST_HEAD:
            self.transport.pause_reading()

    def pause_writing(self) -> None:
        """The client is slow to read: no more answers for now."""
        self.full = self.busy = True

    def resume_writing(self) -> None:
        """The client has caught up."""
        self.full = False
        self._go_on()

    def _go_on(self) -> None:
        """Take the next requests, unless an answer is still to be sent."""
        if self.full or self.waiting is not None:
            return
        self.busy = False
        if not self.transport.is_closing():
            self.transport.resume_reading()
            self.data_received(b"")

    def _request(self, head: bytes) -> None:
        line, *fields = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        method, _, rest = line.partition(" ")
        target, _, version = rest.rpartition(" ")
        if not version.startswith("HTTP/1.") or not target:
            return self._refuse(400)
        if method == "CONNECT":
            return self._connect(target)
        if method not in ("GET", "HEAD"):
            return self._refuse(405)
        scheme, host = self.scheme, headers.get("host", "")
        if absolute := ABSOLUTE.fullmatch(target):
            scheme, host, target = absolute[1].lower(), absolute[2], absolute[3]
            target = target if target.startswith("/") else f"/{target}"
        if not (target.isascii() and target.isprintable()):
            target = quote(target, safe=PLAIN, encoding="latin-1")  # it may come back in a header
        host = host.rpartition("@")[2].partition(":")[0].lower().rstrip(".")
        start = time.time()
        response = self.server.answer(scheme, host, target, headers)
        wishes = headers.get("connection", "").lower()
        keep = "close" not in wishes and (version == "HTTP/1.1" or "keep-alive" in wishes)
        keep = (
            keep and headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
        )  # bodies are not read
        entry = self._entry(start, scheme, host, method, target, response, headers.get("user-agent", "-"))
        self._deliver(response, entry, method == "HEAD", keep)
        return None

    def _entry(
        self, start: float, scheme: str, host: str, method: str, target: str, response: Response, agent: str
    ) -> Entry | None:
        if self.server.log is None:
            return None
        site = self.server.web.find(host)
        wait = next((int(value) for name, value in response.headers if name == "Retry-After"), 0)
        return Entry(
            start, start, self.number, self.client, self.address, scheme, host, method, target, response.status, len(response.body),
            response.page, site is None or allowed(site, target), crawl_delay(site) if site else 0, wait, agent,
        )  # fmt: skip

    def _deliver(self, response: Response, entry: Entry | None, bare: bool, keep: bool) -> None:
        """Send the response in the host's manner: at once, late, drop by drop or not at all."""
        if response.silent == "close":
            self._note(entry and entry._replace(status=0, bytes=0))
            self.transport.abort()
        elif response.silent == "stall":
            self._note(entry and entry._replace(status=0, bytes=0))
            self._later(STALL, self.transport.abort)
        elif response.latency_ms:
            self._later(response.latency_ms / 1000, lambda: self._send(response, entry, bare, keep))
        else:
            self._send(response, entry, bare, keep)

    def _later(self, seconds: float, then: Any) -> None:
        self.busy = True
        self.waiting = asyncio.get_running_loop().call_later(seconds, then)

    def _send(self, response: Response, entry: Entry | None, bare: bool, keep: bool) -> None:
        lines = [f"HTTP/1.1 {response.status} {PHRASES.get(response.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in response.headers]
        if response.status != 304:
            lines.append(f"Content-Length: {len(response.body)}")
        lines.append(f"Connection: {'keep-alive' if keep else 'close'}\r\n\r\n")
        head = "\r\n".join(lines).encode("latin-1")
        body = b"" if bare or response.status == 304 else response.body
        if response.silent == "drip":
            self.transport.write(head)
            return self._drip(body, entry)
        self.transport.write(head + body)
        self._note(entry and entry._replace(end=time.time()))
        if not keep:
            self.transport.close()
        elif self.waiting is not None:
            self.waiting = None
            self._go_on()
        return None

    def _drip(self, rest: bytes, entry: Entry | None) -> None:
        """One byte a second."""
        self.transport.write(rest[:1])
        if len(rest) <= 1:
            self._note(entry and entry._replace(end=time.time()))
            self.transport.close()
        else:
            self._later(1, lambda: self._drip(rest[1:], entry))

    def _connect(self, target: str) -> None:
        """Become the host that a proxy's client wants to speak TLS with."""
        if self.server.authority is None:
            return self._refuse(502)
        self.busy = True
        self.transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self.scheme = "https"
        self.shaking = asyncio.get_running_loop().create_task(self._shake())
        return None

    async def _shake(self) -> None:
        assert self.server.authority is not None
        with contextlib.suppress(OSError, asyncio.CancelledError):
            context = self.server.authority.listening()
            transport = await asyncio.get_running_loop().start_tls(self.transport, self, context, server_side=True)
            if transport is not None:  # the client is still there
                self.transport, self.busy = transport, False
                self.data_received(b"")

    def _refuse(self, status: int) -> None:
        self.transport.write(
            f"HTTP/1.1 {status} {PHRASES[status]}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        self.transport.close()

    def _note(self, entry: Entry | None) -> None:
        if self.server.log is not None and entry is not None:
            self.last = entry
            self.server.log.add(entry)
