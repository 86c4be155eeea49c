"""What hostile hosts cost the others: the good hosts of a round, alone and beside servers that stall, drip, bomb and never end.

Good pages come from nginx, bad ones from the tests' hostile server in a process of its own, names from their name server.
Wall time is that of the last good page; the servers share the machine's cores with us, and bad ones take much of them, so
what counts is the CPU time of the fetching process until it has the last good page: it bounds how many pages a core can fetch.
`python -m benchmarks hostile [HOSTS [PAGES [ROUNDS]]]`.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks.report import table
from gossamer.engine.embedded import EmbeddedEngine
from gossamer.stages.fetch.worker import Worker
from tests.fetch.crawling import crawl_of
from tests.fetch.nginx import NGINX, nginx
from tests.hostile.behaviours.base import page
from tests.hostile.dns import NEVER, NXDOMAIN, SERVER_FAILS, at, dns_server
from tests.hostile.server import hostile_server
from tests.servers import free_port

SHARE = 0.1  # of the hosts
KINDS = {  # what bad hosts do, and how many of their URLs are asked for
    "stall": 5, "stall-in-headers": 5, "stall-in-body": 5, "drip?s=0.2": 5, "drip-headers?s=0.2": 5, "drip-chunks?s=0.2": 5,
    "endless": 2, "headers-endless": 5, "endless-100": 5, "tiny-chunks": 2, "gzip-bomb": 2, "reset": 5,
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "fetch.connect_to": {},
    "fetch.allow_networks": ["127.0.0.0/8"],
    "fetch.per_address": 0,
    "fetch.delay_ms": 100,
    "fetch.connect_timeout_s": 2.0,
    "fetch.read_timeout_s": 2.0,
    "fetch.deadline_s": 5.0,
    "fetch.max_bytes": 1 << 20,
}
ZONE = {
    "*.good.test": at("127.0.0.1"),
    "*.bad.test": at("127.0.0.1"),
    "*.never.test": NEVER,
    "*.servfail.test": SERVER_FAILS,
    "*.missing.test": NXDOMAIN,
}
SITE = """
server {{ listen 127.0.0.1:{port} backlog=4096; root {folder}/www;
  location = /robots.txt {{ return 404; }} location / {{ rewrite .* /page break; }} }}
"""


def serve(pipe: Connection) -> None:
    """The bad servers, until somebody says something."""
    with hostile_server() as web, dns_server(ZONE) as names:
        pipe.send((web.port, names.server))
        pipe.recv()


@contextmanager
def bad_servers() -> Iterator[tuple[int, str]]:
    """Port of the hostile server, and the address of the name server."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    yield ours.recv()
    ours.send("enough")
    process.join(20)


def good_urls(port: int, hosts: int, pages: int) -> list[str]:
    return [f"http://h{h}.good.test:{port}/p{n}" for h in range(hosts) for n in range(pages)]


def bad_urls(port: int, hosts: int) -> list[str]:
    """Each bad host does one bad thing, a few times."""
    kinds = list(KINDS.items())
    found = []
    for host in range(hosts):
        kind, count = kinds[host % len(kinds)]
        name, _, query = kind.partition("?")
        found += [f"http://b{host}.bad.test:{port}/{name}/{n}?{query}".rstrip("?") for n in range(count)]
    return found


def dead_urls(hosts: int) -> list[str]:
    """Hosts whose names lead nowhere, a third of them after silence."""
    kinds = ("never", "servfail", "missing")
    return [f"http://d{host}.{kinds[host % 3]}.test/p{n}" for host in range(hosts) for n in range(5)]


class Taken(NamedTuple):
    """What a round took."""

    last: float  # seconds to the last good page
    cpu: float  # seconds of the process that fetches, until then
    whole: float  # seconds in all


@contextmanager
def good_pages_watched() -> Iterator[list[float]]:
    """CPU seconds of this process at the beginning, and whenever a good page has its row."""
    decided, spent = Worker.decided, [time.process_time()]

    def watched(self: Worker, visit: Any, row: Any) -> None:
        decided(self, visit, row)
        if ".good.test" in row.url:
            spent.append(time.process_time())

    with patch.object(Worker, "decided", watched):
        yield spent


def run(urls: list[str], names: str) -> Taken:
    """Fetch, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        engine = EmbeddedEngine(workers=0, scratch=folder)
        crawl = crawl_of(Path(folder), engine, urls, {**SETTINGS, "fetch.dns_servers": [names]})
        (segment,) = crawl.generate(top=len(urls))
        began = time.perf_counter()
        with good_pages_watched() as spent:
            crawl.fetch(segment)
        cpu, whole = spent[-1] - spent[0], time.perf_counter() - began
        columns = ("url", "http_code", "started_at", "fetched_at")
        rows = engine.collect(crawl.table("fetch", segment=segment).select(*columns)).to_pylist()
        engine.close()
    good = [row for row in rows if ".good.test" in row["url"]]
    assert all(row["http_code"] == 200 for row in good), [row for row in good if row["http_code"] != 200][:3]
    last = max(row["fetched_at"] for row in good) - min(row["started_at"] for row in good)
    return Taken(last.total_seconds(), cpu, whole)


def main(arguments: list[str]) -> None:
    hosts, pages, rounds = (*map(int, arguments), *(1000, 20, 3)[len(arguments) :])
    if NGINX is None:
        print("nginx is not installed: nothing to measure")
        return
    few = int(hosts * SHARE)
    with tempfile.TemporaryDirectory() as folder, bad_servers() as (bad_port, names):
        (Path(folder) / "www").mkdir()
        (Path(folder) / "www" / "page").write_bytes(page("Good"))
        port = free_port()
        with nginx(Path(folder), SITE.format(port=port, folder=folder), port):
            good = good_urls(port, hosts - few, pages)
            cases = {
                f"{hosts - few} good hosts alone": good,
                f"and {few} hostile ones": good + bad_urls(bad_port, few),
                f"and {few} names that lead nowhere": good + dead_urls(few),
            }
            taken: dict[str, list[Taken]] = {name: [] for name in cases}
            for _ in range(rounds):
                for name, urls in cases.items():
                    taken[name].append(run(urls, names))
    middle = {name: Taken(*(median(column) for column in zip(*found, strict=True))) for name, found in taken.items()}
    base = next(iter(middle.values()))
    rows = [
        [
            name, f"{m.cpu:.2f}", f"{m.cpu / base.cpu:.3f}", f"{len(good) / m.cpu:,.0f}", f"{m.last:.1f}",
            f"{min(t.last for t in taken[name]):.1f} to {max(t.last for t in taken[name]):.1f}", f"{m.whole:.1f}",
        ]
        for name, m in middle.items()
    ]  # fmt: skip
    head = ("hosts", "CPU, s", "ratio", "good pages per CPU s", "last good page, s", "from … to", "whole round, s")
    table(f"What hostile hosts cost the others, {len(good):,} good pages, median of {rounds}", head, rows)
