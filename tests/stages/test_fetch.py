"""fetch on every engine: equal tables, whole rounds, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.errors import SettingsError, UsageError
from gossamer.stages.fetch.job import shared_out
from gossamer.tables.statuses import PageKind, Status
from tests.fetch.crawling import crawl_of, later, read_warc, reopened
from tests.hostile.server import HostileServer, hostile_server
from tests.stages.crawls import content

PATHS = ("/page/1", "/page/2", "/redirect-relative/1", "/status/404", "/status/500", "/status/410", "/empty/1")


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with hostile_server() as running:
        yield running


def urls_of(server: HostileServer) -> list[str]:
    hosts = [f"h{n}.test" for n in range(6)] + ["robots-rules.test", "robots-sitemap.test", "www.h1.test"]
    return [server.url(host, path) for host in hosts for path in (*PATHS, "/denied/1")]


def round_of(crawl: Crawl) -> dict[str, pa.Table]:
    """The stable columns of what a round leaves, all applied."""
    crawl.generate()
    crawl.fetch()
    crawl.update()
    return {name: content(crawl, name) for name in ("fetch", "found", "hosts", "robots", "crawldb")}


@pytest.mark.cluster
def test_the_same_on_every_engine(engine: Any, embedded: Any, tmp_path: Path, server: HostileServer) -> None:
    now = Clock.system()
    found = []
    for name, chosen in (("here", engine), ("embedded", embedded)):
        (tmp_path / name).mkdir()
        crawl = crawl_of(tmp_path / name, chosen, urls_of(server))
        crawl.clock = lambda: now
        found.append(round_of(crawl))
    for name, table in found[0].items():
        assert table.equals(found[1][name]), name
    assert found[0]["fetch"].num_rows > len(urls_of(server))  # redirects have been followed
    assert found[0]["robots"].num_rows == 9


def test_sitemaps_of_robots_txt_become_entries(embedded: Any, tmp_path: Path, server: HostileServer) -> None:
    crawl = crawl_of(tmp_path, embedded, [server.url("robots-sitemap.test", "/page/1")])
    tables = round_of(crawl)
    named = tables["found"].to_pylist()
    assert named
    known = {row["url"]: row for row in crawl.engine.collect(crawl.table("crawldb")).to_pylist()}
    for row in named:
        assert known[row["url"]]["kind"] == row["kind"] in (PageKind.SITEMAP, PageKind.FEED)
        assert known[row["url"]]["status"] == Status.UNFETCHED
        assert row["via"].endswith("/robots.txt")


def test_a_second_round_asks_only_for_what_is_due(embedded: Any, tmp_path: Path, server: HostileServer) -> None:
    crawl = crawl_of(tmp_path, embedded, [server.url("again.test", "/page/1"), server.url("again.test", "/status/500")])
    first = list(crawl.rounds(2))
    assert [(r.round, r.urls, r.fetched, r.failed) for r in first] == [(1, 2, 1, 1)]  # nothing else is due
    asked = len(server.requests)
    (second,) = later(crawl, hours=2).rounds(1)
    assert (second.urls, second.failed) == (1, 1)
    assert [r.target for r in server.requests[asked:]] == ["/status/500"]  # robots.txt still holds


def test_revisits_name_the_record_that_has_the_payload(embedded: Any, tmp_path: Path, server: HostileServer) -> None:
    crawl = crawl_of(tmp_path, embedded, [server.url("same.test", "/page/1")])
    for day in range(3):  # fetched, the same, and the same again
        (_,) = later(crawl, days=100 * day).rounds(1)
    records = [record for path in sorted(tmp_path.glob("crawl/segments/*/warc/*")) for record in read_warc(path)]
    found = [(r.type, r.headers) for r in records if r.url.endswith("/page/1") and r.type != "request"]
    assert [kind for kind, _ in found] == ["response", "revisit", "revisit"]
    assert {headers["WARC-Refers-To-Date"] for _, headers in found[1:]} == {found[0][1]["WARC-Date"]}


def test_interrupted_rounds_are_finished_and_not_repeated(embedded: Any, tmp_path: Path, server: HostileServer) -> None:
    crawl = crawl_of(tmp_path, embedded, [server.url(f"r{n}.test", "/page/1") for n in range(4)])
    rounds = crawl.rounds(2, top=2)
    assert next(rounds).round == 1
    (batch,) = crawl.generate(top=2)
    crawl.fetch(batch)  # and here it was killed
    left = list(reopened(crawl).rounds(2, top=2))
    assert [(r.round, r.segment) for r in left] == [(2, batch)]
    assert list(reopened(crawl).rounds(2, top=2)) == []


def test_public_hosts_are_not_fetched_without_a_contact(embedded: Any, tmp_path: Path) -> None:
    crawl = crawl_of(tmp_path, embedded, ["https://www.example.com/"])
    crawl.generate()
    with pytest.raises(SettingsError, match=r"agent\.contact is not set, and www\.example\.com is a public host"):
        crawl.fetch()


@pytest.mark.parametrize("name", ["", "two words", "a\nb"])
def test_an_agent_has_one_word_for_a_name(embedded: Any, tmp_path: Path, name: str) -> None:
    crawl = crawl_of(tmp_path, embedded, ["http://a.test/"])
    crawl.generate()
    with pytest.raises(SettingsError, match=r"agent\.name"):
        reopened(crawl, {"agent.name": name}).fetch()


def test_only_batches_that_wait_are_fetched(embedded: Any, tmp_path: Path, server: HostileServer) -> None:
    crawl = crawl_of(tmp_path, embedded, [server.url("a.test", "/page/1")])
    assert crawl.fetch() is None
    with pytest.raises(UsageError, match="there is no batch r000009-1"):
        crawl.fetch("r000009-1")
    (batch,) = crawl.generate()
    crawl.fetch()
    with pytest.raises(UsageError, match="has been fetched"):
        crawl.fetch(batch)


def test_unknown_protocols_are_refused(embedded: Any, tmp_path: Path) -> None:
    crawl = crawl_of(tmp_path, embedded, ["http://a.test/"])
    crawl.generate()
    with pytest.raises(SettingsError, match=r"fetch\.protocols: there is no gopher; choose from file, http, https"):
        reopened(crawl, {"fetch.protocols": ["http", "gopher"]}).fetch()


def test_partitions_are_shared_out_evenly() -> None:
    assert shared_out({0: 10, 1: 7, 2: 3, 3: 1}, 2) == [(0, 3), (1, 2)]
    assert shared_out({5: 1}, 8) == [(5,)]
