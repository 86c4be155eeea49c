from __future__ import annotations

import asyncio
import http.client
import io
import socket
import ssl
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from gossamer.errors import CorruptError, StorageError, UsageError
from gossamer.simweb.config import load_web
from gossamer.simweb.serving.accesslog import CLOSE, AccessLog, read
from gossamer.simweb.serving.server import Server, Time
from gossamer.simweb.serving.tls import Authority, State, states
from gossamer.simweb.web import Web

pytest.importorskip("cryptography")

STATES: tuple[State, ...] = ("expired", "stranger", "good")


class Running(NamedTuple):
    """A server that listens: for TLS at one port, as a proxy at the other."""

    web: Web
    authority: Authority
    port: int
    proxy: int
    log: io.StringIO
    flush: Callable[[], None]

    def host(self, state: str) -> str:
        """A host with such a certificate."""
        sites = (self.web.site(index) for index in range(self.web.hosts))
        return next(site.host for site in sites if site.manner.tls == state and site.manner.robots == "plain")


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Running]:
    traits = [{"name": f"is-{s}", "about": "-", "share": 0.3, "group": "t", "set": {"tls": s}} for s in STATES]
    web = Web(load_web(hosts=40, pages=400, https=1.0, trait=traits))
    authority = Authority(tmp_path_factory.mktemp("ca"), states(web))
    log = io.StringIO()
    access = AccessLog(log)
    server = Server(web, Time(web.start), access, authority)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def wait(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(10)

    async def flush() -> None:
        await asyncio.sleep(0.05)
        access.flush()

    async def stop(servers: list[asyncio.Server]) -> None:
        for listening in servers:
            listening.close()
        await asyncio.sleep(0.3)  # the last connections are let go

    secure = wait(server.start(["127.0.0.1"], 0, tls=True))
    proxy = wait(server.start(["127.0.0.1"], 0))
    ports = [listening[0].sockets[0].getsockname()[1] for listening in (secure, proxy)]
    yield Running(web, authority, ports[0], ports[1], log, lambda: wait(flush()))
    wait(stop(secure + proxy))
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.path))


def shake(running: Running, host: str | None, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", running.port), timeout=10)
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def get(running: Running, host: str, path: str) -> bytes:
    with shake(running, host, trusting(running.authority)) as secure:
        secure.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: secure.recv(65536), b""))


def test_a_good_host_verifies(running):
    host = running.host("good")
    answer = get(running, host, "/robots.txt")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"User-agent: *" in answer


def test_names_are_compared_without_case(running):
    with shake(running, running.host("good").upper(), trusting(running.authority)) as secure:
        assert secure.version() is not None


def test_a_host_of_no_web_has_a_good_certificate(running):
    assert get(running, "nobody.example", "/").startswith(b"HTTP/1.1 421 ")


def test_an_expired_certificate_says_so(running):
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
        shake(running, running.host("expired"), trusting(running.authority))


def test_a_strangers_certificate_is_for_another_name(running):
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake(running, running.host("stranger"), trusting(running.authority))


def test_who_does_not_know_the_authority_does_not_trust_it(running):
    with pytest.raises(ssl.SSLCertVerificationError, match=r"unable to get local issuer|self-signed"):
        shake(running, running.host("good"), ssl.create_default_context())


def test_who_names_no_host_meets_localhost(running):
    context = trusting(running.authority)
    context.check_hostname = False
    with shake(running, None, context) as secure:
        certificate = secure.getpeercert()
    assert certificate is not None
    assert ("DNS", "localhost") in certificate["subjectAltName"]


def test_an_address_is_good_for_localhost_too(running):
    with shake(running, "127.0.0.1", trusting(running.authority)) as secure:
        assert secure.version() is not None


def test_http_1_1_is_agreed_on(running):
    context = trusting(running.authority)
    context.set_alpn_protocols(["h2", "http/1.1"])
    with shake(running, running.host("good"), context) as secure:
        assert secure.selected_alpn_protocol() == "http/1.1"


def test_strict_clients_are_content(running):
    context = trusting(running.authority)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    with shake(running, running.host("good"), context) as secure:
        assert secure.version() is not None


def through_proxy(running: Running, host: str) -> http.client.HTTPSConnection:
    connection = http.client.HTTPSConnection(
        "127.0.0.1", running.proxy, timeout=10, context=trusting(running.authority)
    )
    connection.set_tunnel(host, 443)
    return connection


