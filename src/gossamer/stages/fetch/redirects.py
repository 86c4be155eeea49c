"""Redirects: where they lead, whether that may be, and whether it is followed in this round.

Targets are normalised and filtered like every URL, a batch at a time. They are followed inside their partition only, where
nobody else talks to the host; others are entries for the next round. So are those that are in the list themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gossamer.stages.fetch.politeness import Queue
from gossamer.stages.fetch.rows import Row
from gossamer.stages.fetch.visits import Visit
from gossamer.urls import keys
from gossamer.urls.parse import resolve

if TYPE_CHECKING:
    from gossamer.stages.fetch.worker import Worker

BATCH, PATIENCE = 64, 0.1  # targets looked at in one go, and seconds the first of them waits for others


class Redirects:
    """Redirects on their way."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.waiting: list[tuple[Visit, Row, str]] = []
        self._since = 0.0
        self._followed: set[int] = set()  # fingerprints of targets that this process fetches

    def add(self, visit: Visit, row: Row, location: str, now: float) -> None:
        """An answer leads elsewhere."""
        if not self.waiting:
            self._since = now
        self.waiting.append((visit, row, location))

    def pump(self, now: float) -> None:
        """Look at what waits, if it is much or has waited long enough."""
        if self.waiting and (len(self.waiting) >= BATCH or now - self._since >= PATIENCE or self.worker.draining):
            waiting, self.waiting = self.waiting, []
            self._look(waiting, now)

    def _look(self, waiting: list[tuple[Visit, Row, str]], now: float) -> None:
        resolved = [resolve(visit.url, [location])[0] for visit, _, location in waiting]
        checked = self.worker.task.chain.check(pa.array(resolved, pa.string()), "fetch")
        targets, reasons = checked.url.to_pylist(), checked.reason.to_pylist()
        for (visit, row, _), target, reason in zip(waiting, targets, reasons, strict=True):
            if target is None:
                self.worker.decided(visit, row._replace(error=f"redirect: {reason}"))
            elif target == visit.url or target in visit.chain:
                self.worker.decided(visit, row._replace(error="redirect: a loop"))
            else:
                self.worker.decided(visit, row._replace(redirect_to=target))
                self.follow(target, (*visit.chain, visit.url), visit.queue, now)

    def follow(self, target: str, chain: tuple[str, ...], source: Queue | None, now: float) -> None:
        """Fetch the target of a redirect in this round, if that is ours to do."""
        worker = self.worker
        fp = keys.fingerprint(target)
        if len(chain) > worker.settings.max_redirects or fp in self._followed or worker.listing.listed(fp):
            return
        queue = self.queue_for(target, chain[-1], source)
        if queue is None or queue.closed:
            return
        self._followed.add(fp)
        onward = Visit(target, worker.origin(target, queue), queue)
        onward.chain = chain
        worker.politeness.push(queue, onward, now)
        worker.postpone(queue, now)

    def seen(self, fps: pa.Array) -> None:
        """URLs that were fetched before this process began."""
        self._followed.update(fps.to_pylist())

    def queue_for(self, target: str, url: str, source: Queue | None) -> Queue | None:
        """The queue of what `url` of the queue `source` leads to; none if that host may be somebody else's in this round."""
        task, listing = self.worker.task, self.worker.listing
        found = keys.url_columns(pa.array([target, url], pa.string()))
        (host, before), (domain, _) = found["host"].to_pylist(), found["domain"].to_pylist()
        if task.per == "ip":
            return source if host == before else None
        theirs, own = map(listing.partition_of, found["domain_fp"].to_pylist())
        if own is None or theirs != own:
            return None
        return self.worker.queue(domain if task.per == "domain" else host)
