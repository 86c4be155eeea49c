"""Running the simulated web: ports, log, DNS and the signal that ends it."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from gossamer.errors import StorageError, UsageError
from gossamer.simweb.serving.accesslog import AccessLog
from gossamer.simweb.serving.server import Server, Time
from gossamer.simweb.web import Web

MOST_ADDRESSES = 250


@dataclass(frozen=True)
class Serving:
    """How to serve a web; ports of 0 take a free one, those of None are not served."""

    at: int
    speed: float = 0.0
    port: int = 8080
    tls_port: int | None = None
    dns_port: int | None = None
    addresses: int = 1
    log: Path | None = None
    ca: Path = Path("simweb-ca")
    tell: Callable[[dict[str, object]], None] = field(default=lambda _: None)


def serve(web: Web, how: Serving) -> None:
    """Serve until interrupted or told to end."""
    if not 1 <= how.addresses <= MOST_ADDRESSES:
        raise UsageError(f"a web can have 1 to {MOST_ADDRESSES} addresses, not {how.addresses}")
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # pages leave no cycles behind; looking for some took a tenth of the time
    with ExitStack() as stack:
        log = AccessLog(stack.enter_context(_open(how.log))) if how.log else None
        if log is not None:
            stack.callback(log.flush)
        asyncio.run(_serve(web, how, log))


async def _serve(web: Web, how: Serving, log: AccessLog | None) -> None:
    authority = None
    if how.tls_port is not None:
        from gossamer.simweb.serving.tls import Authority, states

        authority = Authority(how.ca, states(web))
    server = Server(web, Time(how.at, how.speed), log, authority)
    addresses = [f"127.0.0.{n}" for n in range(1, how.addresses + 1)]
    names: asyncio.DatagramTransport | None = None
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    try:
        started = await server.start(addresses, how.port)
        said: dict[str, object] = {"port": started[0].sockets[0].getsockname()[1]}
        if how.tls_port is not None:
            secure = await server.start(addresses, how.tls_port, tls=True)
            started += secure
            said["tls_port"] = secure[0].sockets[0].getsockname()[1]
        if how.dns_port is not None:
            from gossamer.simweb.serving.dns import addresses_of, start

            names, said["dns_port"] = await start(addresses_of(web, addresses), addresses[0], how.dns_port)
    except OSError as error:
        raise UsageError(
            f"cannot listen: {error.strerror or error}; choose other ports with --port, --tls-port or --dns-port"
        ) from error
    how.tell({**said, "addresses": addresses})
    await _until(ended, log)
    for each in started:
        each.close()
    if names is not None:
        names.close()


async def _until(ended: asyncio.Event, log: AccessLog | None) -> None:
    """Wait for the end; the log is written every second, so that it can be followed."""
    while not ended.is_set():
        try:
            await asyncio.wait_for(ended.wait(), 1)
        except TimeoutError:
            if log is not None:
                log.flush()


def _open(path: Path) -> IO[str]:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write the access log {path}: {error.strerror}; name another with --log") from error
