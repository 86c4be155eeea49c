"""Manners: hosts that ask to be left alone are, each has the pace and the limits that are set for it, none is asked twice for the same page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.storage.warc import payload_digest
from gossamer.tables.statuses import Status
from tests.fetch.crawling import Round, crawl_of, fetch_round, fetched, later, table
from tests.fetch.proxy import Proxy, proxy
from tests.hostile.behaviours.base import page
from tests.hostile.behaviours.plain import ETAG, MODIFIED
from tests.hostile.server import HostileServer, Seen, hostile_server
from tests.stages.crawls import seed_rows, write_rows

ROBOTS = {"patient.test": b"User-agent: *\nCrawl-delay: 60\n"}
BEFORE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REVISIT = "http://netpreserve.org/warc/1.1/revisit"


class Crawled(NamedTuple):
    server: HostileServer
    proxy: Proxy
    crawl: Crawl
    round: Round

    def rows(self, host: str) -> list[dict]:
        """The rows of a host, those that were asked for first in order."""
        found = [row for url, row in self.round.rows.items() if url.split("/")[2].partition(":")[0] == host]
        return sorted(found, key=lambda row: row["started_at"] or datetime.max.replace(tzinfo=UTC))

    def seen(self, host: str) -> list[Seen]:
        return [seen for seen in self.server.requests if seen.host.partition(":")[0] == host]

    def gaps(self, host: str) -> list[float]:
        times = [seen.time for seen in self.seen(host)]
        return [after - before for before, after in pairwise(times)]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, inline: Engine) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("manners")
    with hostile_server(robots=ROBOTS) as server, proxy() as through:
        url = server.url
        had = {
            url("had.test", "/validators"): ETAG,
            url("same.test", "/page/1"): None,
            url("other.test", "/page/1"): None,
        }
        urls = [
            *(url("busy.test", f"/retry-429-seconds/{n}?s=120") for n in range(4)),
            *(url("brief.test", f"/retry-503-seconds/{n}?s=1") for n in range(2)),
            *(url("dead.test", f"/status/500/{n}") for n in range(6)),
            *(url("silent.test", f"/close/{n}") for n in range(6)),
            *(url("patient.test", f"/page/{n}") for n in range(3)),
            *(url("slow.test", f"/page/{n}") for n in range(3)),
            *(url("wide.test", f"/late/{n}?s=0.5") for n in range(3)),
            *(url("capped.test", f"/page/{n}") for n in range(5)),
            *(url("via.example", f"/page/{n}") for n in range(2)),
            *(url("via-tls.example", f"/page/{n}", tls=True) for n in range(2)),
            *(url(f"{host}.test", "/page/1", tls=True) for host in ("tls-good", "tls-expired", "tls-stranger")),
            url("plain.test", "/coding-x-gzip"), url("plain.test", "/br-cut"), url("plain.test", "/until-close"),
        ]  # fmt: skip
        manners = [
            {"pattern": "slow.test", "delay_ms": 300},
            {"pattern": "wide.test", "connections": 3},
            {"pattern": "capped.test", "cap": 3},
            {"pattern": "via*.example", "proxy": f"http://127.0.0.1:{through.port}"},
        ]
        settings = {
            "host": manners,
            "fetch.host_failures": 3,
            "fetch.longest_wait_s": 1.5,
            "fetch.ca_file": str(server.ca),
        }
        crawl = crawl_of(folder, inline, urls, settings)
        digests = [payload_digest(page("Seldom changed")), payload_digest(linked("same.test")), "OTHER"]
        rows = seed_rows(
            list(had), status=[int(Status.FETCHED)] * 3, etag=list(had.values()), payload_digest=digests,
            fetched_at=[BEFORE] * 3, modified_at=[BEFORE] * 3, last_modified=[MODIFIED, None, None],
        )  # fmt: skip
        crawl.load("crawldb", write_rows(folder / "had.parquet", rows))
        found = fetch_round(crawl)
        yield Crawled(server, through, crawl, found)


def linked(host: str) -> bytes:
    """What `/page/1` of a host is."""
    return page(f"Page 1 of {host}", links=("/page/2", "/page/3"))


def test_a_host_that_asks_for_long_is_left_for_another_round(crawled: Crawled):
    first, *others = crawled.rows("busy.test")
    assert (first["http_code"], first["retry_after_s"], first["error"]) == (429, 120, "http 429")
    assert len(crawled.seen("busy.test")) == 2  # robots.txt and one page
    for row in others:
        assert crawled.round.outcome(row["url"]) == "RETRY_LATER"
        assert 119 <= row["retry_after_s"] <= 121
        assert "wants" in row["error"]


def test_a_host_that_asks_for_a_moment_gets_it(crawled: Crawled):
    assert [row["http_code"] for row in crawled.rows("brief.test")] == [503, 503]
    assert crawled.gaps("brief.test")[1] >= 1.0


@pytest.mark.parametrize("host", ["dead.test", "silent.test"])
def test_a_host_that_fails_is_given_up(crawled: Crawled, host: str):
    outcomes = [crawled.round.outcome(row["url"]) for row in crawled.rows(host)]
    assert sorted(outcomes) == ["FAIL"] * 3 + ["RETRY_LATER"] * 3
    left = [row for row in crawled.rows(host) if row["started_at"] is None]
    assert {row["error"] for row in left} == {"host: failed 3 times in a row"}
    assert all(1800 <= row["retry_after_s"] <= 5401 for row in left)
    (known,) = (row for row in table(crawled.crawl, "hosts") if row["host"] == host)
    assert known["failures"] == 3
    assert known["given_up_until"] is not None
    assert known["last_error"]


def test_failures_slow_us_down(crawled: Crawled):
    _, second, third = crawled.gaps("dead.test")
    assert second > 0.02
    assert third > second


def test_a_long_crawl_delay_leaves_the_rest_spread_out(crawled: Crawled):
    rows = crawled.rows("patient.test")
    assert len(crawled.seen("patient.test")) == 1  # robots.txt alone: the next request may be sent in a minute
    assert sorted(round(row["retry_after_s"] / 60) for row in rows) == [1, 2, 3]
    assert {crawled.round.outcome(row["url"]) for row in rows} == {"RETRY_LATER"}


def test_the_delay_of_a_host(crawled: Crawled):
    assert len(crawled.gaps("slow.test")) == 3
    assert min(crawled.gaps("slow.test")) >= 0.29


def test_the_connections_of_a_host(crawled: Crawled):
    robots, *pages = crawled.seen("wide.test")
    assert robots.target == "/robots.txt"
    assert len({seen.connection for seen in pages}) == 3
    assert max(seen.time for seen in pages) - min(seen.time for seen in pages) < 0.4


def test_the_cap_of_a_host(crawled: Crawled):
    rows = crawled.rows("capped.test")
    assert len(crawled.seen("capped.test")) == 3
    assert [crawled.round.outcome(row["url"]) for row in rows] == ["SUCCESS"] * 2 + ["UNTRIED"] * 3
    assert rows[-1]["error"] == "cap: 3 requests"


def test_proxies(crawled: Crawled):
    """Plain requests in absolute form, those over TLS through a tunnel, whose answer is not taken for the server's."""
    port, tls_port = crawled.server.port, crawled.server.tls_port
    assert f"GET http://via.example:{port}/page/1" in crawled.proxy.lines
    assert f"CONNECT via-tls.example:{tls_port}" in crawled.proxy.lines
    for host in ("via.example", "via-tls.example"):
        assert [crawled.round.outcome(row["url"]) for row in crawled.rows(host)] == ["SUCCESS"] * 2
        record = crawled.round.record(crawled.rows(host)[0]["url"])
        assert "x-proxy" not in record.http
        assert len(record.body) == 19_000
    assert not [line for line in crawled.proxy.lines if ".test" in line]


