"""The server on a real socket: keep-alive, proxy requests, bad clients, and hosts that behave badly on purpose."""

from __future__ import annotations

import asyncio
import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gossamer.simweb.serving.accesslog import CLOSE, AccessLog, Entry, read
from gossamer.simweb.serving.server import LARGEST_HEAD, Server, Time
from gossamer.simweb.web import Web
from tests.unit.simweb.webs import site_at, small, web_with


@contextmanager
def serving(web: Web, log: AccessLog | None = None) -> Iterator[int]:
    """The port of a server in a thread of its own."""
    ready: list[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = []
    started = threading.Event()

    async def run() -> None:
        servers = await Server(web, Time(web.start), log).start(["127.0.0.1"], 0)
        ended = asyncio.Event()
        ready.append((asyncio.get_running_loop(), ended, servers[0].sockets[0].getsockname()[1]))
        started.set()
        await ended.wait()
        servers[0].close()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    started.wait(10)
    loop, ended, port = ready[0]
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)


def ask(port: int, data: bytes, timeout: float = 5) -> bytes:
    """What comes back until the server hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as client:
        client.sendall(data)
        got = b""
        while piece := client.recv(65536):
            got += piece
        return got


def get(host: str, target: str = "/", *more: str) -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", *more, "Connection: close", "", ""]).encode()


def test_one_connection_serves_many_requests_in_order():
    web = small("wiki")
    hosts = [web.site(n).host for n in range(3)]
    first = b"".join(get(host).replace(b"Connection: close\r\n", b"") for host in hosts[:2])
    with serving(web) as port:
        got = ask(port, first + get(hosts[2]))
    heads = got.split(b"HTTP/1.1 ")[1:]
    assert [head[:6] for head in heads] == [b"200 OK"] * 3
    for host, head in zip(hosts, heads, strict=True):
        name = site_at(web, host).name.encode()
        assert b"<title>" + name + b"</title>" in head


def test_lengths_are_right_and_head_sends_no_body():
    web = small("wiki")
    host = web.site(0).host
    with serving(web) as port:
        whole, bare = ask(port, get(host)), ask(port, get(host).replace(b"GET", b"HEAD"))
    head, _, body = whole.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert bare.partition(b"\r\n\r\n") == (head, b"\r\n\r\n", b"")


def test_a_proxys_request_names_the_host_itself():
    web = small("wiki")
    host = web.site(0).host
    with serving(web) as port:
        direct = ask(port, get(host))
        proxied = ask(port, get("elsewhere", f"http://{host}/"))
        bare = ask(port, get("elsewhere", f"http://{host}"))
        upper = ask(port, get(host.upper() + ":8080"))
        odd = [
            ask(port, get("x", form))
            for form in (f"HTTP://{host.upper()}/", f"http://me:pass@{host}/", f"http://{host}?x=1")
        ]
    assert direct == proxied == bare == upper
    assert all(answer == direct for answer in odd)
    assert direct.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/3\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"CONNECT x:443 HTTP/1.1\r\n\r\n", 502),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * LARGEST_HEAD, 431),
        (b"GET / HTTP/1.1\r\nHost: no-such-host.test\r\nConnection: close\r\n\r\n", 421),
        (b"GET / HTTP/1.0\r\n\r\n", 421),
        (b"\xff\xfe\x00 / HTTP/1.1\r\n\r\n", 405),
    ],
)
def test_bad_requests_are_refused_and_the_next_client_is_served(data: bytes, status: int):
    web = small("wiki")
    with serving(web) as port:
        assert ask(port, data).startswith(f"HTTP/1.1 {status} ".encode())
        assert ask(port, get(web.site(0).host)).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_is_not_read_from_and_holds_up_nobody():
    web = small("wiki")
    host = web.site(0).host
    many = get(host).replace(b"Connection: close\r\n", b"") * 600_000
    with serving(web) as port, socket.create_connection(("127.0.0.1", port), timeout=2) as deaf:
        with suppress(TimeoutError):
            deaf.sendall(many)
            pytest.fail("the server took everything")
        assert ask(port, get(web.site(1).host)).startswith(b"HTTP/1.1 200")
        got = b""
        while got.count(b"HTTP/1.1 200 OK") < 200:
            got += deaf.recv(1 << 20)


def test_what_comes_after_the_last_request_is_left_alone():
    web = small("wiki")
    with serving(web) as port:
        assert ask(port, get(web.site(0).host) * 20).count(b"HTTP/1.1 200") == 1
        assert ask(port, b"XX\r\n\r\n" * 20).count(b"HTTP/1.1 400") == 1
        body = (
            get(web.site(0).host).replace(b"Connection: close", b"Content-Length: 4") + b"GET " + get(web.site(0).host)
        )
        assert ask(port, body).count(b"HTTP/1.1") == 1


def test_redirects_cannot_break_out_of_their_header():
    web = small("portal")
    host = web.site(0).host
    with serving(web) as port:
        for inside in ("%0d%0aSet-Cookie:%20a=b%0d%0a%0d%0ahello", "%E4%BD%A0", "%00%7f"):
            got = ask(port, get(host, f"/go?url=http%3A%2F%2Fx.test%2F{inside}"))
            assert got.startswith(b"HTTP/1.1 302")
            assert (
                f"Location: http://x.test/{inside.upper().replace('SET-COOKIE:', 'Set-Cookie:').replace('A=B', 'a=b').replace('HELLO', 'hello')}\r\n".encode()
                in got
            )


def test_raw_bytes_in_a_target_come_back_encoded():
    web = web_with("wiki", traits={"mirror": 0.0, "one-name": 0.0})
    site = web.site(0)
    with serving(web) as port:
        got = ask(
            port, b"GET /a\nX-Bad:\xfc HTTP/1.1\r\nHost: " + site.other_host.encode() + b"\r\nConnection: close\r\n\r\n"
        )
    assert f"Location: {site.origin}/a%0AX-Bad:%FC\r\n".encode() in got


def test_a_head_in_single_bytes_is_understood():
    web = small("wiki")
    with serving(web) as port, socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        for byte in get(web.site(0).host):
            client.sendall(bytes((byte,)))
        assert client.recv(12) == b"HTTP/1.1 200"


def test_a_strict_host_says_when_to_come_back():
    web = web_with("wiki", traits={"strict": 1.0})
    host = web.site(0).host
    with serving(web) as port:
        answers = [ask(port, get(host)) for _ in range(40)]
        other = ask(port, get(web.site(1).host))
    refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 429")]
    assert len(refused) >= 10
    assert all(b"\r\nRetry-After: 5\r\n" in answer for answer in refused)
    assert other.startswith(b"HTTP/1.1 200")


def test_hosts_that_hang_up_stall_or_drip():
    for trait in ("hangs-up", "stalls", "drips"):
        web = web_with("wiki", traits={trait: 1.0})
        with serving(web) as port:
            if trait == "hangs-up":
                with suppress(ConnectionResetError):
                    assert ask(port, get(web.site(0).host)) == b""
            elif trait == "stalls":
                with pytest.raises(TimeoutError):
                    ask(port, get(web.site(0).host), timeout=0.5)
            else:
                got = b""
                with socket.create_connection(("127.0.0.1", port), timeout=0.6) as client, suppress(TimeoutError):
                    client.sendall(get(web.site(0).host))
                    while piece := client.recv(65536):
                        got += piece
                assert len(got.partition(b"\r\n\r\n")[2]) == 1


def test_a_slow_host_takes_its_time_and_keeps_the_connection():
    web = web_with("wiki", traits={"sluggish": 1.0})
    host = web.site(0).host
    with serving(web) as port:
        start = time.monotonic()
        got = ask(port, get(host).replace(b"Connection: close\r\n", b"") + get(host))
    assert got.count(b"HTTP/1.1 200") == 2
    assert time.monotonic() - start >= 0.1


def test_a_failing_host_fails_and_one_that_is_down_says_for_how_long():
    for trait, status in (("broken", b"502"), ("down-at-times", b"503")):
        web = web_with("wiki", traits={trait: 1.0})
        with serving(web) as port:
            got = ask(port, get(web.site(0).host))
        assert got.startswith(b"HTTP/1.1 " + status)
        assert (b"Retry-After: 120" in got) == (status == b"503")


def test_bodies_are_compressed_for_those_who_ask():
    import gzip

    web = web_with("wiki", traits={"gzip": 1.0})
    host = web.site(0).host
    with serving(web) as port:
        plain = ask(port, get(host)).partition(b"\r\n\r\n")[2]
        head, _, packed = ask(port, get(host, "/", "Accept-Encoding: br, gzip")).partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head
    assert gzip.decompress(packed) == plain


def test_the_log_tells_all_and_reads_back(tmp_path: Path):
    web = web_with("news", traits={"robots-slow": 1.0})
    host = web.site(0).host
    with (tmp_path / "access.log").open("w+") as file:
        log = AccessLog(file)
        with serving(web, log) as port:
            ask(port, get(host, "/robots.txt", "User-Agent: tester/1.0"))
            ask(port, get(host, "/print.php?id=1", "User-Agent: te\tster"))
            ask(port, get("who.test"))
            ask(port, get(host, "/go?url=http%3A%2F%2Fx.test%2F"))
        log.flush()
    lines = (tmp_path / "access.log").read_text().splitlines()
    entries = [entry for entry in map(read, lines) if entry is not None]
    asked = [entry for entry in entries if entry.method != CLOSE]
    assert [(entry.target, entry.status, entry.page, entry.allowed) for entry in asked] == [
        ("/robots.txt", 200, "robots", True),
        ("/print.php?id=1", 404, "missing", False),
        ("/", 421, "stranger", True),
        ("/go?url=http%3A%2F%2Fx.test%2F", 302, "redirect", False),
    ]
    assert [entry.agent for entry in asked] == ["tester/1.0", "te\\tster", "-", "-"]
    assert [entry.delay for entry in asked] == [2, 2, 0, 2]
    assert all(entry.start <= entry.end for entry in entries)
    assert sorted(entry.connection for entry in entries if entry.method == CLOSE) == [
        entry.connection for entry in asked
    ]


def test_a_log_goes_on_where_it_was_and_skips_what_it_does_not_know():
    file = io.StringIO()
    log = AccessLog(file)
    entry = Entry(1.5, 2.25, 7, "127.0.0.1", "127.0.0.1", "http", "h", "GET", "/", 200, 10, "front", True, 0, 0, "-")
    log.add(entry)
    log.flush()
    again = AccessLog(file)
    again.add(entry)
    again.flush()
    lines = file.getvalue().splitlines()
    assert len(lines) == 3
    assert [read(line) for line in [*lines, "junk", ""]] == [None, entry, entry, None, None]
