"""robots.txt of origins: asked for before anything else, by the rules of RFC 9309 for what may go wrong.

An answer of 2xx is parsed, 4xx allows everything; when it cannot be had (5xx, 429, no answer), nothing is fetched for now.
Up to five redirects are followed, to hosts of the same partition only: others belong to somebody else in this round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gossamer.stages.fetch.codings import decoded
from gossamer.stages.fetch.origins import Origin
from gossamer.stages.fetch.outcomes import PERMANENT, TEMPORARY, TOO_MANY, headers_of, judge, retry_after, told
from gossamer.stages.fetch.politeness import Queue
from gossamer.stages.fetch.protocols import Response
from gossamer.stages.fetch.robots import LONGEST, Robots, parse_robots
from gossamer.stages.fetch.rows import NOWHERE, Answered, Place
from gossamer.stages.fetch.visits import Visit
from gossamer.storage.warc import payload_digest
from gossamer.tables.statuses import Outcome
from gossamer.urls.parse import parse, resolve

if TYPE_CHECKING:
    from gossamer.stages.fetch.worker import Worker

HOPS = 5
NOT_MODIFIED = 304
KEPT = 86_400.0  # seconds a robots.txt holds
RETRY = 3_600  # … and one that could not be had


class Known(NamedTuple):
    """What an origin said before."""

    body: bytes
    reachable: bool
    error: str | None
    seconds: float  # for which it still holds


class RobotsFiles:
    """Asks for robots.txt and gives its answers to origins."""

    most = 4 * LONGEST  # bytes taken, as they come; what is parsed is less

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def _know(self, origin: Origin, earlier: Known, now: float) -> None:
        """Live by what was found out earlier, if that still holds."""
        if earlier.seconds <= 0:
            return
        origin.expires = now + min(earlier.seconds, KEPT)
        if earlier.reachable:
            self._apply(origin, parse_robots(earlier.body, self.worker.task.agent.name))
        else:
            origin.error, origin.outcome = earlier.error or "robots.txt", int(Outcome.RETRY_LATER)
            origin.retry_after = max(int(earlier.seconds), 1)

    def ask(self, visit: Visit, now: float) -> None:
        """Ask for robots.txt first; the visit waits in its queue."""
        worker, origin, queue = self.worker, visit.origin, visit.queue
        earlier = worker.task.known_robots.pop(origin.name, None)
        if earlier is not None:
            self._know(origin, earlier, now)
            if now < origin.expires:
                worker.consider(visit, now)
                return
        worker.politeness.put_back(queue, visit)
        queue.running += 1  # in the place of the visit
        if queue is origin.queue:
            queue.out = True  # until it is known what may be fetched; another connection would ask the same
        worker.send(self._visit(f"{origin.name}/robots.txt", origin, queue), now)

    def _visit(self, url: str, origin: Origin, queue: Queue, chain: tuple[str, ...] = ()) -> Visit:
        visit = Visit(url, self.worker.origin(url, queue), queue)
        visit.robots_for, visit.chain = origin, chain
        return visit

    def answered(self, visit: Visit, address: str | None, response: Response, now: float) -> None:
        """Take an answer, follow where it leads, or settle what may be fetched."""
        worker, origin = self.worker, visit.robots_for
        assert origin is not None
        headers = headers_of(response.head)
        wall = worker.wall + now
        place = NOWHERE
        if response.code:
            place = worker.archive(visit, response, now, payload_digest(response.body))
        code = response.code
        whole = not response.error or not 200 <= code < 300  # of half a file the other half may be what forbids
        failed = code < 200 or code in (NOT_MODIFIED, TOO_MANY) or code >= 500 or not whole
        worker.note(visit, response, failed)
        if code in PERMANENT or code in TEMPORARY:
            self._redirected(visit, address, headers.location, place, now)
            return
        wait = retry_after(headers.retry_after, wall) if failed and code else None
        judged = judge(response, headers, wall, conditional=False, keep_cut=True)
        if failed:
            outcome = Outcome.FAIL if not code else Outcome.RETRY_LATER
            if judged.outcome is Outcome.BLOCKED_ADDRESS:
                outcome = judged.outcome
            error = f"robots.txt: {judged.error or told(response)}"
            self._unreachable(origin, outcome, error, code or None, wait, place, now)
        elif 200 <= code < 300:
            body = decoded(response.body, response.head, LONGEST)
            self._settle(origin, parse_robots(body, worker.task.agent.name), body, code, None, place, now)
        else:
            self._settle(origin, parse_robots(b"", worker.task.agent.name), b"", code, None, place, now)
        worker.noted(visit.queue, wait, now)
        worker.politeness.finish(visit.queue, address, now, failed=failed, wait=float(wait or 0))
        self._resume(origin, now)

    def refused(self, visit: Visit, outcome: Outcome, error: str, now: float, *, took: bool = True) -> None:
        """robots.txt could not be asked for."""
        origin = visit.robots_for
        assert origin is not None
        self._unreachable(origin, outcome, f"robots.txt: {error}", None, None, NOWHERE, now)
        if took:
            self.worker.politeness.skip(visit.queue, now)
        self._resume(origin, now)

    def _resume(self, origin: Origin, now: float) -> None:
        """The queue of the origin goes on."""
        self.worker.politeness.resume(origin.queue, now)
        self.worker.settle(origin.queue, now)

    def _redirected(self, visit: Visit, address: str | None, location: str | None, place: Place, now: float) -> None:
        worker, origin = self.worker, visit.robots_for
        assert origin is not None
        target, _ = parse(resolve(visit.url, [location])[0] or "") if location else (None, None)
        chain = (*visit.chain, visit.url)
        if target is None or target in chain or len(chain) > HOPS:
            why = "robots.txt: redirects that lead nowhere"
            self._settle(origin, parse_robots(b"", worker.task.agent.name), b"", None, why, place, now)
            worker.politeness.finish(visit.queue, address, now)
            self._resume(origin, now)
            return
        queue = worker.redirects.queue_for(target, visit.url, visit.queue)
        if queue is None:
            error = f"robots.txt: leads to {target}, which another part of the round may be fetching"
            self._unreachable(origin, Outcome.RETRY_LATER, error, None, None, place, now)
            worker.politeness.finish(visit.queue, address, now)
            self._resume(origin, now)
            return
        worker.politeness.finish(
            visit.queue, address, now, stay_out=queue is not visit.queue and visit.queue is origin.queue
        )
        if queue.closed:
            self._unreachable(origin, Outcome.RETRY_LATER, f"robots.txt: leads to {target}", None, None, place, now)
            self._resume(origin, now)
            return
        # Urgent: that queue may be waiting for a robots.txt as well, perhaps for one that it finds in ours.
        worker.politeness.push(queue, self._visit(target, origin, queue, chain), now, urgent=True)
        worker.postpone(queue, now)

    def _apply(self, origin: Origin, robots: Robots) -> None:
        """Let an origin live by its robots.txt."""
        origin.robots, origin.error = robots, None
        if robots.crawl_delay is not None:
            origin.queue.delay = max(origin.queue.delay, robots.crawl_delay)

    def _settle(
        self, origin: Origin, robots: Robots, body: bytes, code: int | None, error: str | None, place: Place, now: float
    ) -> None:
        origin.expires = now + KEPT
        self._apply(origin, robots)
        wall = self.worker.wall + now
        self.worker.ledger.answered(
            Answered(origin.name, origin.host, wall, wall + KEPT, code, robots, body, error, place)
        )

    def _unreachable(
        self, origin: Origin, outcome: Outcome, error: str, code: int | None, wait: int | None, place: Place, now: float
    ) -> None:
        origin.expires = now + KEPT  # in this round it is not asked again
        origin.robots, origin.error, origin.outcome = None, error, int(outcome)
        origin.retry_after = (wait or RETRY) if outcome is Outcome.RETRY_LATER else None
        wall = self.worker.wall + now
        until = wall + min(wait or RETRY, KEPT)
        self.worker.ledger.answered(Answered(origin.name, origin.host, wall, until, code, None, b"", error, place))