def test_connect_tunnels_to_a_host(running):
    host = running.host("good")
    connection = through_proxy(running, host)
    try:
        for path in ("/robots.txt", "/", "/robots.txt"):  # on one connection
            connection.request("GET", path, headers={"User-Agent": f"tunnel{path}"})
            answer = connection.getresponse()
            assert answer.status == 200
            assert answer.read()
    finally:
        connection.close()
    for _ in range(100):  # the server may take a moment to see the end
        running.flush()
        lines = map(read, running.log.getvalue().splitlines())
        noted = [entry for entry in lines if entry is not None and "tunnel" in entry.agent]
        if noted[-1].method == CLOSE:
            break
    assert [(entry.method, entry.scheme, entry.host) for entry in noted] == [
        *[("GET", "https", host)] * 3,
        (CLOSE, "https", host),
    ]


def test_connect_shows_bad_certificates_too(running):
    connection = through_proxy(running, running.host("expired"))
    try:
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            connection.request("GET", "/")
    finally:
        connection.close()


def test_a_client_that_leaves_in_the_handshake_harms_nobody(running):
    for port, greeting in ((running.port, b"\x16\x03\x01"), (running.proxy, b"CONNECT x.test:443 HTTP/1.1\r\n\r\n")):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
            plain.sendall(greeting)
    with socket.create_connection(("127.0.0.1", running.proxy), timeout=10) as plain:
        plain.sendall(b"CONNECT x.test:443 HTTP/1.1\r\n\r\n")
        assert plain.recv(100).startswith(b"HTTP/1.1 200 ")
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")  # no handshake at all
    test_a_good_host_verifies(running)


def test_many_at_once(running):
    hosts = [f"host{number}.example" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert all(answer.startswith(b"HTTP/1.1 421") for answer in pool.map(lambda h: get(running, h, "/"), hosts))


def test_a_restart_keeps_the_authority(running, tmp_path):
    first = Authority(tmp_path / "new")
    before = first.path.read_bytes()
    again = Authority(tmp_path / "new")
    assert again.path.read_bytes() == before
    handshake(again, trusting(first))


def handshake(authority: Authority, context: ssl.SSLContext, host: str = "a.test") -> None:
    """Shake hands in memory."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(down, up, server_hostname=host)
    server = authority.listening().wrap_bio(up, down, server_side=True)
    todo = [client, server]
    for _ in range(10):
        for side in list(todo):
            try:
                side.do_handshake()
                todo.remove(side)
            except ssl.SSLWantReadError:
                continue
    assert not todo


def test_two_that_begin_at_once_share_one_authority(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: Authority(tmp_path), range(8)))
    for authority in made:
        handshake(authority, trusting(made[0]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca-key.pem", "ca.pem"]


def test_the_key_is_its_owners_only(tmp_path):
    Authority(tmp_path)
    assert stat.S_IMODE((tmp_path / "ca-key.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "ca.pem").stat().st_mode) == 0o644


def test_a_lost_certificate_is_made_again_from_the_key(tmp_path):
    Authority(tmp_path).path.unlink()
    again = Authority(tmp_path)
    handshake(again, trusting(again))


def test_a_damaged_authority_is_named(tmp_path):
    Authority(tmp_path / "a")
    (tmp_path / "a" / "ca.pem").write_bytes(Authority(tmp_path / "b").path.read_bytes())
    with pytest.raises(CorruptError, match="damaged"):
        Authority(tmp_path / "a")
    (tmp_path / "b" / "ca-key.pem").write_text("garbage")
    with pytest.raises(CorruptError, match=r"remove ca\.pem"):
        Authority(tmp_path / "b")


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="a file is in the way"):
        Authority(tmp_path / "file" / "ca")


def test_contexts_are_kept_but_not_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("gossamer.simweb.serving.tls.CONTEXTS_KEPT", 2)
    authority = Authority(tmp_path)
    first = authority.context("a.test")
    assert authority.context("a.test") is first
    for host in ("b.test", "c.test"):
        authority.context(host)
    assert authority.context("a.test") is not first


def test_without_cryptography_the_cure_is_named(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "gossamer.simweb.serving.certificates", raising=False)
    monkeypatch.delattr("gossamer.simweb.serving.certificates", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UsageError, match=r"pip install 'gossamer\[simweb\]'"):
        Authority(tmp_path)
    assert not list(tmp_path.iterdir())
