"""robots.txt in all its forms: what is fetched by it, what rows and the robots table say, and for how long it holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.tables.statuses import PageKind
from tests.fetch.crawling import Round, crawl_of, fetch_round, later, table
from tests.hostile.behaviours.robots import RULES
from tests.hostile.server import ROBOTS_OF, HostileServer, hostile_server
from tests.stages.crawls import seed_rows, write_rows

PATHS = ("/page/1", "/denied/x", "/late/?s=0")
DAY = 86_400
ALLOWED = ("SUCCESS", "GONE", "SUCCESS")  # the server has no page of the second
BY_RULES = ("SUCCESS", "ROBOTS_DENIED", "SUCCESS")
DENIED = ("ROBOTS_DENIED",) * 3
LATER = ("RETRY_LATER",) * 3  # it answered, and that is not now
FAILED = ("FAIL",) * 3  # it did not
WANTED = {
    BY_RULES: """
        rules nul bom utf-16 cr crlf sitemap wildcards huge gzip redirects-1 redirects-5
        600k long-line""",  # cut at 500 KiB, at a line end: what comes after is not read. UTF-16 is read as what it is.
    ALLOWED: """
        empty 400 401 403 404 410 204 binary html delay delay-words gzip-bomb loop redirect-file redirects-6""",
    DENIED: "denied",
    LATER: "429 500 502 503 stall-body short redirect-address",  # half a file may lack the rule that forbids
    FAILED: "stall reset close malformed",
    ("RETRY_LATER",) * 3 + ("delay",): "delay-huge",
}
EXPECTED = {f"robots-{name}": want[:3] for want, names in WANTED.items() for name in names.split()}
MORE = {
    "feeds.test": b"Sitemap: /blog/feed.xml\nSitemap: /sitemap-feed.xml\nSitemap: https://other.test/sitemap.xml\n"
    + RULES
}


class Crawled(NamedTuple):
    server: HostileServer
    crawl: Crawl
    rounds: list[Round]
    asked: list[dict[str, int]]  # after each round, how often each host was asked for robots.txt
    robots: dict[str, dict[str, Any]]  # by origin, at the end

    def outcomes(self, name: str, paths: tuple[str, ...] = PATHS, number: int = 0) -> tuple[str, ...]:
        return tuple(self.rounds[number].outcome(self.server.url(f"{name}.test", path)) for path in paths)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, inline: Engine) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("robots")
    with hostile_server(robots=MORE) as server:
        hosts = [f"{name}.test" for name in ROBOTS_OF] + list(MORE)
        crawl = crawl_of(folder, inline, [server.url(host, path) for host in hosts for path in PATHS])
        rounds, asked = [fetch_round(crawl)], [count(server, hosts)]
        crawl.update()
        for number, hours in ((2, 0.5), (3, 25.0)):
            urls = [server.url(host, f"/page/{number}") for host in hosts if not host.startswith("robots-delay")]
            crawl.load("crawldb", write_rows(folder / f"more-{number}.parquet", seed_rows(urls)))
            rounds.append(fetch_round(later(crawl, hours=hours)))
            asked.append(count(server, hosts))
            crawl.update()
        yield Crawled(server, crawl, rounds, asked, {row["origin"]: row for row in table(crawl, "robots")})


def count(server: HostileServer, hosts: list[str]) -> dict[str, int]:
    return {host: server.targets(host).count("/robots.txt") for host in hosts}


def test_every_host_is_expected_to_do_something():
    assert EXPECTED.keys() == ROBOTS_OF.keys()


@pytest.mark.parametrize("name", ROBOTS_OF)
def test_what_is_fetched(crawled: Crawled, name: str):
    assert crawled.outcomes(name) == EXPECTED[name]
    fetched = {path for path in PATHS if path in crawled.server.targets(f"{name}.test")}
    first_round = {p for p, o in zip(PATHS, EXPECTED[name], strict=True) if o in ("SUCCESS", "GONE")}
    assert fetched >= first_round
    assert "/denied/x" not in fetched or "/denied/x" in first_round or EXPECTED[name] in (LATER, FAILED)


@pytest.mark.parametrize("name", [name for name, want in EXPECTED.items() if want in (BY_RULES, DENIED)])
def test_rows_say_which_line_decided(crawled: Crawled, name: str):
    row = crawled.rounds[0].rows[crawled.server.url(f"{name}.test", "/denied/x")]
    number, _, line = row["robots_line"].partition(": ")
    assert int(number) > 0
    assert line == ("Disallow: /" if name == "robots-denied" else "Disallow: /denied/")
    assert row["warc_file"] is None


@pytest.mark.parametrize("name", [name for name, want in EXPECTED.items() if want in (LATER, FAILED)])
def test_rows_say_why_nothing_was_fetched(crawled: Crawled, name: str):
    if name == "robots-delay-huge":
        return
    for path in PATHS:
        row = crawled.rounds[0].rows[crawled.server.url(f"{name}.test", path)]
        assert row["error"].startswith("robots.txt: ")
        assert row["retry_after_s"] == (3600 if EXPECTED[name] == LATER else None)
    assert crawled.server.targets(f"{name}.test")[0] == "/robots.txt"


@pytest.mark.parametrize("name", ROBOTS_OF)
def test_the_table_remembers(crawled: Crawled, name: str):
    row = crawled.robots[crawled.server.url(f"{name}.test", "")]
    unreachable = EXPECTED[name] in (LATER, FAILED) and name != "robots-delay-huge"
    assert row["reachable"] == (not unreachable)
    assert (row["expires_at"] - row["updated_at"]).total_seconds() == pytest.approx(3600 if unreachable else DAY, abs=1)
    if unreachable:
        assert row["error"].startswith("robots.txt: ")
    elif EXPECTED[name] == BY_RULES:
        assert row["body"]
        assert len(row["body"]) <= 512_000


def test_files_are_archived(crawled: Crawled):
    urls = {record.url for record in crawled.rounds[0].records(kind="response")}
    for name, want in EXPECTED.items():
        answered = want != FAILED
        assert (crawled.server.url(f"{name}.test", "/robots.txt") in urls) == answered, name
    (packed,) = crawled.rounds[0].records(crawled.server.url("robots-gzip.test", "/robots.txt"), "response")
    assert packed.http["content-encoding"] == "gzip"
    assert packed.body[:2] == b"\x1f\x8b"
    assert not [url for url in crawled.rounds[0].rows if url.endswith("/robots.txt")]


def test_a_file_holds_for_a_day(crawled: Crawled):
    """Those that could not be had are asked for again after an hour, the others after a day; half an hour is too early for both."""
    first, second, third = crawled.asked
    assert second == first
    again = {host for host, times in third.items() if times > first[host]}
    assert again >= {host for host in first if not host.startswith("robots-delay")}


def test_the_second_round_obeys_what_was_said(crawled: Crawled):
    for name, want in EXPECTED.items():
        if name.startswith("robots-delay"):
            continue
        expected = "SUCCESS" if want in (ALLOWED, BY_RULES) else "ROBOTS_DENIED" if want == DENIED else "RETRY_LATER"
        assert crawled.outcomes(name, ("/page/2",), 1) == (expected,), name


def test_sitemaps_are_found(crawled: Crawled):
    server = crawled.server
    found = {row["url"]: row for row in table(crawled.crawl, "found", segment=crawled.rounds[0].segment)}
    home, feeds = server.url("robots-sitemap.test", ""), server.url("feeds.test", "")
    wanted = {
        f"{home}/sitemap.xml": (PageKind.SITEMAP, f"{home}/robots.txt"),
        "http://127.0.0.1/sitemap.xml": (PageKind.SITEMAP, f"{home}/robots.txt"),
        f"{feeds}/blog/feed.xml": (PageKind.FEED, f"{feeds}/robots.txt"),
        f"{feeds}/sitemap-feed.xml": (PageKind.SITEMAP, f"{feeds}/robots.txt"),
        "https://other.test/sitemap.xml": (PageKind.SITEMAP, f"{feeds}/robots.txt"),
    }
    assert {url: (PageKind(row["kind"]), row["via"]) for url, row in found.items()} == wanted
    known = {row["url"]: row["kind"] for row in table(crawled.crawl, "crawldb") if row["url"] in wanted}
    assert known == {url: kind for url, (kind, _) in wanted.items()}


def test_a_crawl_delay_is_kept(crawled: Crawled):
    times = [seen.time for seen in crawled.server.requests if seen.host.startswith("robots-delay.test")]
    assert len(times) >= 4
    assert min(after - before for before, after in pairwise(times)) > 1.95
    hosts = {row["host"]: row for row in table(crawled.crawl, "hosts")}
    assert hosts["robots-delay.test"]["crawl_delay_ms"] == 2000
    assert hosts["robots-rules.test"]["crawl_delay_ms"] is None


def test_a_crawl_delay_beyond_all_measure_leaves_the_host_for_later(crawled: Crawled):
    rows = [crawled.rounds[0].rows[crawled.server.url("robots-delay-huge.test", path)] for path in PATHS]
    assert all(0 < row["retry_after_s"] <= 7 * DAY for row in rows)
    assert crawled.server.targets("robots-delay-huge.test") == ["/robots.txt"]
