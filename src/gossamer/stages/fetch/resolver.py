"""Host names → addresses, asynchronously, by c-ares, with a cache of our own.

Answers are kept for their time to live, within bounds; failures too, so that a dead name costs one question and not one
per URL. Only so many questions are under way at a time, the others wait in order.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pycares

from gossamer.errors import SettingsError
from gossamer.stages.fetch.poller import READ, WRITE, Poller

SHORTEST, LONGEST = 60.0, 86_400.0  # seconds an answer is kept, whatever it says
LARGEST_TTL = 2**31 - 1  # one that is larger counts as 0 (RFC 2181)
NEGATIVE = 300.0
UNDER_WAY = 256
CACHED = 200_000
TIMEOUT, TRIES = 3.0, 2  # seconds for the first try of a server, doubled with each
LOOK = 0.1  # seconds between two looks at questions that nobody answered: each goes through all of them
NO_SUCH_NAME, NO_DATA = 4, 1  # c-ares


class Answer(NamedTuple):
    """What is known of a name."""

    addresses: tuple[str, ...]
    error: str | None
    until: float


Waiter = Callable[[Answer], None]


class Resolver:
    """Asks and remembers."""

    def __init__(self, poller: Poller, clock: Callable[[], float], servers: Sequence[str] = ()) -> None:
        self._poller, self._clock = poller, clock
        self._cache: dict[str, Answer] = {}
        self._waiting: dict[str, list[Waiter]] = {}
        self._line: deque[str] = deque()
        self._under_way = 0
        self._closed = False
        self._look_at = 0.0  # when to look for questions that nobody answered
        self.questions = 0
        try:
            self._channel: Any = pycares.Channel(
                servers=list(servers) or None,
                timeout=TIMEOUT,
                tries=TRIES,
                lookups=b"b" if servers else b"fb",
                flags=pycares.ARES_FLAG_NOSEARCH,
                sock_state_cb=self._socket,
            )
        except (pycares.AresError, ValueError) as error:
            raise SettingsError(
                f"fetch.dns_servers: {error}; name addresses, such as 192.0.2.1 or 192.0.2.1:5353"
            ) from error

    def known(self, host: str) -> Answer | None:
        """What the cache says."""
        answer = self._cache.get(host)
        if answer is None or answer.until <= self._clock():
            return None
        return answer

    def ask(self, host: str, waiter: Waiter) -> None:
        """Find out; `waiter` is called with the answer, later."""
        waiting = self._waiting.get(host)
        if waiting is not None:
            waiting.append(waiter)
            return
        self._waiting[host] = [waiter]
        self._line.append(host)

    def pump(self) -> None:
        """Send questions that wait, and notice those that nobody answered."""
        now = time.monotonic()
        if self._under_way and now >= self._look_at:
            self._look_at = now + LOOK
            self._channel.process_fd(pycares.ARES_SOCKET_BAD, pycares.ARES_SOCKET_BAD)
        while self._line and self._under_way < UNDER_WAY:
            self._question(self._line.popleft(), pycares.QUERY_TYPE_A)

    def wake(self) -> float | None:
        """Seconds until something has to be done; None: nothing is."""
        if self._line and self._under_way < UNDER_WAY:
            return 0.0
        return max(0.0, self._look_at - time.monotonic()) if self._under_way else None

    def close(self) -> None:
        """End; c-ares lets go of its sockets later, in a thread of its own."""
        self._waiting.clear()
        self._closed = True
        self._channel.close()

    def _question(self, host: str, kind: int) -> None:
        self._under_way += 1
        self.questions += 1

        ended = False

        def answered(result: Any, code: int | None) -> None:
            nonlocal ended
            ended = True
            self._under_way -= 1
            self._answered(host, kind, result, code)

        try:
            self._channel.query(host, kind, callback=answered)
        except (pycares.AresError, ValueError, UnicodeError) as error:  # no name that DNS could have
            if not ended:  # c-ares has told us already of some of them
                self._under_way -= 1
                self._settle(host, Answer((), f"bad name ({error})", self._clock() + NEGATIVE))

    def _answered(self, host: str, kind: int, result: Any, code: int | None) -> None:
        found = [] if code or result is None else [r for r in result.answer if r.type == kind]
        if not found and kind == pycares.QUERY_TYPE_A and code in (None, 0, NO_DATA) and host in self._waiting:
            self._question(host, pycares.QUERY_TYPE_AAAA)
            return
        now = self._clock()
        if found:
            ttl = min(max(min(r.ttl if r.ttl <= LARGEST_TTL else 0 for r in found), SHORTEST), LONGEST)
            addresses = tuple(_text(r.data.addr) for r in found)
            self._settle(host, Answer(addresses, None, now + ttl))
            return
        if code == NO_SUCH_NAME:
            reason = "no such name"
        elif code in (None, 0, NO_DATA):
            reason = "no address"
        else:
            reason = _text(pycares.errno.strerror(code)).lower()
        self._settle(host, Answer((), reason, now + NEGATIVE))

    def _settle(self, host: str, answer: Answer) -> None:
        if len(self._cache) >= CACHED:
            for old in list(self._cache)[: CACHED // 10]:
                del self._cache[old]
        self._cache[host] = answer
        for waiter in self._waiting.pop(host, ()):
            waiter(answer)

    def _socket(self, fd: int, readable: bool, writable: bool) -> None:
        if not self._closed:
            self._poller.watch(fd, READ * readable | WRITE * writable, self._event)

    def _event(self, fd: int, events: int) -> None:
        read = fd if events & ~WRITE else pycares.ARES_SOCKET_BAD
        write = fd if events & WRITE else pycares.ARES_SOCKET_BAD
        self._channel.process_fd(read, write)


def _text(value: str | bytes) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
