"""What the servers of the tests share: listening sockets at one port of several addresses, and an event loop in a thread."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from typing import TypeVar

TRIES = 20
PATIENCE_S = 10.0
T = TypeVar("T")


def listen(addresses: Sequence[str], port: int = 0) -> list[socket.socket]:
    """Sockets that listen at the same port of all the addresses; 0 takes one that is free on each."""
    for _ in range(TRIES):
        with ExitStack() as stack:
            try:
                found = [stack.enter_context(_bound(addresses[0], port))]
                taken = found[0].getsockname()[1]
                found += [stack.enter_context(_bound(address, taken)) for address in addresses[1:]]
            except OSError as error:
                if port or error.errno != errno.EADDRINUSE:
                    raise
                continue
            stack.pop_all()
            return found
    raise RuntimeError(f"no port is free on all of {addresses}")


def _bound(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, port), family=family, backlog=1024)
    listener.setblocking(False)
    return listener


@contextmanager
def in_thread(service: AbstractAsyncContextManager[T], name: str) -> Iterator[T]:
    """Run a service in a loop of its own thread for as long as the context lasts."""
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, T]] = Future()
    done: Future[None] = Future()

    async def serve() -> None:
        ended = asyncio.Event()
        async with service as running:
            ready.set_result((asyncio.get_running_loop(), ended, running))
            await ended.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001  it is the test's, in the other thread
            (done if ready.done() else ready).set_exception(error)
        else:
            done.set_result(None)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    loop, ended, running = ready.result(PATIENCE_S)
    try:
        yield running
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(PATIENCE_S)
        done.result(0)