def test_not_modified(crawled: Crawled):
    url = crawled.server.url("had.test", "/validators")
    asked = dict(crawled.seen("had.test")[-1].headers)
    assert (asked["if-none-match"], asked["if-modified-since"]) == (ETAG, MODIFIED)
    assert crawled.round.outcome(url) == "NOT_MODIFIED"
    record = crawled.round.record(url)
    assert record.headers["WARC-Profile"] == f"{REVISIT}/server-not-modified"
    assert record.headers["WARC-Refers-To-Date"].startswith("2026-01-02T03:04:05")
    assert record.headers["WARC-Refers-To-Target-URI"] == url
    assert record.body == b""


def test_the_same_payload(crawled: Crawled):
    url = crawled.server.url("same.test", "/page/1")
    assert crawled.round.outcome(url) == "NOT_MODIFIED"
    assert crawled.round.rows[url]["http_code"] == 200
    record = crawled.round.record(url)
    assert record.headers["WARC-Profile"] == f"{REVISIT}/identical-payload-digest"
    assert record.headers["WARC-Payload-Digest"] == f"sha1:{payload_digest(linked('same.test'))}"
    assert crawled.round.outcome(crawled.server.url("other.test", "/page/1")) == "SUCCESS"


def test_certificates_are_required(crawled: Crawled):
    good, expired, stranger = (
        crawled.server.url(f"tls-{n}.test", "/page/1", tls=True) for n in ("good", "expired", "stranger")
    )
    assert crawled.round.outcome(good) == "SUCCESS"
    assert crawled.round.rows[good]["tls"] == "verified"
    for url in (expired, stranger):
        assert crawled.round.outcome(url) == "FAIL"
        assert "tls: " in crawled.round.rows[url]["error"]


