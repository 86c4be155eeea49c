"""Redirects: each hop has a row, those within the partition are followed with all manners, others are for later rounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote

import pytest

from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from tests.fetch.crawling import Round, crawl_of, fetch_round, table
from tests.hostile.server import HostileServer, hostile_server

ROBOTS = {
    "www.closed.test": b"User-agent: *\nDisallow: /page\n",
    "www.slow.test": b"User-agent: *\nCrawl-delay: 0.5\n",
}
CODES = {301: "PERMANENT", 302: "TEMPORARY", 303: "TEMPORARY", 307: "TEMPORARY", 308: "PERMANENT"}
KEY = {"pattern": "secret.test", "headers": {"X-Api-Key": "s3cret", "Cookie": "mine=1"}}
SLACK_S = 0.1  # until the server has noticed that a connection is closed


class Crawled(NamedTuple):
    server: HostileServer
    crawl: Crawl
    round: Round

    def lead(self, host: str, to: str, code: int = 302) -> str:
        return lead(self.server, host, to, code)


def lead(server: HostileServer, host: str, to: str, code: int = 302) -> str:
    """A URL that redirects, in the spelling of our normalisers."""
    return server.url(host, f"/redirect?code={code}&to={quote(to, safe='')}")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, inline: Engine) -> Iterator[Crawled]:
    with hostile_server(robots=ROBOTS) as server:
        url = server.url
        urls = [
            *(lead(server, f"code{code}.test", "/page/1", code) for code in CODES),
            lead(server, "bare.test", url("www.bare.test", "/page/1")),
            lead(server, "www.dressed.test", url("dressed.test", "/page/1"), 301),
            lead(server, "closed.test", url("www.closed.test", "/page/1")),
            *(lead(server, "slow.test", url("www.slow.test", f"/page/{n}")) for n in range(3)),
            lead(server, "away.test", url("elsewhere.test", "/page/1"), 301),
            lead(server, "secret.test", url("www.secret.test", "/echo")),
            lead(server, "password.test", f"http://user:pass@www.password.test:{server.port}/echo"),
            lead(server, "twice.test", "/page/1"), lead(server, "twice.test", "/page/1", 301),
            lead(server, "listed.test", "/page/1"), url("listed.test", "/page/1"),
            url("biscuit.test", "/cookie"), url("biscuit.test", f"/cookie-redirect?to={quote(url('www.biscuit.test', '/echo'), safe='')}"),
            url("biscuit.test", "/echo"),
            *(lead(server, "both.test", url("both.test", f"/page/{n}", tls=True)) for n in range(4)),
            *(url("both.test", f"/page/{n}", tls=tls) for n in (10, 11) for tls in (False, True)),
        ]  # fmt: skip
        crawl = crawl_of(
            tmp_path_factory.mktemp("redirects"), inline, urls, {"fetch.ca_file": str(server.ca), "host": [KEY]}
        )
        found = fetch_round(crawl)
        crawl.update()
        yield Crawled(server, crawl, found)


@pytest.mark.parametrize("code", CODES)
def test_permanent_and_temporary_are_told_apart(crawled: Crawled, code: int):
    url, target = crawled.lead(f"code{code}.test", "/page/1", code), crawled.server.url(f"code{code}.test", "/page/1")
    row = crawled.round.rows[url]
    assert crawled.round.outcome(url) == f"REDIRECT_{CODES[code]}"
    assert (row["http_code"], row["redirect_to"], row["via"]) == (code, target, None)
    assert crawled.round.outcome(target) == "SUCCESS"
    assert crawled.round.rows[target]["via"] == url
    assert {r.type for r in crawled.round.records(target)} == {"response", "request", "metadata"}


@pytest.mark.parametrize(("host", "to"), [("bare.test", "www.bare.test"), ("www.dressed.test", "dressed.test")])
def test_www_is_followed_and_its_robots_asked(crawled: Crawled, host: str, to: str):
    assert crawled.server.targets(to) == ["/robots.txt", "/page/1"]
    assert crawled.round.rows[crawled.server.url(to, "/page/1")]["via"].startswith(
        crawled.server.url(host, "/redirect")
    )


def test_robots_of_the_target_are_obeyed(crawled: Crawled):
    target = crawled.server.url("www.closed.test", "/page/1")
    assert crawled.round.outcome(target) == "ROBOTS_DENIED"
    assert crawled.round.rows[target]["robots_line"] == "2: Disallow: /page"
    assert crawled.server.targets("www.closed.test") == ["/robots.txt"]


def test_the_delay_of_the_target_is_kept(crawled: Crawled):
    times = [seen.time for seen in crawled.server.requests if seen.host.startswith("www.slow.test")]
    assert len(times) == 4
    assert min(after - before for before, after in pairwise(times)) > 0.48


def test_other_domains_are_entered_by_update(crawled: Crawled):
    target = crawled.server.url("elsewhere.test", "/page/1")
    assert crawled.round.rows[crawled.lead("away.test", target, 301)]["redirect_to"] == target
    assert target not in crawled.round.rows
    assert crawled.server.targets("elsewhere.test") == []
    assert target in {row["url"] for row in table(crawled.crawl, "crawldb")}


def test_headers_of_a_host_go_to_no_other(crawled: Crawled):
    seen: dict[str, list[dict[str, str]]] = {}
    for each in crawled.server.requests:
        seen.setdefault(each.host.partition(":")[0], []).append(dict(each.headers))
    assert all(headers["x-api-key"] == "s3cret" for headers in seen["secret.test"])
    assert not [host for host, sent in seen.items() if host != "secret.test" and any("x-api-key" in h for h in sent)]
    assert not [host for host, sent in seen.items() if host != "secret.test" and any("cookie" in h for h in sent)]
    echo = crawled.round.record(crawled.server.url("www.secret.test", "/echo"))
    assert "s3cret" not in echo.body.decode()


def test_the_archive_shows_what_was_sent(crawled: Crawled):
    request = next(
        r for r in crawled.round.records(kind="request") if r.url == crawled.server.url("secret.test", "/robots.txt")
    )
    assert request.http["x-api-key"] == "s3cret"
    sent = next(dict(s.headers) for s in crawled.server.requests if s.host.startswith("secret.test"))
    assert {name: value for name, value in request.http.items() if name in sent} == sent


def test_passwords_are_dropped(crawled: Crawled):
    target = crawled.server.url("www.password.test", "/echo")
    told = json.loads(crawled.round.record(target).body)
    assert "authorization" not in dict(told["headers"])
    assert not [row for row in crawled.round.rows.values() if "pass@" in (row["redirect_to"] or "")]


def test_a_target_is_fetched_once(crawled: Crawled):
    assert crawled.server.targets("twice.test").count("/page/1") == 1
    assert crawled.server.targets("listed.test").count("/page/1") == 1
    assert crawled.round.rows[crawled.server.url("listed.test", "/page/1")]["via"] is None
    first = min(crawled.lead("twice.test", "/page/1", code) for code in (301, 302))
    assert crawled.round.rows[crawled.server.url("twice.test", "/page/1")]["via"] == first


def test_a_host_has_one_connection_whatever_the_scheme(crawled: Crawled):
    numbers = {seen.connection for seen in crawled.server.requests if seen.host.startswith("both.test")}
    used = sorted((c for c in crawled.server.connections if c.number in numbers), key=lambda c: c.opened)
    assert {c.tls for c in used} == {False, True}
    for before, after in pairwise(used):
        assert before.closed is not None
        assert before.closed <= after.opened + SLACK_S
    assert {crawled.round.outcome(crawled.server.url("both.test", f"/page/{n}", tls=True)) for n in range(4)} == {
        "SUCCESS"
    }
