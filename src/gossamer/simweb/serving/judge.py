"""Lines of the access log, in order of start → how polite the crawler was, rule by rule.

Pure, and in one pass: what is kept is per host and per open connection, and of each gap eight bytes for the median. The server takes the times,
so what lies between it and the crawler may shorten a gap; `tolerance` forgives as much. What the server knows exactly gets no tolerance: whether
an answer had been sent when the next request came. A connection that is idle when another comes and is gone within the tolerance counts as
closed before: its end was on the way.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable
from statistics import median
from typing import Literal

import msgspec

from gossamer.simweb.serving.accesslog import CLOSE, Entry

RULES = {
    "gap": "requests to a host sooner after another than its delay",
    "retry": "of these, the same URL once more after no answer or a 5xx",
    "connections": "connections to a host beside as many as it may have",
    "underway": "requests to a host while as many as it may have were not answered",
    "address": "connections to an address beside as many as it may have",
    "disallowed": "requests for what robots.txt forbids",
    "robots": "requests before the origin's robots.txt was answered",
    "wait": "requests before a Retry-After of the host had passed",
    "agent": "requests without a User-Agent",
}
SHOWN = 10  # violations of a rule
HOSTS_SHOWN = 5
FAILED_KEPT = 100  # of a host, before the old ones are looked for
TICK = 1e-6  # the log's times end here
EVER = float("inf")


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the crawler."""

    delay: float = 1.0  # seconds between requests to a host, unless its robots.txt asks for more
    since: Literal["start", "end"] = "start"  # of the request before
    connections: int = 1  # to a host at a time, and requests under way; 0: any number
    per_address: int = 0  # connections to an address at a time; 0: any number
    tolerance: float = 0.05  # seconds
    agent: str = ""  # judge only requests whose User-Agent begins so, and those without one


class Violation(msgspec.Struct, frozen=True):
    """One request that broke a rule."""

    host: str
    address: str
    url: str
    at: float
    found: float | None = None  # seconds or a number, where the rule has such
    needed: float | None = None  # seconds at least, or a number at most
    before: str | None = None  # the request it came too soon after
    before_at: float | None = None


class Verdict(msgspec.Struct, frozen=True):
    """What came of one rule: how often it was broken, and the worst cases; the first ones if all are alike."""

    violations: int
    worst: list[Violation]


class HostLine(msgspec.Struct, frozen=True):
    """How one host was treated."""

    host: str
    requests: int
    smallest_gap: float
    median_gap: float
    connections: int  # at most at a time
    underway: int


class Report(msgspec.Struct, frozen=True):
    """The judgement of a log."""

    verdicts: dict[str, Verdict]
    requests: int
    hosts: int
    first: float
    last: float
    unreadable: int  # lines
    left_out: int  # requests by other agents
    closest: list[HostLine]  # the hosts with the smallest gaps
    connections: tuple[int, str]  # the most at a time, and to which host
    underway: tuple[int, str]

    @property
    def violations(self) -> int:
        """How many there are in all."""
        return sum(verdict.violations for verdict in self.verdicts.values())


def judge(entries: Iterable[Entry | None], rules: Rules | None = None) -> Report:
    """Judge a log whose lines come in order of start; None stands for a line that cannot be read."""
    court = _Court(rules or Rules())
    for entry in entries:
        if entry is None:
            court.unreadable += 1
        elif entry.method == CLOSE:
            court.close(entry)
        else:
            court.see(entry)
    return court.report()


def _url(entry: Entry) -> str:
    return f"{entry.scheme}://{entry.host}{entry.target}"


class _Tally:
    """The violations of one rule: all counted, the worst kept."""

    def __init__(self) -> None:
        self.count = 0
        self.worst: list[tuple[float, int, Violation]] = []

    def add(self, entry: Entry, badness: float = 0, found: float | None = None, needed: float | None = None, before: Entry | None = None) -> None:  # fmt: skip
        self.count += 1
        if len(self.worst) == SHOWN and (badness, -self.count) < self.worst[0][:2]:
            return
        then = (_url(before), before.start) if before is not None else (None, None)
        one = Violation(entry.host, entry.address, _url(entry), entry.start, found, needed, *then)
        put = heapq.heappush if len(self.worst) < SHOWN else heapq.heappushpop
        put(self.worst, (badness, -self.count, one))

    def verdict(self) -> Verdict:
        return Verdict(self.count, [one for *_, one in sorted(self.worst, key=lambda kept: kept[:2], reverse=True)])


