"""Redirects lead where they say, spellings mean what they say, robots files hop as often as they say, and decoys see who connects."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterator

import pytest

from gossamer.urls.parse import parse
from tests.hostile.clients import connect, get
from tests.hostile.decoy import decoys
from tests.hostile.server import HostileServer, hostile_server
from tests.hostile.spellings import SPELLINGS

OLD_FORM = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with hostile_server(robots={"given.test": b"User-agent: *\nDisallow: /given/\n"}) as server:
        yield server


@pytest.mark.parametrize("host", SPELLINGS)
def test_a_spelling_means_what_it_says(host: str):
    meant = ipaddress.ip_address(SPELLINGS[host])
    special = meant.is_multicast or (isinstance(meant, ipaddress.IPv6Address) and meant.is_site_local)
    assert special or not meant.is_global  # Python holds some of both kinds for global
    if host.startswith("["):
        packed = ipaddress.IPv6Address(host.strip("[]")).packed
        held = meant.packed if meant.version == 6 else meant.packed.hex()
        assert packed == held or str(held) in packed.hex() or bytes(255 - byte for byte in packed[12:]) == meant.packed
    elif OLD_FORM.fullmatch(host):
        assert socket.inet_aton(host.rstrip(".")) == meant.packed


@pytest.mark.parametrize("host", SPELLINGS)
def test_no_spelling_is_lost_on_the_way_to_the_fetcher(host: str):
    url, why = parse(f"http://{host}/")
    assert url is not None, why
    if not host.startswith("[") and "localhost" not in url:
        assert url == f"http://{SPELLINGS[host]}/"


def test_redirects_to_every_spelling(server: HostileServer):
    for number, host in enumerate(SPELLINGS):
        status, headers, _ = get(server.port, f"/redirect-address/{number}?port=8000")
        location = headers["Location"].encode("latin-1").decode()
        assert (status, location) == (302, f"http://{host}:8000/secret")


def follow(server: HostileServer, target: str, host: str = "any.test", at_most: int = 60) -> tuple[int, int, bytes]:
    """Hops taken, and the last response; redirects stay on one port whatever the host."""
    for hops in range(at_most):
        status, headers, body = get(server.port, target, host)
        if status // 100 != 3:
            return hops, status, body
        target = headers["Location"]
        if match := re.fullmatch(r"http://([^:/]+):\d+(.*)", target):
            host, target = match.groups()
    return at_most, status, body


def test_chains(server: HostileServer):
    assert follow(server, "/redirect-chain/7")[:2] == (7, 200)
    assert follow(server, "/redirect-hosts/7")[:2] == (7, 200)
    assert server.targets("hop0.test") == ["/redirect-hosts/0"]
    for endless in ("/redirect-self", "/redirect-loop/a", "/redirect-grow"):
        assert follow(server, endless, at_most=9)[:1] == (9,)
    assert follow(server, "/redirect?to=/page/3&code=308")[:2] == (1, 200)


@pytest.mark.parametrize(
    ("name", "location"),
    [
        ("file", "file:///etc/passwd"),
        ("none", None),
        ("empty", ""),
        ("bytes", "/page/caf\xe9\xff"),
        ("crlf", "/page/1%0d%0aX-Injected:%20yes"),
        ("protocol-relative", "//any.test:{port}/page/1"),
    ],
)
def test_locations(server: HostileServer, name: str, location: str | None):
    status, headers, _ = get(server.port, f"/redirect-{name}")
    assert status == 302
    assert headers["Location"] == (location and location.format(port=server.port))


def test_robots_files(server: HostileServer):
    for hops in (1, 5, 6):
        taken, status, body = follow(server, "/robots.txt", f"robots-redirects-{hops}.test")
        assert (taken, status, b"/denied/" in body) == (hops, 200, True)
    assert follow(server, "/robots.txt", "robots-loop.test", 9)[0] == 9
    body = get(server.port, "/robots.txt", "robots-600k.test")[2]
    assert body.index(b"/denied/") < 500 * 1024 < body.index(b"/late/")
    assert get(server.port, "/robots.txt", "given.test")[2].endswith(b"/given/\n")
    assert get(server.port, "/robots.txt", f"robots-503.test:{server.port}")[0] == 503
    assert get(server.port, "/page/1", "robots-503.test")[0] == 200
    assert b"\n" not in get(server.port, "/robots.txt", "robots-cr.test")[2]


def test_decoys():
    with decoys(["127.0.0.1", "::1", "127.1.2.3"]) as traps:
        assert traps.connections == []
        connect(traps.port, "127.1.2.3").close()
        connect(traps.port, "::1").close()
        connect(traps.port, "::ffff:127.0.0.1").close()
        connect(traps.port, "0.0.0.0").close()
        assert sorted(each.address for each in traps.connections) == ["127.0.0.1", "127.0.0.1", "127.1.2.3", "::1"]
        assert {each.port for each in traps.connections} == {traps.port}
        with connect(traps.port) as client:
            assert traps.connections[-1].client_port == client.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        connect(traps.port)


def test_decoys_at_a_given_port():
    with decoys(["127.0.0.1"]) as first, decoys(["127.0.0.2"], first.port) as second:
        assert first.port == second.port
        with pytest.raises(OSError, match="in use"), decoys(["127.0.0.2"], first.port):
            pass