def test_idle_connections_are_used_again(crawled: Crawled):
    assert len({seen.connection for seen in crawled.seen("slow.test")}) == 1


def test_requests_say_who_we_are(crawled: Crawled):
    for seen in crawled.server.requests:
        headers = dict(seen.headers)
        assert headers["user-agent"].startswith("testbot")
        assert {"accept", "accept-encoding"} <= headers.keys()
        assert seen.method == "GET"


def test_hosts_that_were_given_up_are_left_out(crawled: Crawled, tmp_path: Path):
    """Runs last: it is the next round."""
    crawl, url = crawled.crawl, crawled.server.url
    crawl.update()
    more = [url("dead.test", "/page/9"), url("plain.test", "/page/9")]
    crawl.load("crawldb", write_rows(tmp_path / "more.parquet", seed_rows(more)))
    (segment,) = later(crawl, minutes=5).generate()
    hosts = {row["host"] for row in table(crawl, "fetchlist", segment=segment)}
    assert "plain.test" in hosts
    assert not {"dead.test", "silent.test"} & hosts


def test_a_host_that_asked_for_long_is_not_waited_for_in_the_next_round(
    tmp_path: Path, inline: Engine, server: HostileServer
):
    """Neither for its own URLs nor for those that redirects lead to; a round must not wait for hours."""
    urls = [server.url("www.away.test", "/retry-429-seconds?s=7200"), server.url("here.test", "/page/1")]
    crawl = crawl_of(tmp_path, inline, urls)
    fetch_round(crawl)
    crawl.update()
    asked = len(server.targets("www.away.test"))
    more = [
        server.url("www.away.test", "/page/1"),
        server.url("away.test", f"/redirect?to=http://www.away.test:{server.port}/page/2"),
        server.url("here.test", "/page/2"),
    ]
    crawl.load("crawldb", write_rows(tmp_path / "more.parquet", seed_rows(more)))
    found = fetch_round(later(crawl, minutes=1))
    assert found.seconds < 5
    assert len(server.targets("www.away.test")) == asked
    assert [found.outcome(url) for url in more] == ["RETRY_LATER", "REDIRECT_TEMPORARY", "SUCCESS"]
    assert 7000 < found.rows[more[0]]["retry_after_s"] < 7200


