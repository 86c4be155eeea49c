"""The server misbehaves as it says, and stops when it is told to."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from email.utils import parsedate_to_datetime

import pytest

from tests.hostile.behaviours.base import (
    ADDRESSES,
    BODIES,
    MALFORMED,
    PAGE_SIZE,
    POLITENESS,
    REDIRECTS,
    ROBOTS,
    SITEMAPS,
)
from tests.hostile.behaviours.plain import COOKIE, ETAG, MODIFIED
from tests.hostile.clients import asking, connect, everything, first_bytes, get, until
from tests.hostile.server import BEHAVIOURS, ROBOTS_OF, HostileServer, hostile_server

SILENT = {"stall", "robots-stall"}
CLOSED = {"close", "reset", "robots-close", "robots-reset"}
NO_HTTP = {
    "blank-first",
    "drip-headers",
    "icy",
    "no-status-line",
    "robots-malformed",
    "status-garbage",
    "status-ssh",
    "version-lower",
}


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with hostile_server() as server:
        yield server


def check_first_bytes(name: str, found: bytes | None):
    if name in SILENT:
        assert found is None
    elif name in CLOSED:
        assert found == b""
    else:
        assert found
        assert found.startswith(b"HTTP/") != (name in NO_HTTP)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_behaviour_begins(server: HostileServer, name: str):
    what = BEHAVIOURS[name]
    assert what.name == name
    assert what.does.endswith((".", "`"))
    assert what.expect
    assert what.line in {ADDRESSES, REDIRECTS, ROBOTS, SITEMAPS, BODIES, MALFORMED, POLITENESS}
    target = f"/{name}?s=0.05" if name in {"late", "drip-headers"} else f"/{name}"
    check_first_bytes(name, first_bytes(server.port, target, wait=0.2 if name in SILENT else 5))


@pytest.mark.parametrize("label", ROBOTS_OF)
def test_a_robots_file_begins(server: HostileServer, label: str):
    found = first_bytes(server.port, "/robots.txt", f"{label}.test:{server.port}", 0.2 if label in SILENT else 5)
    check_first_bytes(label, found)


def test_the_behaviours_asked_for_are_there():
    robots = "500 429 stall redirects-5 redirects-6 loop huge 600k nul bom cr 404 403 gzip-bomb binary denied reset delay sitemap"
    assert {f"robots-{name}" for name in robots.split()} <= set(ROBOTS_OF)
    bodies = "gzip-bomb deflate-bomb br-bomb zstd-bomb gzip-nested endless tiny-chunks drip drip-headers stall short long large"
    assert set(bodies.split()) <= set(BEHAVIOURS)


def test_ordinary_pages(server: HostileServer):
    status, headers, body = get(server.port, "/page/7", "seven.test")
    assert (status, len(body), headers["Content-Type"]) == (200, PAGE_SIZE, "text/html; charset=utf-8")
    assert b"Page 7 of seven.test" in body
    assert b'href="/page/8"' in body
    assert get(server.port, "/")[0] == 200
    assert get(server.port, "/no-such-thing")[0] == 404
    assert get(server.port, "/robots.txt")[0] == 404
    assert get(server.port, "/status/503")[0] == 503


def test_requests_and_connections_are_on_record():
    with hostile_server(["127.0.0.1", "127.0.0.9"]) as server:
        with connect(server.port) as client:
            for number in (1, 2):
                client.sendall(asking(f"/page/{number}", "here.test", "X-Mine: yes"))
                left = PAGE_SIZE
                while left > 0:
                    left -= len(client.recv(65536))
            until(lambda: len(server.requests) == 2)
        with connect(server.port, "127.0.0.9") as client:
            client.sendall(asking("/stall", "there.test:80"))
            until(lambda: len(server.requests) == 3)
            assert server.connections[1].closed is None
        until(lambda: server.connections[1].closed)  # also who stalls sees that the client left
        one, two, three = server.requests
        assert (one.connection, two.connection, three.connection) == (0, 0, 1)
        assert (one.host, one.method, one.target) == ("here.test", "GET", "/page/1")
        assert ("x-mine", "yes") in one.headers
        assert one.time <= two.time <= three.time
        assert [each.address for each in server.connections] == ["127.0.0.1", "127.0.0.9"]
        assert (server.targets("here.test"), server.targets("there.test")) == (["/page/1", "/page/2"], ["/stall"])


def test_tls(server: HostileServer):
    context = ssl.create_default_context(cafile=str(server.ca))
    with context.wrap_socket(connect(server.tls_port), server_hostname="some.test") as client:
        client.sendall(asking("/page/1", "some.test"))
        assert client.recv(15) == b"HTTP/1.1 200 OK"
    assert server.connections[-1].tls
    for host, problem in {"tls-expired.test": "expired", "tls-stranger.test": "mismatch"}.items():
        with connect(server.tls_port) as raw, pytest.raises(ssl.SSLCertVerificationError, match=problem):
            context.wrap_socket(raw, server_hostname=host)


def test_a_reset_over_tls(server: HostileServer):
    context = ssl.create_default_context(cafile=str(server.ca))
    raw = connect(server.tls_port)
    with context.wrap_socket(raw, server_hostname="some.test", suppress_ragged_eofs=False) as client:
        client.sendall(asking("/reset", "some.test"))
        with pytest.raises((ConnectionResetError, ssl.SSLEOFError)):
            client.recv(1)


def test_a_reset_is_a_reset(server: HostileServer):
    with connect(server.port) as client:
        client.sendall(asking("/reset-in-body"))
        with pytest.raises(ConnectionResetError):
            list(iter(lambda: client.recv(65536), b""))


def test_it_stops_with_everything_open():
    threads, files = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))  # noqa: PTH208  a count is all
    with ExitStack() as stack:
        with hostile_server() as server:
            targets = [
                "/stall",
                "/stall-in-body",
                "/drip",
                "/endless",
                "/header-endless",
                "/endless-100",
                "/large",
                "/late?s=60",
            ]
            clients = [stack.enter_context(connect(server.port)) for _ in targets]
            for client, target in zip(clients, targets, strict=True):
                client.sendall(asking(target))
            stack.enter_context(connect(server.port)).sendall(b"GET /half")
            stack.enter_context(connect(server.tls_port)).sendall(b"\x16\x03\x01")  # a greeting half said
            stack.enter_context(connect(server.tls_port))
            context = ssl.create_default_context(cafile=str(server.ca))
            for target in ("/stall", "/endless"):
                client = stack.enter_context(context.wrap_socket(connect(server.tls_port), server_hostname="a.test"))
                client.sendall(asking(target))
            until(lambda: len(server.requests) == len(targets) + 2)
            start = time.monotonic()
        assert time.monotonic() - start < 2
        assert all(each.closed for each in server.connections)
        assert len(server.connections) == len(targets) + 5
    assert set(threading.enumerate()) == threads
    assert len(os.listdir("/proc/self/fd")) <= files  # noqa: PTH208


def test_it_stops_while_clients_still_come():
    ended = threading.Event()
    for _ in range(5):
        with hostile_server() as server:
            ended.clear()
            clients = [threading.Thread(target=knock, args=(port, ended)) for port in (server.port, server.tls_port)]
            for client in clients:
                client.start()
            until(lambda: len(server.connections) > 20)
        ended.set()
        for client in clients:
            client.join()
        assert all(each.closed for each in server.connections)
    gc.collect()  # a socket left open would be told now


def knock(port: int, ended: threading.Event) -> None:
    while not ended.is_set():
        with contextlib.suppress(OSError), connect(port) as client:
            client.sendall(asking("/page/1"))


def test_a_behaviour_that_fails_is_told():
    with pytest.raises(RuntimeError, match="a behaviour failed"), hostile_server() as server:
        assert everything(server.port, "/late?s=soon") == b""


def test_validators(server: HostileServer):
    status, headers, body = get(server.port, "/validators")
    assert (status, headers["ETag"], headers["Last-Modified"], len(body)) == (200, ETAG, MODIFIED, PAGE_SIZE)
    assert get(server.port, "/validators", If_None_Match=ETAG)[0] == 304
    assert get(server.port, "/validators", If_Modified_Since=MODIFIED)[0] == 304
    assert get(server.port, "/validators", If_None_Match='"other"', If_Modified_Since=MODIFIED)[0] == 200


def test_cookies_and_credentials_are_reported(server: HostileServer):
    _, headers, body = get(server.port, "/cookie")
    assert headers["Set-Cookie"].startswith(COOKIE)
    assert json.loads(body) == {"cookie": None}
    assert json.loads(get(server.port, "/cookie", Cookie=COOKIE)[2]) == {"cookie": COOKIE}
    told = json.loads(get(server.port, "/echo?a=b", "echo.test", Authorization="Basic eA==")[2])
    assert (told["host"], told["target"]) == ("echo.test", "/echo?a=b")
    assert ["authorization", "Basic eA=="] in told["headers"]


def test_retry_after(server: HostileServer):
    given = {
        name: get(server.port, f"/retry-429-{name}?s=30")[1]["Retry-After"]
        for name in ("seconds", "huge", "negative", "none")
    }
    assert given == {"seconds": "30", "huge": "1" + "0" * 30, "negative": "-5", "none": None}
    status, headers, _ = get(server.port, "/retry-503-date?s=60")
    assert status == 503
    assert 55 < parsedate_to_datetime(headers["Retry-After"]).timestamp() - time.time() < 61


def test_lengths_that_lie(server: HostileServer):
    for name, differs in {"short": 10_000, "until-close": 0}.items():
        head, _, body = everything(server.port, f"/{name}").partition(b"\r\n\r\n")
        said = int(head.rpartition(b"Content-Length: ")[2]) if b"Content-Length" in head else len(body)
        assert said - len(body) == differs
    assert everything(server.port, "/long").endswith(b"\r\n\r\nsmuggled")
    assert len(everything(server.port, "/large?mb=3")) > 3 << 20
    assert everything(server.port, "/tiny-chunks?n=20000").count(b"1\r\nx\r\n") == 20_000


def test_heads_that_do_not_end(server: HostileServer):
    for name in ("header-endless", "headers-endless", "endless-100", "endless-103", "status-line-endless"):
        assert len(everything(server.port, f"/{name}", at_most=1 << 21)) >= 1 << 21
    assert everything(server.port, "/headers-many").count(b"\r\nX-Header-") == 100_000
    assert len(everything(server.port, "/header-large")) > 10 << 20


def test_a_drip_drips(server: HostileServer):
    with connect(server.port) as client:
        client.sendall(asking("/drip?s=0.05"))
        assert b"\r\n\r\n" in client.recv(65536)
        start = time.monotonic()
        assert [len(client.recv(100)) for _ in range(5)] == [1] * 5
        assert time.monotonic() - start > 0.15
