"""No connection goes where strangers may not lead us: decoys listen on loopback under every name that could lead there.

127.0.0.9 stands for the public Internet: it is let through by `fetch.allow_networks`, and the server is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gossamer.engine.base import Engine
from gossamer.settings.sections import AgentSettings, FetchSettings
from gossamer.stages.fetch.addresses import Guard
from gossamer.stages.fetch.http import HttpTransport
from gossamer.stages.fetch.poller import Poller
from gossamer.stages.fetch.protocols import Context, Request, Response
from gossamer.urls.parse import parse
from tests.fetch.crawling import Round, crawl_of, fetch_round
from tests.hostile.decoy import Decoys, decoys
from tests.hostile.dns import HOSTILE_ZONE, DnsServer, at, dns_server, rebinding
from tests.hostile.server import HostileServer, hostile_server
from tests.hostile.spellings import SPELLINGS
from tests.stages.crawls import seed_rows, write_rows

PUBLIC = "127.0.0.9"
TRAPS = ("127.0.0.1", "127.0.0.2", "127.255.255.254", "::1")
ZONE = HOSTILE_ZONE | {
    "public.test": at(PUBLIC),
    "mixed.test": at("127.0.0.1", PUBLIC, "10.0.0.1", ttl=0),
    "turns.test": rebinding(PUBLIC, "127.0.0.1"),
    "alias-public.test": at("public.test"),
    "localhost": at("127.0.0.1"),
    "anything.localhost": at("127.0.0.1"),
    "beside.test": at("127.0.0.1"),
}
BLOCKED_NAMES = [
    "good",
    "private",
    "metadata",
    "cgnat",
    "unspecified",
    "mapped",
    "nat64",
    "sixtofour",
    "alias-private",
    "alias",
    "ttl-0",
    "ttl-huge",
    "several",
    "six",
    "both",
    "beside",
    "chain25",
]  # their addresses, in every record that may have one
DEAD_NAMES = {
    "servfail": "dns", "refused": "dns", "nodata": "dns", "alias-nowhere": "dns", "alias-self": "dns", "missing": "dns",
}  # fmt: skip
SECRET = "/secret"


class Crawled(NamedTuple):
    server: HostileServer
    traps: Decoys
    dns: DnsServer
    rounds: list[Round]
    spelled: dict[str, str]  # URL of a spelling's host → spelling

    def url(self, host: str, path: str = SECRET) -> str:
        return f"http://{host}:{self.server.port}{path}"


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, inline: Engine) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("addresses")
    with (
        hostile_server(addresses=(PUBLIC,)) as server,
        decoys(TRAPS, server.port) as traps,
        dns_server(ZONE) as dns,
    ):
        spelled: dict[str, str] = {}
        for host in SPELLINGS:
            url, why = parse(f"http://{host}:{server.port}{SECRET}")
            assert url is not None, why
            spelled.setdefault(url, host)
        found = Crawled(server, traps, dns, [], spelled)
        names = [*BLOCKED_NAMES, *DEAD_NAMES, "public", "mixed", "turns", "alias-public"]
        urls = [*spelled, *(found.url(f"{name}.test") for name in names)]
        urls += [
            found.url("lead.test", f"/redirect-address/{n}?port={server.port}&also=") for n in range(len(SPELLINGS))
        ]
        urls += [found.url(f"{name}.test", f"/page/{n}") for name in ("mixed", "turns", "lead") for n in range(3)]
        urls += [found.url("lead.test", f"/redirect?to=http://{n}.test:{server.port}/led") for n in BLOCKED_NAMES]
        urls.append(found.url(PUBLIC, "/page/1"))
        settings = {
            "fetch.connect_to": {"lead.test": f"{PUBLIC}:{server.port}"},
            "fetch.allow_networks": [f"{PUBLIC}/32"],
            "fetch.dns_servers": [dns.server],
            "generate.partitions": 1,
        }
        crawl = crawl_of(folder, inline, urls, settings)
        found.rounds.append(fetch_round(crawl))
        crawl.load("crawldb", write_rows(folder / "more.parquet", seed_rows([found.url("turns.test", "/page/9")])))
        found.rounds.append(fetch_round(crawl))
        yield found


def test_nobody_connected_to_a_decoy(crawled: Crawled):
    assert crawled.traps.connections == []
    assert {c.address for c in crawled.server.connections} == {PUBLIC}


@pytest.mark.parametrize("host", SPELLINGS)
def test_every_spelling_is_blocked(crawled: Crawled, host: str):
    url, _ = parse(f"http://{host}:{crawled.server.port}{SECRET}")
    assert url is not None
    row = crawled.rounds[0].rows[url]
    assert crawled.rounds[0].outcome(url) == "BLOCKED_ADDRESS"
    assert "blocked_address: " in row["error"]
    assert (row["http_code"], row["ip"], row["warc_file"]) == (None, None, None)


def test_redirects_to_every_spelling_are_recorded(crawled: Crawled):
    first, rows = crawled.rounds[0], crawled.rounds[0].rows
    found = {rows[url]["redirect_to"] for url in rows if "/redirect-address/" in url}
    assert found == set(crawled.spelled)
    assert all(first.outcome(url) == "REDIRECT_TEMPORARY" for url in rows if "/redirect-address/" in url)


@pytest.mark.parametrize("name", BLOCKED_NAMES)
def test_names_that_lead_inside_are_blocked(crawled: Crawled, name: str):
    for path in (SECRET, "/led"):  # of the list, and at the end of a redirect
        assert crawled.rounds[0].outcome(crawled.url(f"{name}.test", path)) == "BLOCKED_ADDRESS"
    assert crawled.rounds[0].rows[crawled.url(f"{name}.test", "/led")]["via"] is not None


@pytest.mark.parametrize("name", DEAD_NAMES)
def test_names_without_address_fail(crawled: Crawled, name: str):
    row = crawled.rounds[0].rows[crawled.url(f"{name}.test")]
    assert crawled.rounds[0].outcome(row["url"]) == "FAIL"
    assert f"{DEAD_NAMES[name]}: " in row["error"]


def test_of_several_addresses_one_that_is_allowed_is_taken(crawled: Crawled):
    for name in ("mixed", "turns"):
        for n in range(3):
            row = crawled.rounds[0].rows[crawled.url(f"{name}.test", f"/page/{n}")]
            assert (row["http_code"], row["ip"]) == (200, PUBLIC)


def test_a_name_that_turns_inside_is_blocked_when_it_is_asked_again(crawled: Crawled):
    """Within a round its first answer is kept, whatever its time to live; robots.txt of the first round still holds."""
    assert [q.name for q in crawled.dns.queries].count("turns.test") == 2
    assert crawled.rounds[1].outcome(crawled.url("turns.test", "/page/9")) == "BLOCKED_ADDRESS"


def test_what_the_operator_allows_is_fetched(crawled: Crawled):
    assert crawled.rounds[0].outcome(crawled.url(PUBLIC, "/page/1")) == "SUCCESS"
    for name in ("public", "alias-public"):
        assert crawled.rounds[0].rows[crawled.url(f"{name}.test")]["http_code"] == 404


def test_a_mapped_host_opens_no_way_for_others(tmp_path: Path, inline: Engine):
    """The server is on 127.0.0.1 where `lead.test` is mapped to; that `beside.test` says it is there, too, helps it nothing."""
    with hostile_server() as server, dns_server(ZONE) as dns:
        urls = [server.url("lead.test", f"/page/{n}") for n in range(10)]
        hosts = ("beside.test", "127.0.0.1", "localhost", "sub.lead.test", "lead.test.beside.test")
        others = [server.url(host, f"/page/{n}") for host in hosts for n in range(3)]
        settings = {
            "fetch.connect_to": {"lead.test": f"127.0.0.1:{server.port}"},
            "fetch.dns_servers": [dns.server],
            "fetch.delay_ms": 30,  # so that they take turns
        }
        found = fetch_round(crawl_of(tmp_path, inline, [*urls, *others], settings))
        assert {found.outcome(url) for url in urls} == {"SUCCESS"}
        assert {found.outcome(url) for url in others} <= {"BLOCKED_ADDRESS", "FAIL"}
        assert {found.outcome(server.url(host, "/page/1")) for host in hosts[:3]} == {"BLOCKED_ADDRESS"}
        assert {seen.host.partition(":")[0] for seen in server.requests} == {"lead.test"}


def test_the_guard_looks_at_the_address_that_is_connected_to():
    """Whatever was checked before: a socket is made for allowed addresses only."""
    with decoys() as traps:
        for address in ("127.0.0.1", "[::1]:" + str(traps.port), f"127.0.0.1:{traps.port}", None):
            response = ask(f"http://localhost:{traps.port}/", address)
            assert (response.error, response.code) == ("blocked_address", 0)
        assert ask(f"http://[::ffff:127.0.0.1]:{traps.port}/", None).error == "blocked_address"
        assert traps.connections == []


def ask(url: str, address: str | None) -> Response:
    """The response to one request, past all other checks."""
    poller = Poller()
    transport = HttpTransport(Context(poller, FetchSettings(deadline_s=3), AgentSettings(), Guard()))
    request = Request(url, None, 1000)
    request.address = address
    transport.start(request)
    try:
        while True:
            poller.wait(min(0.05, transport.wake() or 0.05))
            if done := transport.finished():
                return done[0][1]
    finally:
        transport.close()
        poller.close()
