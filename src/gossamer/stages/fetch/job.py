"""fetch: a fetchlist → WARC files, fetch rows, what hosts and their robots.txt said, sitemaps that these name.

Partitions are shared out to processes that know nothing of each other; all that two of them could both talk to lies in one
partition. A round that is interrupted leaves its parts below `fetching/<segment>`, and the same command goes on from there.
"""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import ibis
import pyarrow as pa
import pyarrow.compute as pc

from gossamer import __version__
from gossamer.errors import SettingsError, UsageError
from gossamer.plugins.manager import fetch_protocols
from gossamer.stages.fetch import remember
from gossamer.stages.fetch.ledger import FETCH, ROBOTS, Form, Home, recover, spool_of
from gossamer.stages.fetch.origins import Manners
from gossamer.stages.fetch.politeness import Limits
from gossamer.stages.fetch.progress import Progress
from gossamer.stages.fetch.protocols import FetchProtocol
from gossamer.stages.fetch.task import STOP, STOPPED, FetchTask, fetch_partitions
from gossamer.storage.parquet import FileEntry
from gossamer.storage.snapshots import read_manifest
from gossamer.tables.statuses import Outcome
from gossamer.urls.domains import is_address

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.runner import Run

NAME = re.compile(r"[A-Za-z0-9._/-]+")
RESERVED = ("test", "example", "invalid", "localhost")  # top-level domains that nobody has
COUNTED = {
    Outcome.SUCCESS: "success",
    Outcome.NOT_MODIFIED: "not_modified",
    Outcome.REDIRECT_PERMANENT: "redirects",
    Outcome.REDIRECT_TEMPORARY: "redirects",
    Outcome.GONE: "gone",
    Outcome.GONE_FOR_GOOD: "gone",
    Outcome.FAIL: "failed",
    Outcome.ROBOTS_DENIED: "robots_denied",
    Outcome.BLOCKED_ADDRESS: "refused",
    Outcome.TOO_LARGE: "refused",
    Outcome.UNSUPPORTED: "refused",
    Outcome.FILTERED: "refused",
    Outcome.RETRY_LATER: "later",
    Outcome.UNTRIED: "untried",
}


def run(run: Run) -> None:
    """Fetch the batch of the run's segment, or what is left of it."""
    segment = run.record.segment or ""
    entries = _list_of(run, segment)
    settings = run.crawl.settings
    home = Home(run.crawl.files, spool_of(run.crawl.files, settings.engine.scratch), segment)
    _refuse_anonymous(run, segment)
    run.phase("recover")
    remember.clean(run, home)
    recover(home)
    tasks = _tasks(run, home, entries)
    run.phase("fetch")
    with _stoppable(home) as stop, Progress(run, home, tasks[0].generation, sum(e.rows for e in entries)):
        states = run.crawl.engine.run_tasks(tasks, fetch_partitions)
    if stop.is_set() or pc.any(states.column(STOPPED)).as_py():
        raise KeyboardInterrupt
    run.phase("write")
    _write(run, home, states)
    run.after.append(partial(remember.drop, home))


def _list_of(run: Run, segment: str) -> list[FileEntry]:
    """The files of the batch."""
    sets = run.snapshot.sets("fetchlist", segment)
    if not sets:
        known = sorted({s.segment for s in run.snapshot.sets("fetchlist") if s.segment})
        raise UsageError(f"there is no batch {segment}; there are {', '.join(known[-5:]) or 'none: see `generate`'}")
    if "fetch" in run.snapshot.segments.get(segment, ()):
        raise UsageError(f"batch {segment} has been fetched; apply it with `gossamer update`, then generate the next")
    run.table("fetchlist", segment=segment)  # for the record of inputs
    return [entry for s in sets for entry in read_manifest(run.crawl.files, s)]


def _refuse_anonymous(run: Run, segment: str) -> None:
    """Raise if strangers would be visited who cannot tell us of trouble."""
    settings = run.crawl.settings
    if not NAME.fullmatch(settings.agent.name):
        raise SettingsError(f"agent.name = {settings.agent.name!r}: use one word of ASCII, such as examplebot")
    for name, value in (("contact", settings.agent.contact), ("operator", settings.agent.operator)):
        if not value.isprintable() or (name == "contact" and not value.isascii()):
            raise SettingsError(f"agent.{name} = {value!r}: use one line of plain text")
    if settings.agent.contact:
        return
    manners = Manners(settings.fetch, [])
    hosts = run.table("fetchlist", segment=segment).select("host").distinct()
    for host in run.crawl.engine.collect(hosts).column("host").to_pylist():
        if host and not (is_address(host) or host.rsplit(".", 1)[-1] in RESERVED or manners.mapped(host)):
            raise SettingsError(
                f"agent.contact is not set, and {host} is a public host: set a mail or web address in gossamer.toml "
                "where its owner can tell you of trouble"
            )