class _Arrival:
    """A connection's first request to a place that others were connected to, some of which may have been leaving."""

    __slots__ = ("count", "entry", "number")

    def __init__(self, number: int, entry: Entry, count: int) -> None:
        self.number, self.entry, self.count = number, entry, count


class _Crowd:
    """The connections to each place, a host or an address, from the first request for it until the connection's end."""

    def __init__(self, limit: int, tolerance: float, tally: _Tally) -> None:
        self.limit, self.tolerance, self.tally = limit, tolerance + TICK, tally
        self.arrived = 0
        self.here: dict[
            str, dict[int, tuple[int, float]]
        ] = {}  # place → connection → its number, its last answer's end
        self.places: dict[int, list[str]] = {}
        self.doubtful: dict[str, list[_Arrival]] = {}
        self.most: dict[str, int] = {}

    def see(self, place: str, entry: Entry) -> None:
        here = self.here.get(place)
        if here is None:
            here = self.here[place] = {}
            self.most[place] = 1
        known = here.get(entry.connection)
        if known is not None:
            here[entry.connection] = known[0], max(entry.end, known[1])
            return
        self.arrived += 1
        if here:
            self.settle(place, entry.start)
            self.doubtful.setdefault(place, []).append(_Arrival(self.arrived, entry, len(here) + 1))
        here[entry.connection] = self.arrived, entry.end
        self.places.setdefault(entry.connection, []).append(place)

    def close(self, entry: Entry) -> None:
        for place in self.places.pop(entry.connection, ()):
            number, idle = self.here[place].pop(entry.connection)
            if place in self.doubtful:
                self.settle(place, entry.start)
                for arrival in reversed(self.doubtful.get(place, ())):
                    if arrival.entry.start < idle:
                        break
                    arrival.count -= number < arrival.number

    def settle(self, place: str, now: float) -> None:
        """Count those who came so long ago that the leaving have left."""
        doubtful = self.doubtful.get(place)
        while doubtful and doubtful[0].entry.start + self.tolerance < now:
            arrival = doubtful.pop(0)
            self.most[place] = max(arrival.count, self.most[place])
            if self.limit and arrival.count > self.limit:
                self.tally.add(arrival.entry, arrival.count, arrival.count, self.limit)
        if not doubtful:
            self.doubtful.pop(place, None)

    def end(self) -> None:
        for place in list(self.doubtful):
            self.settle(place, EVER)


