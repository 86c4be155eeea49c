"""One task of a fetch: a group of partitions, from the list to its last published row."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.settings import AgentSettings, FetchSettings, HostSettings
from gossamer.stages.fetch.journal import last_requests
from gossamer.stages.fetch.ledger import FETCH, ROBOTS, Form, Home
from gossamer.stages.fetch.listing import Listing, read_done, read_listing, unfollowed
from gossamer.stages.fetch.memory import Memory, merged, state_of
from gossamer.stages.fetch.politeness import Limits
from gossamer.stages.fetch.protocols import FetchProtocol
from gossamer.stages.fetch.robotstxt import Known
from gossamer.stages.fetch.worker import Worker
from gossamer.storage.files import Files
from gossamer.storage.parquet import FileEntry
from gossamer.tables.statuses import Outcome
from gossamer.urls.chain import UrlChain

STOP = "stop"  # a file below `fetching/<segment>`: end soon, and leave nothing half done
DRAIN = 5.0  # seconds that requests under way get when a round is stopped
TICK = 1.0  # seconds between two looks at the time, at signs to stop, and reports
TAIL = 20  # the tail of a round is the last one in so many queues
STOPPED = "stopped"


@dataclass
class FetchTask:
    """What one process needs to know."""

    number: int
    partitions: tuple[int, ...]
    home: Home
    generation: int
    form: Form
    settings: FetchSettings
    agent: AgentSettings
    hosts: list[HostSettings]
    limits: Limits
    per: str
    entries: list[FileEntry]  # of the fetchlist
    host_files: list[FileEntry]  # what is known of its hosts
    robots_files: list[FileEntry]
    chain: UrlChain
    protocols: tuple[FetchProtocol, ...]
    clock_offset: float  # seconds the crawl's clock is ahead of the system's
    ends_at: float | None = None  # time of day, when the round has a limit
    memory: Memory = field(default_factory=Memory)
    known_robots: dict[str, Known] = field(default_factory=dict)

    @property
    def files(self) -> Files:
        """The crawl."""
        return self.home.files


def fetch_partitions(task: FetchTask) -> pa.Table:
    """Fetch what is left of some partitions; what is to be remembered of their hosts."""
    from gossamer.stages.fetch.limits import raise_file_limit

    raise_file_limit(task.settings.connections)
    done = read_done(task.files, task.home.parts(FETCH))
    listing = read_listing(task.files, task.entries, task.partitions, done)
    task.memory = Memory(_known_hosts(task), last_requests(task.home.journals()))
    task.known_robots = _known_robots(task)
    worker = Worker(task, listing)
    stop = Stop(task.home)
    try:
        with stop.by_signal():
            _fill(worker, listing, done)
            del done
            _run(worker, stop)
        worker.close()
    except BaseException:
        worker.close(publish=False)
        raise
    states = state_of(worker)
    return states.append_column(STOPPED, pa.array([stop.wanted] * states.num_rows, pa.bool_()))


def _fill(worker: Worker, listing: Listing, done: pa.Table) -> None:
    """Queues for the rows that are left, and the redirects that were not followed when the run was interrupted."""
    now = time.monotonic()
    for key, rows in listing.queues():
        queue = worker.queue(key, rows)
        worker.postpone(queue, now)
        worker.politeness.enter(queue, now)
    worker.redirects.seen(done.column("url_fp"))
    for target, chain, domain in unfollowed(done):
        if listing.partition_of(domain) is not None:
            worker.redirects.follow(target, chain, None, now)


def _run(worker: Worker, stop: Stop) -> None:
    """Turn the loop until all is done, or time is up, or somebody wants us to stop."""
    report = Report(worker)
    watch = Watch(worker)
    deadline = float("inf")
    while not worker.finished:
        worker.step()
        now = time.monotonic()
        if now < report.next:
            continue
        report.tell(now)
        if stop.check() and not worker.draining:
            worker.draining = True
            deadline = now + DRAIN
        if worker.draining and now >= deadline:
            break
        if not worker.draining and (reason := watch.over(now)):
            leave(worker, reason)
    report.tell(time.monotonic())


def leave(worker: Worker, reason: str) -> None:
    """Give all URLs that were not tried a row that says so; what is under way ends."""
    for queue in worker.politeness.queues.values():
        worker.schedule(worker.politeness.close(queue), Outcome.UNTRIED, reason)


class Watch:
    """Whether a round has lasted long enough."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.began_with = len(worker.politeness.queues)
        self.tail_since: float | None = None

    def over(self, now: float) -> str:
        """Why the round ends, if it does."""
        worker = self.worker
        if worker.task.ends_at is not None and worker.wall + now >= worker.task.ends_at:
            return "time limit"
        if not worker.settings.tail_s or self.began_with < TAIL:
            return ""
        if worker.politeness.active() * TAIL > self.began_with:
            self.tail_since = None
        elif self.tail_since is None:
            self.tail_since = now
        elif now - self.tail_since >= worker.settings.tail_s:
            return "the last few hosts"
        return ""