def _tasks(run: Run, home: Home, entries: list[FileEntry]) -> list[FetchTask]:
    """The partitions, shared out to as many processes as there are."""
    settings, engine = run.crawl.settings, run.crawl.engine
    fetchlist = run.table("fetchlist", segment=home.segment)
    counts = fetchlist.group_by("partition").agg(urls=fetchlist.count())
    sizes = {row["partition"]: row["urls"] for row in engine.collect(counts).to_pylist()}
    groups = shared_out(sizes, len(sizes) if engine.name == "spark" else max(engine.workers, 1))
    generation = home.generation()
    known = remember.known(run, home, generation)
    limit = settings.fetch.time_limit_s
    offset = run.crawl.clock().now.timestamp() - time.time()
    per_address = max(settings.fetch.per_address // len(groups), 1) if settings.fetch.per_address else 0
    fetch = replace(settings.fetch, per_address=per_address)
    first = FetchTask(
        number=0,
        partitions=(),
        home=home,
        generation=generation,
        form=_form(run, home.segment),
        settings=fetch,
        agent=settings.agent,
        hosts=settings.host,
        limits=Limits(
            delay=fetch.delay_ms / 1000,
            connections=fetch.per_host,
            address_delay=fetch.address_delay_ms / 1000 * len(groups),
            address_connections=per_address,
            longest_wait=fetch.longest_wait_s,
            failures=fetch.host_failures,
        ),
        per=settings.generate.per,
        entries=entries,
        host_files=known[0],
        robots_files=known[1],
        chain=run.url_chain(),
        protocols=_protocols(run),
        clock_offset=offset if abs(offset) > 1 else 0.0,
        ends_at=time.time() + offset + limit if limit else None,
    )
    return [replace(first, number=number, partitions=group) for number, group in enumerate(groups)]


def shared_out(sizes: dict[int, int], most: int) -> list[tuple[int, ...]]:
    """Partitions in so many groups of about the same size, the largest first."""
    groups: list[list[int]] = [[] for _ in range(max(1, min(most, len(sizes))))]
    filled = [0] * len(groups)
    for partition in sorted(sizes, key=lambda p: (-sizes[p], p)):
        least = filled.index(min(filled))
        groups[least].append(partition)
        filled[least] += sizes[partition]
    return [tuple(group) for group in groups]


def _protocols(run: Run) -> tuple[FetchProtocol, ...]:
    """The protocols that are to be spoken."""
    wanted = run.crawl.settings.fetch.protocols
    if not wanted:
        raise SettingsError("fetch.protocols names none; name at least http or https")
    known = {scheme: p for p in fetch_protocols(run.crawl.plugins) for scheme in p.schemes}
    for scheme in wanted:
        if scheme not in known:
            raise SettingsError(f"fetch.protocols: there is no {scheme}; choose from {', '.join(sorted(known))}")
    return tuple(dict.fromkeys(known[scheme] for scheme in wanted))


def _form(run: Run, segment: str) -> Form:
    settings = run.crawl.settings
    info = {
        "software": f"Gossamer/{__version__}",
        "format": "WARC File Format 1.1",
        "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "operator": settings.agent.operator,
        "contact": settings.agent.contact,
        "robots": "RFC 9309" if settings.fetch.robots == "obey" else "ignore",
        "http-header-user-agent": settings.agent.name,
        "isPartOf": segment,
    }
    fetch = settings.fetch
    return Form(
        {name: value for name, value in info.items() if value},
        fetch.warc_mb << 20,
        fetch.warc_requests,
        run.url_chain().rules.version,
    )


@contextmanager
def _stoppable(home: Home) -> Iterator[threading.Event]:
    """The first SIGINT or SIGTERM asks the processes to end what they have begun; the next one ends everything at once."""
    asked = threading.Event()
    path = Path(home.spool.url(f"{home.folder}/{STOP}"))
    path.unlink(missing_ok=True)

    def ask(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        path.unlink(missing_ok=True)


def _write(run: Run, home: Home, states: pa.Table) -> None:
    """Make tables of the published parts."""
    engine, files = run.crawl.engine, run.crawl.files
    rows = engine.read([files.url(path) for path in home.parts(FETCH)], run.tables["fetch"].schema)
    _count(run, rows, home.segment)
    run.write("fetch", _told_via(rows), segment=home.segment)
    answers = engine.read([files.url(path) for path in home.parts(ROBOTS)], run.tables["robots"].schema)
    remember.write_robots(run, answers, home.segment)
    remember.write_hosts(run, rows, states)


def _count(run: Run, rows: ir.Table, segment: str) -> None:
    listed = sum(s.rows for s in run.snapshot.sets("fetchlist", segment))
    found = run.crawl.engine.collect(rows.group_by("outcome").agg(rows=rows.count())).to_pylist()
    counts = {row["outcome"]: row["rows"] for row in found}
    hops = rows.filter(rows.via.notnull())
    followed = run.crawl.engine.collect(hops.aggregate(n=hops.count())).column("n")[0].as_py()
    run.count(urls=listed, redirected=followed, rows=sum(counts.values()))
    for outcome, name in COUNTED.items():
        if outcome in counts:
            run.count(**{name: counts[outcome]})
    errors = rows.filter(rows.error.notnull())
    classes = errors.mutate(kind=errors.error.split(":")[0])
    for row in run.crawl.engine.collect(classes.group_by("kind").agg(rows=classes.count())).to_pylist():
        run.drop(row["kind"], row["rows"])


def _told_via(rows: ir.Table) -> ir.Table:
    """Rows whose `via` does not depend on which of several redirects was followed first."""
    redirects = rows.filter(rows.redirect_to.notnull())
    first = redirects.group_by("redirect_to").agg(first_via=redirects.url.min()).view()
    joined = rows.left_join(first, [("url", "redirect_to")])
    via = ibis.ifelse(joined.via.notnull(), ibis.coalesce(joined.first_via, joined.via), ibis.null("string"))
    return joined.mutate(via=via).select(*rows.columns)
