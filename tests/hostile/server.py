"""A web server that misbehaves on request: the first segment of a path → the behaviour of that name, whatever the host.

`/robots.txt` goes by the host instead: the first label of `robots-500.test` names what happens, any other host has none (404) unless the test
gives it one. The server speaks HTTP/1.1 on raw connections and has them on record from the moment they are accepted. It says the same
whatever the method. A plain port asked for https never answers the greeting; for one that is silent from the start take a decoy.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gossamer.simweb.serving.tls import Authority, State
from tests.hostile.behaviours import bodies, headers, malformed, plain, redirects, retry, robots, sitemaps, timing
from tests.hostile.behaviours.base import BEHAVIOURS, ROBOTS_OF, Behaviour, Request, Seen, Writer, page
from tests.hostile.sockets import in_thread, listen

__all__ = ["BEHAVIOURS", "ROBOTS_OF", "Behaviour", "Connection", "HostileServer", "Seen", "hostile_server"]

MODULES = (bodies, headers, malformed, plain, redirects, retry, robots, sitemaps, timing)  # each registers what it has
LARGEST_HEAD = 1 << 20
BAD_TLS: dict[str, State] = {"tls-expired": "expired", "tls-stranger": "stranger"}


@dataclass
class Connection:
    """A connection the server accepted."""

    number: int
    tls: bool
    address: str  # ours, that was connected to
    opened: float = field(default_factory=time.monotonic)
    closed: float | None = None


class HostileServer:
    """What a test sees of the server; the lists are copies, to be had from any thread."""

    def __init__(self, ca: Path, port: int, tls_port: int, robots: Mapping[str, bytes]) -> None:
        self.ca, self.port, self.tls_port, self.robots = ca, port, tls_port, robots
        self._requests: list[Seen] = []
        self._connections: list[Connection] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    @property
    def requests(self) -> list[Seen]:
        """Every request so far, in the order of their arrival."""
        return list(self._requests)

    @property
    def connections(self) -> list[Connection]:
        """Every connection so far."""
        return list(self._connections)

    def url(self, host: str, path: str, *, tls: bool = False) -> str:
        """The URL of a path of a host, at our port."""
        return f"https://{host}:{self.tls_port}{path}" if tls else f"http://{host}:{self.port}{path}"

    def targets(self, host: str) -> list[str]:
        """What was asked of a host, whatever the port in its header."""
        return [seen.target for seen in self.requests if seen.host.partition(":")[0] == host]

    def accept(self, listener: socket.socket, context: ssl.SSLContext | None) -> None:
        """Take the connection that waits; a call and no task, as one that is cancelled may drop what it has just accepted."""
        try:
            accepted, _ = listener.accept()
        except BlockingIOError:
            return
        accepted.setblocking(False)
        known = Connection(len(self._connections), context is not None, accepted.getsockname()[0])
        self._connections.append(known)
        task = asyncio.get_running_loop().create_task(self._serve(known, accepted, context))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._errors.append(error)

    async def hang_up(self) -> None:
        """End all connections, whatever they are at; a behaviour that failed is the test's to know."""
        await asyncio.sleep(0)  # a task that never began would not close what it was given
        while tasks := list(self._tasks):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)  # for the callbacks
        await asyncio.sleep(0)  # for transports that were aborted
        if self._errors:
            raise RuntimeError("a behaviour failed") from self._errors[0]

    async def _serve(self, known: Connection, accepted: socket.socket, context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(LARGEST_HEAD, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport: asyncio.Transport | None = None
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted, ssl=context)
            stream = asyncio.StreamWriter(transport, protocol, reader, loop)
            while await self._exchange(known, reader, stream):
                pass
            stream.close()
            await stream.wait_closed()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client has left, or speaks no HTTP
        finally:
            known.closed = time.monotonic()
            if transport is not None:
                transport.abort()

    async def _exchange(self, known: Connection, reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> bool:
        """Answer one request, and say whether another may follow."""
        line, *fields = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1").split("\r\n")
        pairs = [(name.strip().lower(), value.strip()) for name, _, value in (each.partition(":") for each in fields)]
        method, _, rest = line.partition(" ")
        host = next((value for name, value in pairs if name == "host"), "")
        seen = Seen(time.monotonic(), known.number, host, method, rest.rpartition(" ")[0], pairs)
        self._requests.append(seen)
        request = Request(seen, known.tls, self.tls_port if known.tls else self.port)
        writer = Writer(reader, stream)
        await self._answer(request, writer)
        return writer.keep and (request.header("connection") or "").lower() != "close"

    async def _answer(self, request: Request, writer: Writer) -> None:
        if request.path == "/robots.txt" and request.host in self.robots:
            return await robots.give(writer, self.robots[request.host])
        if request.path == "/robots.txt":
            found = ROBOTS_OF.get(request.host.partition(".")[0])
        else:
            found = BEHAVIOURS.get(request.segments[0] or "page")
        if found is None:
            return await writer.answer(404, page("Not found", 500))
        return await found.answer(request, writer)


def state_of(host: str) -> State:
    """How a host's certificate is: bad for `tls-expired.test` and `tls-stranger.test`."""
    return BAD_TLS.get(host.partition(".")[0], "good")


@contextmanager
def hostile_server(
    addresses: Sequence[str] = ("127.0.0.1",), robots: Mapping[str, bytes] | None = None
) -> Iterator[HostileServer]:
    """Serve on loopback addresses, one port of them for http and one for https; `robots` has the files of further hosts."""
    with (
        tempfile.TemporaryDirectory(prefix="hostile-") as folder,
        in_thread(_running(addresses, robots or {}, Path(folder)), "hostile server") as server,
    ):
        yield server


@asynccontextmanager
async def _running(addresses: Sequence[str], robots: Mapping[str, bytes], folder: Path) -> AsyncIterator[HostileServer]:
    authority = Authority(folder, state_of)
    with contextlib.ExitStack() as stack:
        plain_sockets, tls_sockets = ([stack.enter_context(each) for each in listen(addresses)] for _ in range(2))
        ports = plain_sockets[0].getsockname()[1], tls_sockets[0].getsockname()[1]
        server = HostileServer(authority.path, *ports, robots)
        accepting = [(each, None) for each in plain_sockets] + [(each, authority.listening()) for each in tls_sockets]
        loop = asyncio.get_running_loop()
        for listener, context in accepting:
            loop.add_reader(listener, server.accept, listener, context)
        try:
            yield server
        finally:
            for listener, _ in accepting:
                loop.remove_reader(listener)
            await server.hang_up()
