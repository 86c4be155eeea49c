"""What a protocol plugin is: it takes requests and gives responses, without waiting.

http and https are built in, as `file` is, which only runs where `fetch.protocols` names it. A plugin whose library waits
wraps its function in `Threads`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from gossamer.stages.fetch.poller import READ, Poller

LENGTH, TIME, DISCONNECT, UNSPECIFIED = (
    "length",
    "time",
    "disconnect",
    "unspecified",
)  # why a body was cut, as WARC says


class Request:
    """One request; `owner` is whatever the caller wants back with the response."""

    __slots__ = ("address", "exempt", "headers", "max_bytes", "owner", "proxy", "queue", "types", "url", "verify")

    def __init__(self, url: str, owner: Any, max_bytes: int) -> None:
        self.url = url
        self.owner = owner
        self.max_bytes = max_bytes
        self.address: str | None = None  # where to connect to, checked; may have a port
        self.exempt = False  # the operator mapped this host to its address: the guard lets it pass
        self.proxy = ""
        self.headers: Sequence[str] = ()  # besides those that all requests have
        self.types: tuple[str, ...] = ()  # media types that are wanted; none: all
        self.verify = True
        self.queue = ""


class Response:
    """What came of a request: an answer, perhaps cut, or an error."""

    __slots__ = (
        "body", "code", "detail", "error", "head", "ip", "latency", "protocol", "request_head", "tls", "truncated",
    )  # fmt: skip

    def __init__(self) -> None:
        self.code = 0  # 0: no answer
        self.head = b""  # status line and headers as received, with the blank line
        self.body = b""
        self.request_head = b""
        self.protocol = ""
        self.ip: str | None = None
        self.latency = 0.0  # seconds to the first byte
        self.error = ""  # class: dns, connect, tls, timeout, …
        self.detail = ""
        self.truncated: str | None = None
        self.tls: str | None = None  # result of checking the certificate


class Transport(Protocol):
    """A protocol at work in one process."""

    def start(self, request: Request) -> None:
        """Begin a request; must not wait."""

    def finished(self) -> list[tuple[Request, Response]]:
        """Responses since the last call."""

    def wake(self) -> float | None:
        """Seconds until `finished` should be called, if nothing is polled before."""

    def close(self) -> None:
        """Drop what is under way."""


@dataclass(frozen=True)
class Context:
    """What a protocol may use."""

    poller: Poller
    settings: Any  # FetchSettings
    agent: Any  # AgentSettings
    guard: Any  # addresses.Guard


@dataclass(frozen=True)
class FetchProtocol:
    """A protocol: the schemes it speaks and how to make it ready."""

    name: str
    schemes: tuple[str, ...]
    open: Callable[[Context], Transport]


@dataclass
class Threads:
    """A transport around a function that waits: requests run in threads."""

    context: Context
    function: Callable[[Request], Response]
    threads: int = 8
    _done: deque[tuple[Request, Response]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="gossamer-protocol")
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.context.poller.watch(self._wake, READ, self._woken)

    def start(self, request: Request) -> None:
        self._pool.submit(self._run, request)

    def finished(self) -> list[tuple[Request, Response]]:
        return [self._done.popleft() for _ in range(len(self._done))]

    def wake(self) -> float | None:
        return 0.0 if self._done else None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.context.poller.watch(self._wake, 0, self._woken)
        os.close(self._wake)

    def _run(self, request: Request) -> None:
        try:
            response = self.function(request)
        except Exception as error:  # noqa: BLE001  a plugin's failure is that of one URL
            response = Response()
            response.error, response.detail = "protocol", f"{type(error).__name__}: {error}"
        self._done.append((request, response))
        os.eventfd_write(self._wake, 1)

    def _woken(self, fd: int, _events: int) -> None:
        os.eventfd_read(fd)
