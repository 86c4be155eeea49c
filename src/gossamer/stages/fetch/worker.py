"""One process of a fetch: takes turns from politeness, sends requests, decides about answers, keeps the ledger.

The loop has one thread and never waits but in `Poller.wait`. What answers mean is in `outcomes`, when to ask in
`politeness`, how to ask in the protocols.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from gossamer.stages.fetch.addresses import Guard
from gossamer.stages.fetch.answers import Revisit, exchange_of, row_of
from gossamer.stages.fetch.journal import Journal
from gossamer.stages.fetch.ledger import Ledger
from gossamer.stages.fetch.memory import Facts
from gossamer.stages.fetch.origins import Manners, Origin
from gossamer.stages.fetch.outcomes import headers_of, judge
from gossamer.stages.fetch.politeness import Politeness, Queue, Rows
from gossamer.stages.fetch.poller import Poller
from gossamer.stages.fetch.protocols import Context, Request, Response, Transport
from gossamer.stages.fetch.redirects import Redirects
from gossamer.stages.fetch.resolver import Answer, Resolver
from gossamer.stages.fetch.robotstxt import RobotsFiles
from gossamer.stages.fetch.rows import Place, Row
from gossamer.stages.fetch.visits import Visit
from gossamer.storage.warc import payload_digest
from gossamer.tables.statuses import Outcome
from gossamer.urls.parse import WEB

if TYPE_CHECKING:
    from gossamer.stages.fetch.listing import Listing
    from gossamer.stages.fetch.task import FetchTask

TURNS = 512  # taken in a row before events are looked at again
IDLE = 0.25  # seconds until signs to stop are looked for
RESOLVING = 4  # names that may be looked up at a time, for each request that may be under way
DAY = 86_400


class Worker:
    """The state of one process."""

    def __init__(self, task: FetchTask, listing: Listing) -> None:
        self.task, self.listing = task, listing
        self.settings = task.settings
        self.poller = Poller()
        self.guard = Guard(self.settings.allow_networks)
        self.resolver = Resolver(self.poller, time.monotonic, self.settings.dns_servers)
        self.politeness = Politeness(task.limits)
        self.manners = Manners(self.settings, task.hosts)
        self.ledger = Ledger(task.home, task.form, task.number, task.generation)
        self.journal = Journal(task.home.journal(task.number, task.generation))
        self.origins: dict[str, Origin] = {}
        self.by_host: dict[str, list[Origin]] = {}
        self.speaking: list[Transport] = []
        self.transports = self._transports()
        self.robots = RobotsFiles(self)
        self.redirects = Redirects(self)
        self.resolved: deque[tuple[Visit, Answer]] = deque()
        self.active = self.resolving = 0
        self.counts: Counter[str] = Counter()  # pages, bytes, and errors by class
        self.facts: dict[str, Facts] = {}
        self.draining = False
        self.wall = time.time() + task.clock_offset - time.monotonic()  # time of day when the monotonic clock was 0

    def _transports(self) -> dict[str, Transport]:
        """The protocols by scheme."""
        context = Context(self.poller, self.settings, self.task.agent, self.guard)
        ready: dict[str, Transport] = {}
        for protocol in self.task.protocols:
            transport = protocol.open(context)
            self.speaking.append(transport)
            ready |= dict.fromkeys(protocol.schemes, transport)
        return ready

    # The loop

    @property
    def busy(self) -> bool:
        """Whether anything is under way."""
        return bool(self.active or self.resolving or self.resolved or self.redirects.waiting)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return not self.busy and (self.draining or not self.politeness.left)

    def step(self) -> None:
        """One turn of the loop."""
        now = time.monotonic()
        while self.resolved:
            visit, answer = self.resolved.popleft()
            self.resolving -= 1
            self._send_to(visit, answer, now)
        if not self.draining:
            self._launch(now)
        self.journal.flush()  # before curl sends anything
        self.resolver.pump()
        self.poller.wait(self._patience(now))
        for transport in self.speaking:
            for request, response in transport.finished():
                self._answered(request, response)
        self.redirects.pump(time.monotonic())
        self.ledger.pump(time.monotonic())

    def _patience(self, now: float) -> float:
        """How long to wait for events."""
        waits = [IDLE]
        if not self.draining and self.active < self.settings.connections and (at := self.politeness.wake()) is not None:
            waits.append(at - now)
        waits += [s for t in self.speaking if (s := t.wake()) is not None]
        if (seconds := self.resolver.wake()) is not None:
            waits.append(seconds)
        if self.resolved:
            return 0.0
        return max(0.0, min(waits))

    def _launch(self, now: float) -> None:
        """Give turns while there is room."""
        most = self.settings.connections
        for _ in range(TURNS):
            if self.active >= most or self.resolving >= RESOLVING * most:
                return
            turn = self.politeness.take(now)
            if turn is None:
                return
            queue, item = turn
            visit = item if isinstance(item, Visit) else self._listed(queue, item)
            self.consider(visit, now)

    def _listed(self, queue: Queue, row: int) -> Visit:
        url = self.listing.urls[row].as_py()
        return Visit(url, self.origin(url, queue), queue, row)

    def origin(self, url: str, queue: Queue) -> Origin:
        """The origin of a URL."""
        name = url[: url.index("/", url.index("://") + 3)]
        found = self.origins.get(name)
        if found is None:
            found = self.origins[name] = Origin(name, queue)
            self.by_host.setdefault(found.host, []).append(found)
            found.mapped = self.manners.mapped(found.host)
            rule = self.manners.rule(found.host)
            if rule is not None:
                found.proxy = rule.proxy
                found.headers = tuple(f"{name}: {value}" for name, value in rule.headers.items())
        return found

    def queue(self, key: str, rows: Rows = ()) -> Queue:
        """The queue of this key; a new one begins with what is remembered of it."""
        found = self.politeness.queues.get(key)
        if found is not None:
            return found
        found = self.politeness.add(key, rows, **self.manners.pace(key))
        self.task.memory.remind(found, self.wall)
        return found

    # A visit on its way out

    def consider(self, visit: Visit, now: float) -> None:
        """Send a visit, unless robots.txt has to be asked for first or forbids it."""
        queue, origin = visit.queue, visit.origin
        if queue.capped and queue.requests >= queue.capped:
            self.politeness.put_back(queue, visit)
            self.schedule(self.politeness.close(queue), Outcome.UNTRIED, f"cap: {queue.capped} requests")
            return
        if visit.robots_for is None and self.settings.robots == "obey" and origin.scheme in WEB:
            if now >= origin.expires:
                self.robots.ask(visit, now)
                return
            if origin.robots is None:
                row = Row(visit.url, Outcome(origin.outcome), self.wall + now, error=origin.error)
                self.decided(visit, row._replace(retry_after_s=origin.retry_after))
                self.politeness.skip(queue, now)
                return
            verdict = origin.robots.decide(visit.url)
            visit.robots_line = verdict.line
            if not verdict.allowed:
                self.decided(visit, Row(visit.url, Outcome.ROBOTS_DENIED, self.wall + now))
                self.politeness.skip(queue, now)
                return
        self.send(visit, now)

    def send(self, visit: Visit, now: float) -> None:
        """Find out where a visit goes, and send it there."""
        origin = visit.origin
        if origin.scheme not in self.transports:
            self._refused(visit, Outcome.UNSUPPORTED, f"scheme: {origin.scheme}", now)
        elif origin.literal is not None and origin.mapped is None and not self.guard.allows(origin.literal):
            self._refused(visit, Outcome.BLOCKED_ADDRESS, f"blocked_address: {origin.literal}", now)
        elif origin.mapped is not None or origin.proxy or not origin.host:
            self._begin(visit, origin.mapped, now)
        elif origin.literal is not None:
            self._begin(visit, origin.literal, now)
        elif (answer := self.resolver.known(origin.host)) is not None:
            self._send_to(visit, answer, now)
        else:
            self.resolving += 1
            self.resolver.ask(origin.host, lambda answer: self.resolved.append((visit, answer)))

    def _send_to(self, visit: Visit, answer: Answer, now: float) -> None:
        """Send a visit to the first of its addresses that is allowed."""
        if not answer.addresses:
            response = Response()
            response.error, response.detail = "dns", answer.error or ""
            self._take(visit, None, response)
            return
        allowed = next((address for address in answer.addresses if self.guard.allows(address)), None)
        if allowed is None:
            self._refused(visit, Outcome.BLOCKED_ADDRESS, f"blocked_address: {answer.addresses[0]}", now)
            return
        self._begin(visit, allowed, now)

    def _begin(self, visit: Visit, address: str | None, now: float) -> None:
        queue = visit.queue
        limited = address if visit.origin.mapped is None else None
        if not self.politeness.begin(queue, limited, now, exclusive=visit.robots_for is not None):
            if not self.politeness.hold(queue, visit, limited or "", now):
                self.schedule([visit], Outcome.UNTRIED, "left for another round")  # as the rest of its queue was
            return
        visit.address = limited
        visit.started = self.wall + now
        self.journal.note(queue.key, visit.started, queue.delay)
        self.active += 1
        self.transports[visit.origin.scheme].start(self._request(visit, address))

    def _request(self, visit: Visit, address: str | None) -> Request:
        origin = visit.origin
        request = Request(visit.url, visit, self.robots.most if visit.robots_for else self.settings.max_bytes)
        request.address, request.exempt, request.proxy = address, origin.mapped is not None, origin.proxy
        request.queue = visit.queue.key
        request.verify = visit.tls is None
        headers = list(origin.headers)
        if visit.row >= 0:
            headers += self._conditions(visit)
            request.types = tuple(self.settings.types)
        request.headers = headers
        return request

    def _conditions(self, visit: Visit) -> list[str]:
        """Headers that ask for a page only if it has changed."""
        rows, row = self.listing.rows, visit.row
        if not self.listing.had_content[row]:
            return []
        found = []
        for name, column in (("If-None-Match", "etag"), ("If-Modified-Since", "last_modified")):
            value = rows.column(column)[row].as_py()
            if value and value.isascii() and value.isprintable():
                found.append(f"{name}: {value}")
        visit.conditional = bool(found)
        return found

    # An answer on its way in

    def _answered(self, request: Request, response: Response) -> None:
        visit: Visit = request.owner
        self.active -= 1
        if response.error == "tls" and request.verify and self.settings.tls == "record" and not response.code:
            visit.tls = response.detail or "failed"
            self.active += 1
            self.transports[visit.origin.scheme].start(self._request(visit, request.address))
            return
        self._take(visit, visit.address, response)

    def _take(self, visit: Visit, address: str | None, response: Response) -> None:
        """Decide about a response, or the lack of one."""
        now = time.monotonic()
        if visit.robots_for is not None:
            self.robots.answered(visit, address, response, now)
            return
        headers = headers_of(response.head)
        judged = judge(response, headers, self.wall + now, conditional=visit.conditional, keep_cut=self.settings.cut)
        self.note(visit, response, judged.failed)
        digest = payload_digest(response.body) if response.code and response.code != 304 else None
        outcome = judged.outcome
        revisit: Revisit = None
        if outcome is Outcome.NOT_MODIFIED:
            revisit = "not-modified"
        elif outcome is Outcome.SUCCESS and not response.truncated and self._seen(visit, digest):
            outcome, revisit = Outcome.NOT_MODIFIED, "identical"
        row = row_of(visit, response, headers, judged, self.wall + now)._replace(outcome=outcome, payload_digest=digest)
        if response.code and (visit.origin.scheme in WEB or response.code == 200):
            row = row._replace(place=self.archive(visit, response, now, digest, revisit, judged.error))
        if judged.location is not None:
            self.redirects.add(visit, row, judged.location, now)
        else:
            self.decided(visit, row)
        self.noted(visit.queue, judged.retry_after, now)
        self.politeness.finish(visit.queue, address, now, failed=judged.failed, wait=judged.retry_after or 0.0)
        self.settle(visit.queue, now)

    def _seen(self, visit: Visit, digest: str | None) -> bool:
        """Whether this is the very payload the page had before."""
        if visit.row < 0 or not self.listing.had_content[visit.row]:
            return False
        return bool(self.listing.rows.column("payload_digest")[visit.row].as_py() == digest)

    def archive(
        self,
        visit: Visit,
        response: Response,
        now: float,
        digest: str | None,
        revisit: Revisit = None,
        error: str | None = None,
    ) -> Place:
        """Write an exchange to the WARC file; where it is. Its date is that of the row, so that a revisit can name it."""
        at = int((self.wall + now) * 1000) / 1000
        before = self.listing.rows.column("modified_at")[visit.row].as_py() if revisit and visit.row >= 0 else None
        exchange = exchange_of(visit, response, error, at)
        exchange.digest, exchange.revisit = digest, revisit
        exchange.refers_to = before.timestamp() if before is not None else None
        return self.ledger.archive(exchange, at)

    def _refused(self, visit: Visit, outcome: Outcome, error: str, now: float) -> None:
        """A visit that is not sent at all."""
        if visit.robots_for is not None:
            self.robots.refused(visit, outcome, error, now)
            return
        self.decided(visit, Row(visit.url, outcome, self.wall + now, error=error))
        self.politeness.skip(visit.queue, now)

    # Bookkeeping

    def decided(self, visit: Visit, row: Row) -> None:
        """A URL has its row."""
        if visit.via or visit.robots_line:
            row = row._replace(via=visit.via, robots_line=visit.robots_line)
        self.ledger.add(row)
        self.counts["rows"] += 1
        if row.error:
            self.counts[f"error {row.error.partition(':')[0]}"] += 1

    def note(self, visit: Visit, response: Response, failed: bool) -> None:
        """Remember how a host did."""
        self.counts["pages"] += 1
        self.counts["bytes"] += len(response.body)
        host = visit.origin.host
        facts = self.facts.get(host) or self.facts.setdefault(host, Facts(visit.queue))
        facts.last_request = visit.started or facts.last_request
        facts.address = visit.address or facts.address
        if response.code:
            facts.latency = response.latency if facts.latency is None else 0.7 * facts.latency + 0.3 * response.latency
        if failed:
            facts.error = response.error or f"http {response.code}"

    def noted(self, queue: Queue, seconds: int | None, now: float) -> None:
        """An answer has come; should we be killed, we know when, and whether the server wants time."""
        self.journal.note(queue.key, self.wall + now, max(seconds or 0, queue.delay))

    def settle(self, queue: Queue, now: float) -> None:
        """After a request: leave a queue alone for this round if it failed too often or has to wait too long."""
        if queue.closed or not len(queue):
            return
        seconds = self.politeness.gives_up(queue, now)
        if not seconds:
            return
        if queue.failures >= self.politeness.limits.failures:
            queue.given_up_until = self.wall + now + seconds
            reason, step = f"host: failed {queue.failures} times in a row", 0.0
        else:
            reason, step = f"host: wants {seconds:.0f} s between requests", queue.delay
        self.schedule(self.politeness.close(queue), Outcome.RETRY_LATER, reason, seconds, step)

    def postpone(self, queue: Queue, now: float) -> None:
        """Before a request: leave a queue for another round that was told to wait too long in an earlier one."""
        seconds = queue.ready_at - now
        if seconds > self.politeness.limits.longest_wait and not queue.closed and not queue.running:
            reason = f"host: wants to be left alone for {seconds:.0f} s"
            self.schedule(self.politeness.close(queue), Outcome.RETRY_LATER, reason, seconds, queue.delay)

    def schedule(
        self, items: list[Visit | int], outcome: Outcome, reason: str, wait: float = 0.0, step: float = 0.0
    ) -> None:
        """Rows for URLs that this round leaves: each is due again after `wait`, and `step` more for each before it."""
        now = time.monotonic()
        for item in items:
            visit = item if isinstance(item, Visit) else Visit(self.listing.urls[item].as_py(), None, None, item)  # type: ignore[arg-type]
            if visit.robots_for is not None:
                self.robots.refused(visit, Outcome.RETRY_LATER, reason, now, took=False)
                continue
            after = min(int(wait) + 1, 7 * DAY) if outcome is Outcome.RETRY_LATER else None
            self.decided(visit, Row(visit.url, outcome, self.wall + now, retry_after_s=after, error=reason))
            wait += step

    def close(self, *, publish: bool = True) -> None:
        """Let go; after an error nothing more is published."""
        self.journal.close()
        (self.ledger.close if publish else self.ledger.abandon)()
        for transport in self.speaking:
            transport.close()
        self.resolver.close()
        self.poller.close()