class Stop:
    """Signs to stop: a signal to this process, or a file beside the journals."""

    def __init__(self, home: Home) -> None:
        self._path = Path(home.spool.url(f"{home.folder}/{STOP}"))
        self.wanted = False

    def check(self) -> bool:
        """Whether it is time to stop."""
        self.wanted = self.wanted or self._path.exists()
        return self.wanted

    @contextmanager
    def by_signal(self) -> Iterator[None]:
        """Let SIGTERM mean the same, in a process of its own."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, self._signalled)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _signalled(self, *_: object) -> None:
        self.wanted = True


class Report:
    """What this process tells the job, in a small file of its own."""

    def __init__(self, worker: Worker) -> None:
        task = worker.task
        self.worker = worker
        self.next = time.monotonic()
        self._path = Path(
            task.home.spool.url(f"{task.home.folder}/progress-{task.number:05d}-g{task.generation:03d}.json")
        )

    def tell(self, now: float) -> None:
        """Write down how far we are."""
        self.next = now + TICK
        worker, politeness = self.worker, self.worker.politeness
        active = politeness.active()
        longest = max((len(q) * q.delay for q in politeness.queues.values() if not q.closed), default=0.0)
        state: dict[str, Any] = {
            "counts": dict(worker.counts),
            "hosts": active,
            "queued": politeness.left,
            "running": worker.active,
            "longest_s": round(longest, 1),
        }
        aside = self._path.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(state))
        aside.replace(self._path)


def _known_hosts(task: FetchTask) -> dict[str, dict[str, object]]:
    rows = _read(task.files, task.host_files, task.partitions)
    key = {"host": "host", "domain": "domain", "ip": "address"}[task.per]
    return merged(rows.to_pylist(), key)


def _known_robots(task: FetchTask) -> dict[str, Known]:
    """What origins said in earlier rounds, and in this one before it was interrupted; who gave no answer then is asked again."""
    tables = [_read(task.files, task.robots_files, task.partitions)]
    names = ["origin", "body", "reachable", "error", "expires_at"]
    for path in task.home.parts(ROBOTS):
        with task.files.open(path) as stream:
            tables.append(pq.read_table(stream, columns=names, filters=[("reachable", "=", True)]))
    wall = time.time() + task.clock_offset
    known = {}
    for table in tables:
        for row in table.to_pylist():
            left = row["expires_at"].timestamp() - wall if row["expires_at"] else 0.0
            known[row["origin"]] = Known(row["body"] or b"", bool(row["reachable"]), row["error"], left)
    return known


def _read(files: Files, entries: list[FileEntry], partitions: tuple[int, ...]) -> pa.Table:
    """Rows of some partitions."""
    tables = []
    for entry in entries:
        with files.open(entry.path) as stream:
            tables.append(pq.read_table(stream, filters=[("partition", "in", list(partitions))]))
    return pa.concat_tables(tables) if tables else pa.table({})
