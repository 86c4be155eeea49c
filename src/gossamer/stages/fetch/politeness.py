"""When whose turn is: a state machine without sockets, driven by the clock it is given.

URLs wait in queues (one per host, domain or address). A queue is in one place at a time: in the heap until its delay has
passed, in line with the others that may go on, held at an address that has enough of us, or out, its connections being
busy. Those in line are served in turn, so a large host never starves the rest.

A turn is `take` → `begin` (a request is sent) → `finish`; or `take` → `skip` (no request was needed) or `put_back`. Between
`take` and `begin` names are looked up, and much may happen: so `begin` looks at every limit once more.

An address invites those it has held in the order they came, as many as it has room for; the room of one that is invited is
kept until it has begun, or has not come.
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
SKIPS = 64  # items of a queue in a row that needed no request, after which others get their turn
ROUNDING = 0.001  # seconds: times are sums of fractions


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
        "capped", "closed", "connections", "delay", "exclusive", "failures", "first", "given_up_until", "invited", "key",
        "last", "not_before", "out", "requests", "rows", "running", "started", "urgent", "wait",
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
        self.out = False  # it stays out until `resume`, but for what is urgent
        self.urgent = 0  # so many items in front are
        self.invited: Address | None = None  # that has room for it
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
            self.urgent = max(self.urgent - 1, 0)
            return self.first.popleft()
        self.started += 1
        return int(self.rows[self.started - 1])

    def rest(self) -> list[Item]:
        """Take out all that is left."""
        left = [*(self.first or ()), *(int(row) for row in self.rows[self.started :])]
        self.first, self.started, self.urgent = None, len(self.rows), 0
        return left


class Address:
    """What goes to one address, whatever the queue."""

    __slots__ = ("alarm", "held", "invited", "last", "running")

    def __init__(self) -> None:
        self.running = 0
        self.invited = 0  # queues that may begin, and have not yet
        self.last = float("-inf")
        self.held: deque[Queue] | None = None  # most addresses never hold anybody
        self.alarm = False  # it is in the heap, until its delay has passed


class Politeness:
    """All queues of one process."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.queues: dict[str, Queue] = {}
        self.addresses: dict[str, Address] = {}
        self.left = 0  # items that nobody has taken
        self._line: deque[Queue] = deque()
        self._heap: list[tuple[float, int, Queue | Address]] = []
        self._numbers = count()
        self._now = float("-inf")  # when somebody took a turn last
        self._skips = 0

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
        if queue.wait or not self._may(queue):
            return
        queue.wait = True
        ready = queue.ready_at
        if ready <= now:
            self._line.append(queue)
        else:
            heappush(self._heap, (ready, next(self._numbers), queue))

    def push(self, queue: Queue, item: Item, now: float, *, urgent: bool = False) -> None:
        """Put an item in front of a queue that is not closed; an urgent one has its turn even if the queue stays out."""
        queue.first = queue.first or deque()
        queue.first.appendleft(item)
        if urgent or queue.urgent:
            queue.urgent += 1
        self.left += 1
        self.enter(queue, now)

    def take(self, now: float) -> tuple[Queue, Item] | None:
        """The next queue in line and its next item; it counts as running until `finish`, `skip` or `put_back`."""
        self._now = now
        self._due(now)
        while self._line:
            queue = self._line.popleft()
            queue.wait = False
            if not self._may(queue):  # it was closed, or may go on after the request under way
                self._decline(queue, now)
                continue
            if queue.ready_at > now:  # its pace has changed since it got in line
                self._decline(queue, now)
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
        """Whether a request may be sent now; if not, `hold` the item until it may."""
        place = None
        if address is not None and self._limited:
            place = self.addresses.get(address) or self.addresses.setdefault(address, Address())
        host = self._accept(queue)
        free = place is None or (self._room(place, now) > 0 and (host is place or not place.held))
        if free and not queue.exclusive and queue.ready_at <= now:
            if place is not None:
                place.running += 1
                place.last = now
            queue.requests += 1
            queue.last = now
            queue.exclusive = exclusive
            self.enter(queue, now)  # with more connections the next one may begin after the delay
            began = True
        else:
            began = False
        if host is not None:
            self._let_in(host, now)
        return began

    def hold(self, queue: Queue, item: Item, address: str, now: float) -> bool:
        """Take an item back that may not begin; False: its queue is closed, and the item is the caller's."""
        if queue.closed:
            queue.running -= 1
            return False
        self._return(queue, item, urgent=True)  # it had its turn
        place = self.addresses.get(address)
        if place is None or queue.wait or not self._may(queue) or queue.ready_at > now:
            self.enter(queue, now)
            return True
        queue.wait = True
        place.held = place.held or deque()
        place.held.append(queue)
        self._let_in(place, now)
        return True

    def put_back(self, queue: Queue, item: Item) -> None:
        """Give an item back; the queue stays out until it is entered again."""
        self._return(queue, item, urgent=False)
        self._decline(queue, self._now)

    def skip(self, queue: Queue, now: float) -> None:
        """The item needed no request: the next may be taken at once."""
        queue.running -= 1
        self._decline(queue, now)
        self._skips += 1
        if self._skips % SKIPS and not queue.wait and self._may(queue) and queue.ready_at <= now:
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
        queue.exclusive = False
        queue.out = queue.out or stay_out
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
        if not queue.running and not queue.wait:  # it was invited, but had nothing to ask
            self._decline(queue, now)
        self.enter(queue, now)

    def resume(self, queue: Queue, now: float) -> None:
        """Let a queue that stayed out take part again."""
        queue.out = False
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
        return wait if wait > self.limits.longest_wait + ROUNDING else 0.0

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

    def _may(self, queue: Queue) -> bool:
        """Whether a queue has anything to fetch and may, whatever the time."""
        if queue.closed or queue.exclusive or queue.running >= queue.connections:
            return False
        return queue.urgent > 0 if queue.out else len(queue) > 0

    def _due(self, now: float) -> None:
        """Let those whose delay has passed get in line."""
        while self._heap and self._heap[0][0] <= now:
            due = heappop(self._heap)[2]
            if isinstance(due, Queue):
                self._line.append(due)
            else:
                due.alarm = False
                self._let_in(due, now)

    def _return(self, queue: Queue, item: Item, *, urgent: bool) -> None:
        queue.first = queue.first or deque()
        queue.first.appendleft(item)
        if urgent or queue.urgent:
            queue.urgent += 1
        queue.running -= 1
        self.left += 1

    def _room(self, place: Address, now: float) -> int:
        """How many requests more an address may have now, besides those it has invited."""
        limits = self.limits
        if limits.address_delay and (place.invited or place.last + limits.address_delay > now):
            return 0
        room = limits.address_connections - place.running - place.invited if limits.address_connections else 1
        return min(room, 1) if limits.address_delay else room

    def _let_in(self, place: Address, now: float) -> None:
        """Invite as many of the queues held at an address as it has room for."""
        while place.held and self._room(place, now) > 0:
            queue = place.held.popleft()
            queue.wait = False
            self.enter(queue, now)
            if queue.wait and queue.ready_at <= now:  # else it comes again when it may
                queue.invited = place
                place.invited += 1
        due = place.last + self.limits.address_delay
        if place.held and due > now and not place.alarm:
            place.alarm = True
            heappush(self._heap, (due, next(self._numbers), place))

    def _accept(self, queue: Queue) -> Address | None:
        """The address that has invited a queue, if one has; it has come, or will not."""
        place, queue.invited = queue.invited, None
        if place is not None:
            place.invited -= 1
        return place

    def _decline(self, queue: Queue, now: float) -> None:
        """A queue does not come to the address that has invited it: others may."""
        place = self._accept(queue)
        if place is not None:
            self._let_in(place, now)
