"""A small proxy for tests: it takes GET in absolute form and CONNECT, whatever the host, and goes to one server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit

from tests.hostile.sockets import in_thread


class Proxy:
    """Its port, and the request lines it got."""

    def __init__(self) -> None:
        self.port = 0
        self.lines: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            line, _, rest = head.partition(b"\r\n")
            method, target, _ = line.decode().split(" ")
            self.lines.append(f"{method} {target}")
            if method == "CONNECT":
                up_reader, up_writer = await asyncio.open_connection("127.0.0.1", int(target.rpartition(":")[2]))
                writer.write(b"HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n")
            else:
                parts = urlsplit(target)
                up_reader, up_writer = await asyncio.open_connection("127.0.0.1", parts.port or 80)
                path = target.removeprefix(f"{parts.scheme}://{parts.netloc}")
                up_writer.write(f"GET {path} HTTP/1.1\r\nConnection: close\r\n".encode() + rest)
            await asyncio.wait(
                [asyncio.create_task(pump(reader, up_writer)), asyncio.create_task(pump(up_reader, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
            up_writer.transport.abort()
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()
        self.tasks.discard(task)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes one way."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


@contextmanager
def proxy() -> Iterator[Proxy]:
    """Serve on loopback."""
    with in_thread(_running(), "proxy") as running:
        yield running


@asynccontextmanager
async def _running() -> AsyncIterator[Proxy]:
    found = Proxy()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for task in list(found.tasks):
            task.cancel()
        await asyncio.gather(*found.tasks, return_exceptions=True)