class _Host:
    """What is remembered of one host."""

    __slots__ = ("before", "busy", "cause", "failed", "gaps", "latest", "most", "owed", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.before: Entry | None = None  # the request before
        self.latest: Entry | None = None  # the one whose answer ended last
        self.gaps = array("d")
        self.busy: list[float] = []  # when the requests under way end
        self.most = 0
        self.failed: dict[tuple[str, str], Entry] = {}
        self.owed: list[Entry] = []  # answers under way that will ask to wait
        self.cause: Entry | None = None  # the answer that asked to wait longest


class _Court:
    """A log being judged."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.slack = rules.tolerance + TICK
        self.by_start = rules.since == "start"
        self.tallies = {rule: _Tally() for rule in RULES}
        self.hosts: dict[str, _Host] = {}
        self.robots: dict[tuple[str, str], float] = {}  # origin → when its robots.txt had been answered
        self.moved: dict[
            str, set[tuple[str, str]]
        ] = {}  # host without www. → origins whose robots.txt is at its other name
        self.connected = _Crowd(rules.connections, rules.tolerance, self.tallies["connections"])
        self.addressed = _Crowd(rules.per_address, rules.tolerance, self.tallies["address"])
        self.unreadable = self.left_out = self.requests = 0
        self.first, self.now, self.last = 0.0, -EVER, 0.0

    def see(self, entry: Entry) -> None:
        """Judge a request."""
        if entry.start < self.now:
            raise ValueError("the lines are not in order of start")
        nameless = entry.agent in ("-", "")
        if not nameless and not entry.agent.startswith(self.rules.agent):
            self.left_out += 1
            return
        if not self.requests:
            self.first = entry.start
        self.requests += 1
        self.now = entry.start
        self.last = max(self.last, entry.end)
        host = self.hosts.get(entry.host)
        if host is None:
            host = self.hosts[entry.host] = _Host()
        for_robots = entry.page == "robots" or entry.target == "/robots.txt"  # or for where it has moved to
        self._gap(host, entry, self.rules.delay if for_robots else max(self.rules.delay, entry.delay))
        self._underway(host, entry)
        self._robots(entry, for_robots)
        if entry.wait or host.owed or host.cause is not None:
            self._wait(host, entry)
        self.connected.see(entry.host, entry)
        if self.rules.per_address:
            self.addressed.see(entry.address, entry)
        if not entry.allowed:
            self.tallies["disallowed"].add(entry)
        if nameless:
            self.tallies["agent"].add(entry)

    def close(self, entry: Entry) -> None:
        """A connection has ended."""
        self.connected.close(entry)
        self.addressed.close(entry)

    def _gap(self, host: _Host, entry: Entry, needed: float) -> None:
        """Every request counts, of whatever kind; a crawl-delay binds all but those for robots.txt, before which it is not known."""
        by_start = self.by_start
        before = host.before if by_start else host.latest
        if before is not None:
            gap = entry.start - (before.start if by_start else before.end)
            host.gaps.append(gap)
            if gap < needed - self.slack:
                self.tallies["gap"].add(entry, needed - gap, gap, needed, before)
        host.requests += 1
        host.before = entry
        if host.latest is None or entry.end >= host.latest.end:
            host.latest = entry
        if host.failed:
            failed = host.failed.pop((entry.scheme, entry.target), None)
            if failed is not None and failed.end <= entry.start:
                gap = entry.start - (failed.start if by_start else failed.end)
                if gap < needed - self.slack:
                    self.tallies["retry"].add(entry, needed - gap, gap, needed, failed)
        if entry.status == 0 or entry.status >= 500:
            host.failed[entry.scheme, entry.target] = entry
            if len(host.failed) > FAILED_KEPT:
                host.failed = {url: old for url, old in host.failed.items() if old.end > entry.start - needed}

    def _underway(self, host: _Host, entry: Entry) -> None:
        start = entry.start
        host.busy = [end for end in host.busy if end > start]
        host.busy.append(entry.end)
        count = len(host.busy)
        host.most = max(host.most, count)
        if self.rules.connections and count > self.rules.connections:
            self.tallies["underway"].add(entry, count, count, self.rules.connections)

    def _wait(self, host: _Host, entry: Entry) -> None:
        """A Retry-After binds all requests to the host that begin after its answer was sent."""
        if host.owed:
            for answer in host.owed:
                if answer.end <= entry.start and (host.cause is None or _over(answer) > _over(host.cause)):
                    host.cause = answer
            host.owed = [answer for answer in host.owed if answer.end > entry.start]
        cause = host.cause
        if cause is not None and entry.start < _over(cause) - self.slack:
            self.tallies["wait"].add(entry, _over(cause) - entry.start, entry.start - cause.end, cause.wait, cause)
        if entry.wait:
            host.owed.append(entry)

    def _robots(self, entry: Entry, for_robots: bool) -> None:
        """No answer and 5xx leave everything forbidden (RFC 9309); 4xx, or a redirect to another origin, answers."""
        origin = entry.scheme, entry.host
        if not for_robots:
            if entry.start < self.robots.get(origin, EVER):
                self.tallies["robots"].add(entry)
            return
        bare = entry.host.removeprefix("www.")
        if 300 <= entry.status < 400 and entry.page == "robots":  # to a site's other name, whose answer it awaits
            self.moved.setdefault(bare, set()).add(origin)
        elif 200 <= entry.status < 500:
            for answered in (origin, *self.moved.get(bare, ())):
                self.robots[answered] = min(entry.end, self.robots.get(answered, EVER))

    def report(self) -> Report:
        """What has been found."""
        self.connected.end()
        self.addressed.end()
        closest = heapq.nsmallest(
            HOSTS_SHOWN, ((min(host.gaps), name) for name, host in self.hosts.items() if host.gaps)
        )
        lines = [self._line(name, smallest) for smallest, name in closest]
        verdicts = {rule: tally.verdict() for rule, tally in self.tallies.items()}
        connections = max(((count, name) for name, count in self.connected.most.items()), default=(0, ""))
        underway = max(((host.most, name) for name, host in self.hosts.items()), default=(0, ""))
        return Report(
            verdicts, self.requests, len(self.hosts), self.first, self.last, self.unreadable, self.left_out, lines, connections, underway
        )  # fmt: skip

    def _line(self, name: str, smallest: float) -> HostLine:
        host = self.hosts[name]
        return HostLine(name, host.requests, smallest, median(host.gaps), self.connected.most[name], host.most)


def _over(answer: Entry) -> float:
    """When the time that an answer asked to wait has passed."""
    return answer.end + answer.wait
