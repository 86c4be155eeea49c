"""A fetcher without a network: random names, servers and failures drive politeness on a clock of its own, and a referee watches.

What the referee knows of the limits it keeps itself, from nothing but the requests that begin and end.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import count
from random import Random

from gossamer.stages.fetch.politeness import Item, Limits, Politeness, Queue

SLACK = 1e-9


@dataclass
class Web:
    """How servers behave."""

    addresses: int = 5
    skipped: float = 0.1  # share of the items that need no request
    looked_up: float = 0.3  # … whose name has to be looked up between `take` and `begin`
    unknown: float = 0.05  # … of those whose name is not found
    failing: float = 0.1
    asking: float = 0.05  # answers that ask to be left alone for a while
    exclusive: float = 0.05
    moving: float = 0.0  # items that go to another address than most of their queue
    closing: float = 0.0  # turns after which some queue is closed
    slots: int = 50  # requests under way in all


@dataclass
class Referee:
    """Watches the limits."""

    limits: Limits
    connections: dict[str, int]
    running: Counter[str] = field(default_factory=Counter)
    at: Counter[str] = field(default_factory=Counter)
    begun: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    begun_at: dict[str, float] = field(default_factory=dict)
    alone_until: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: float("-inf")))
    alone: set[str] = field(default_factory=set)

    def begin(self, key: str, address: str, now: float, *, exclusive: bool) -> None:
        several = self.connections[key] > 1
        last = self.begun.get(key) if several else self.ended.get(key)
        assert last is None or now >= last + self.limits.delay - SLACK, f"{key}: too soon"
        assert now >= self.alone_until[key] - SLACK, f"{key}: asked to be left alone"
        assert key not in self.alone, f"{key}: a request beside one that must be alone"
        place = self.begun_at.get(address)
        assert place is None or now >= place + self.limits.address_delay - SLACK, f"{address}: too soon"
        self.running[key] += 1
        self.at[address] += 1
        assert self.running[key] <= self.connections[key], f"{key}: too many"
        assert self.at[address] <= (self.limits.address_connections or 1 << 30), f"{address}: too many"
        self.begun[key] = self.begun_at[address] = now
        if exclusive:
            self.alone.add(key)

    def end(self, key: str, address: str, now: float, wait: float) -> None:
        self.running[key] -= 1
        self.at[address] -= 1
        self.ended[key] = now
        self.alone.discard(key)
        if wait:
            self.alone_until[key] = max(self.alone_until[key], now + wait)


class Simulation:
    """Runs until nothing is left; raises when nothing can go on."""

    def __init__(self, seed: int, limits: Limits, web: Web, queues: list[tuple[int, int]]) -> None:
        """`queues`: how many items each has, and connections."""
        self.random, self.web, self.now = Random(seed), web, 0.0
        self.politeness = Politeness(limits)
        self.fate: Counter[int] = Counter()  # item → how often it was decided
        self.order: list[str] = []  # keys of queues as they began
        self._events: list[tuple[float, int, str, tuple[object, ...]]] = []
        self._number = count()
        self._busy = 0
        items = count()
        for n, (size, connections) in enumerate(queues):
            rows = [next(items) for _ in range(size)]
            self.politeness.enter(self.politeness.add(f"q{n}", rows, connections=connections), 0.0)
        self.total = next(items)
        self.referee = Referee(limits, {key: q.connections for key, q in self.politeness.queues.items()})

    def run(self) -> None:
        while self._busy or self.politeness.left:
            self._turns()
            assert self.politeness.left >= 0
            times = [self._events[0][0]] if self._events else []
            if self._busy < self.web.slots and (wake := self.politeness.wake()) is not None:
                times.append(wake)
            assert times or not (self._busy or self.politeness.left), (
                f"{self.politeness.left} items left, and nobody will ever take them"
            )
            self.now = max(self.now, min(times, default=self.now))
            while self._events and self._events[0][0] <= self.now:
                _, _, name, arguments = heapq.heappop(self._events)
                getattr(self, name)(*arguments)

    def _turns(self) -> None:
        while self._busy < self.web.slots and (turn := self.politeness.take(self.now)) is not None:
            queue, item = turn
            self._busy += 1
            if self.random.random() < self.web.skipped:
                self._decide(item)
                self.politeness.skip(queue, self.now)
            elif self.random.random() < self.web.looked_up:
                self._later("_begin", queue, item)
            else:
                self._begin(queue, item)
            if self.random.random() < self.web.closing:
                victim = self.random.choice(list(self.politeness.queues.values()))
                for left in self.politeness.close(victim):
                    self._decide(left, busy=0)

    def _begin(self, queue: Queue, item: Item) -> None:
        if self.random.random() < self.web.unknown:
            self._decide(item)
            self.politeness.finish(queue, None, self.now, failed=True)
            return
        number = Random(item if self.random.random() < self.web.moving else queue.key).randrange(self.web.addresses)
        address = f"192.0.2.{number}"
        exclusive = self.random.random() < self.web.exclusive and not queue.running > 1
        if self.politeness.begin(queue, address, self.now, exclusive=exclusive):
            self.referee.begin(queue.key, address, self.now, exclusive=exclusive)
            self.order.append(queue.key)
            self._later("_end", queue, item, address)
        elif self.politeness.hold(queue, item, address, self.now):
            self._busy -= 1
        else:
            self._decide(item)

    def _end(self, queue: Queue, item: Item, address: str) -> None:
        self._decide(item)
        wait = self.random.uniform(0.1, 20) if self.random.random() < self.web.asking else 0.0
        self.referee.end(queue.key, address, self.now, wait)
        self.politeness.finish(
            queue, address, self.now, failed=not wait and self.random.random() < self.web.failing, wait=wait
        )

    def _later(self, name: str, *arguments: object) -> None:
        heapq.heappush(
            self._events, (self.now + self.random.choice((0.0, 0.01, 0.3, 2.0)), next(self._number), name, arguments)
        )

    def _decide(self, item: Item, busy: int = 1) -> None:
        self.fate[item] += 1
        self._busy -= busy
