"""When whose turn is: a state machine without sockets, driven by the clock it is given.

URLs wait in queues (one per host, domain or address). A queue is in one place at a time: in the heap until its delay has
passed, in line with the others that may go on, held at an address that has enough of us, or out, its connections being
busy. Those in line are served in turn, so a large host never starves the rest.

A turn is `take` → `begin` (a request is sent) → `finish`; or `take` → `skip` (no request was needed) or `put_back`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np
from xxhash import xxh3_64_intdigest

Rows = Sequence[int] | np.ndarray
Item = Any  # a row of the fetchlist by its number, or a request that came up on the way
MOST_DOUBLINGS = 16


@dataclass(frozen=True)
class Limits:
    """How much of us everybody has to bear."""

    delay: float = 1.0  # seconds between two requests of a queue
    connections: int = 1  # of a queue
    address_delay: float = 0.0
    address_connections: int = 0  # 0: any number
    longest_wait: float = 300.0  # a queue that has to wait longer is left for another round
    failures: int = 10  # in a row, after which a queue is given up
    given_up: float = 3600.0  # seconds, doubled with each failure more


class Queue:
    """The URLs of one host, domain or address, and its pace."""

    __slots__ = (
        "capped", "closed", "connections", "delay", "exclusive", "failures", "first", "given_up_until", "key", "last",
        "not_before", "requests", "rows", "running", "started", "wait",
    )  # fmt: skip

    def __init__(self, key: str, rows: Rows, delay: float, connections: int) -> None:
        self.key = key
        self.rows = rows  # numbers of rows, in order; what came up on the way is in `first`
        self.first: deque[Item] | None = None
        self.started = 0  # how many of `rows` were taken
        self.delay = delay
        self.connections = connections
        self.running = 0
        self.exclusive = False  # the request under way must end before another begins
        self.last = float("-inf")  # start of the last request; its end, if the queue has one connection
        self.not_before = float("-inf")
        self.failures = 0
        self.requests = 0
        self.capped = 0  # requests it may have in this round; 0: any number
        self.closed = False  # nothing more of it in this round
        self.given_up_until = 0.0  # when it is
        self.wait = False  # it is in line, in the heap or held somewhere

    def __len__(self) -> int:
        return len(self.rows) - self.started + (len(self.first) if self.first else 0)

    @property
    def ready_at(self) -> float:
        """When the next request may be sent."""
        return max(self.last + self.delay, self.not_before)

    def next(self) -> Item:
        """The item whose turn it is."""
        if self.first:
            return self.first.popleft()
        self.started += 1
        return int(self.rows[self.started - 1])

    def rest(self) -> list[Item]:
        """Take out all that is left."""
        left = [*(self.first or ()), *(int(row) for row in self.rows[self.started :])]
        self.first, self.started = None, len(self.rows)
        return left


class Address:
    """What goes to one address, whatever the queue."""

    __slots__ = ("held", "last", "running")

    def __init__(self) -> None:
        self.running = 0
        self.last = float("-inf")
        self.held: deque[Queue] = deque()


class Politeness:
    """All queues of one process."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.queues: dict[str, Queue] = {}
        self.addresses: dict[str, Address] = {}
        self.left = 0  # items that nobody has taken
        self._line: deque[Queue] = deque()
        self._heap: list[tuple[float, int, Queue]] = []
        self._numbers = count()

    def add(self, key: str, rows: Rows, *, delay: float | None = None, connections: int = 0, cap: int = 0) -> Queue:
        """A new queue; `enter` it when its state is known."""
        limits = self.limits
        queue = Queue(key, rows, limits.delay if delay is None else delay, connections or limits.connections)
        queue.capped = cap
        self.queues[key] = queue
        self.left += len(rows)
        return queue

    def enter(self, queue: Queue, now: float) -> None:
        """Let a queue take part, if it has anything to fetch and may."""
        if queue.wait or queue.closed or queue.exclusive or queue.running >= queue.connections or not len(queue):
            return
        queue.wait = True
        ready = queue.ready_at
        if ready <= now:
            self._line.append(queue)
        else:
            heappush(self._heap, (ready, next(self._numbers), queue))

    def push(self, queue: Queue, item: Item, now: float) -> None:
        """Put an item in front of a queue."""
        queue.first = queue.first or deque()
        queue.first.appendleft(item)
        self.left += 1
        self.enter(queue, now)

    def take(self, now: float) -> tuple[Queue, Item] | None:
        """The next queue in line and its next item; it counts as running until `finish`, `skip` or `put_back`."""
        self._due(now)
        while self._line:
            queue = self._line.popleft()
            queue.wait = False
            if queue.closed or not len(queue):
                continue
            if queue.ready_at > now:  # its pace has changed since it got in line
                self.enter(queue, now)
                continue
            queue.running += 1
            self.left -= 1
            return queue, queue.next()
        return None

    def wake(self) -> float | None:
        """When somebody's turn comes; None: not before a request ends."""
        if self._line:
            return float("-inf")
        return self._heap[0][0] if self._heap else None

    def begin(self, queue: Queue, address: str | None, now: float, *, exclusive: bool = False) -> bool:
        """Whether a request may be sent now; if not, `hold` the item until the address has room."""
        if address is not None and self._limited:
            place = self.addresses.get(address) or self.addresses.setdefault(address, Address())
            most = self.limits.address_connections
            if (most and place.running >= most) or place.last + self.limits.address_delay > now:
                return False
            place.running += 1
            place.last = now
        queue.requests += 1
        queue.last = now
        queue.exclusive = exclusive
        self.enter(queue, now)  # with more connections the next one may begin after the delay
        return True

    def hold(self, queue: Queue, item: Item, address: str, now: float) -> None:
        """Give an item back whose address has no room; the queue goes on when it has."""
        self._return(queue, item)
        place = self.addresses[address]
        most = self.limits.address_connections
        if most and place.running >= most:
            queue.wait = True
            place.held.append(queue)
        else:
            queue.not_before = max(queue.not_before, place.last + self.limits.address_delay)
            self.enter(queue, now)

    def put_back(self, queue: Queue, item: Item) -> None:
        """Give an item back; the queue stays out until it is entered again."""
        self._return(queue, item)

    def skip(self, queue: Queue, now: float) -> None:
        """The item needed no request: the next may be taken at once."""
        queue.running -= 1
        if not queue.wait and not queue.closed and len(queue) and queue.ready_at <= now:
            queue.wait = True
            self._line.appendleft(queue)
        else:
            self.enter(queue, now)

    def finish(
        self,
        queue: Queue,
        address: str | None,
        now: float,
        *,
        failed: bool = False,
        wait: float = 0.0,
        stay_out: bool = False,
    ) -> None:
        """A request has ended; `wait`: the server asks to be left alone for so long; `stay_out`: until `resume`."""
        queue.running -= 1
        queue.exclusive = stay_out
        if queue.connections == 1:
            queue.last = now
        if failed:
            queue.failures += 1
            queue.not_before = max(queue.not_before, now + self.backoff(queue))
        elif not wait:
            queue.failures = 0
        if wait:
            queue.not_before = max(queue.not_before, now + wait)
        if address is not None and (place := self.addresses.get(address)) is not None:
            place.running -= 1
            self._let_in(place, now)
        self.enter(queue, now)

    def resume(self, queue: Queue, now: float) -> None:
        """Let a queue that stayed out take part again."""
        queue.exclusive = False
        self.enter(queue, now)

    def backoff(self, queue: Queue) -> float:
        """How long to wait after failures in a row: doubled with each, and spread so that queues do not march in step."""
        if not queue.failures:
            return 0.0
        base: float = max(queue.delay, 0.05) * 2.0 ** min(queue.failures - 1, MOST_DOUBLINGS)
        return min(base * self._spread(queue), self.limits.longest_wait)

    def gives_up(self, queue: Queue, now: float) -> float:
        """For how long a queue is to be left alone now, if it is: it failed too often, or has to wait too long."""
        if queue.failures >= self.limits.failures:
            doublings = min(queue.failures - self.limits.failures, MOST_DOUBLINGS)
            return float(self.limits.given_up * 2.0**doublings * self._spread(queue))
        wait = queue.ready_at - now
        return wait if wait > self.limits.longest_wait else 0.0

    def close(self, queue: Queue) -> list[Item]:
        """End a queue for this round; what it still had."""
        queue.closed = True
        left = queue.rest()
        self.left -= len(left)
        return left

    def active(self) -> int:
        """How many queues have something to fetch or being fetched."""
        return sum(1 for queue in self.queues.values() if queue.running or (not queue.closed and len(queue)))

    def _spread(self, queue: Queue) -> float:
        """From 0.5 to 1.5, the same in every run."""
        return 0.5 + (xxh3_64_intdigest(f"{queue.key} {queue.failures}".encode()) % 10_000) / 10_000

    @property
    def _limited(self) -> bool:
        return bool(self.limits.address_connections or self.limits.address_delay)

    def _due(self, now: float) -> None:
        """Let those whose delay has passed get in line."""
        while self._heap and self._heap[0][0] <= now:
            self._line.append(heappop(self._heap)[2])

    def _return(self, queue: Queue, item: Item) -> None:
        queue.first = queue.first or deque()
        queue.first.appendleft(item)
        queue.running -= 1
        self.left += 1

    def _let_in(self, place: Address, now: float) -> None:
        """Let as many queues held at an address go on as it has room for."""
        room = self.limits.address_connections - place.running
        while place.held and room > 0:
            queue = place.held.popleft()
            queue.wait = False
            if len(queue) and not queue.closed:
                self.enter(queue, now)
                room -= 1