def test_an_etag_that_no_request_can_carry(tmp_path: Path, inline: Engine, server: HostileServer):
    """It is left out, and does no harm to requests that use the same handle."""
    urls = [server.url(f"etag{n}.test", f"/page/{n}") for n in range(4)]
    etags = ['"é"', '"\u2028"', '"good"', '"a\r\nX-Injected: yes"']
    had = {"status": [int(Status.FETCHED)] * 4, "payload_digest": ["OTHER"] * 4, "fetched_at": [BEFORE] * 4}
    found = fetched(tmp_path, inline, urls, {"fetch.connections": 1}, etag=etags, **had)
    assert {found.outcome(url) for url in urls} == {"SUCCESS"}
    sent = {
        s.host.partition(".")[0]: dict(s.headers)
        for s in server.requests
        if s.target.startswith("/page/") and s.host.startswith("etag")
    }
    assert {host: headers.get("if-none-match") for host, headers in sent.items()} == {
        "etag0": None, "etag1": None, "etag2": '"good"', "etag3": None,
    }  # fmt: skip
    assert not [headers for headers in sent.values() if "x-injected" in headers]


def test_what_is_not_wanted(tmp_path: Path, inline: Engine, server: HostileServer):
    url = server.url
    urls = [
        url("type.test", "/cookie"), url("type.test", "/empty"), url("large.test", "/page/1"), url("large.test", "/endless"),
        *(url(f"tls-{n}.test", "/empty", tls=True) for n in ("good", "expired", "stranger")),
    ]  # fmt: skip
    settings = {
        "fetch.types": ["text/html", "application/xhtml+xml"],
        "fetch.max_bytes": 10_000,
        "fetch.cut": False,
        "fetch.tls": "record",
        "fetch.ca_file": str(server.ca),
    }
    found = fetched(tmp_path, inline, urls, settings)
    assert found.outcome(urls[0]) == "UNSUPPORTED"
    assert found.rows[urls[0]]["error"] == "type: application/json"
    assert found.outcome(urls[1]) == "SUCCESS"
    for too_large in urls[2:4]:
        assert found.outcome(too_large) == "TOO_LARGE"
        assert found.rows[too_large]["length"] == 10_000
        assert found.record(too_large).headers["WARC-Truncated"] == "length"
    assert [found.outcome(each) for each in urls[4:]] == ["SUCCESS"] * 3
    good, expired, stranger = (found.rows[each]["tls"] for each in urls[4:])
    assert good == "verified"
    assert "expired" in expired
    assert stranger not in ("verified", expired)


def test_a_round_ends_when_its_time_is_up(tmp_path: Path, inline: Engine, server: HostileServer):
    urls = [server.url("long.test", f"/page/{n}") for n in range(20)]
    found = fetched(tmp_path, inline, urls, {"fetch.delay_ms": 400, "fetch.time_limit_s": 1})
    outcomes = [found.outcome(url) for url in urls]
    assert 0 < outcomes.count("SUCCESS") < 8
    assert outcomes.count("SUCCESS") + outcomes.count("UNTRIED") == 20
    assert {row["error"] for row in found.rows.values() if row["started_at"] is None} == {"time limit"}
    assert found.seconds < 6


def test_the_last_few_hosts_are_not_waited_for(tmp_path: Path, inline: Engine, server: HostileServer):
    many = [server.url(f"h{n}.test", "/empty") for n in range(30)]
    long = [server.url("tail.test", f"/page/{n}") for n in range(40)]
    found = fetched(tmp_path, inline, [*many, *long], {"fetch.delay_ms": 200, "fetch.tail_s": 1})
    assert {found.outcome(url) for url in many} == {"SUCCESS"}
    outcomes = [found.outcome(url) for url in long]
    assert set(outcomes) == {"SUCCESS", "UNTRIED"}
    assert found.seconds < 7
