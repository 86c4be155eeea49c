"""The name server answers as its zone says, and stops when it is told to."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from gossamer.simweb.serving.dns import HEAD, NO_ERROR, NO_NAME, QUESTION, A
from tests.hostile.clients import connect, until
from tests.hostile.dns import (
    AAAA,
    CNAME,
    FIELDS,
    HOSTILE_ZONE,
    LONGEST_TTL,
    LOOPBACK,
    PUBLIC,
    REFUSED,
    SERVFAIL,
    TRUNCATED,
    DnsServer,
    at,
    dns_server,
    rebinding,
    wire_name,
)

NUMBER = 0x1234


class Answer(NamedTuple):
    """A packet read back."""

    number: int
    code: int
    truncated: bool
    values: list[str]
    ttls: list[int]


@pytest.fixture(scope="module")
def dns() -> Iterator[DnsServer]:
    with dns_server(HOSTILE_ZONE) as dns:
        yield dns


def packet(name: str, kind: int = A) -> bytes:
    return HEAD.pack(NUMBER, 0x0100, 1, 0, 0, 0) + wire_name(name) + QUESTION.pack(kind, 1)


def ask(dns: DnsServer, name: str, kind: int = A, wait: float = 3.0) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(wait)
        client.sendto(packet(name, kind), ("127.0.0.1", dns.port))
        return client.recv(65536)


def ask_tcp(dns: DnsServer, name: str) -> bytes:
    with connect(dns.port) as client, client.makefile("rb") as stream:
        asked = packet(name)
        client.sendall(struct.pack("!H", len(asked)) + asked)
        return stream.read(struct.unpack("!H", stream.read(2))[0])


def read(data: bytes) -> Answer:
    number, flags, _, answers, *_ = HEAD.unpack_from(data)
    _, place = name_at(data, HEAD.size)
    place += QUESTION.size
    values, ttls = [], []
    for _ in range(answers):
        _, place = name_at(data, place)
        kind, _, ttl, length = FIELDS.unpack_from(data, place)
        place += FIELDS.size
        found = data[place : place + length]
        values.append(name_at(found, 0)[0] if kind == CNAME else str(ipaddress.ip_address(found)))
        ttls.append(ttl)
        place += length
    assert place == len(data)
    return Answer(number, flags & 0xF, bool(flags & TRUNCATED), values, ttls)


def name_at(data: bytes, place: int) -> tuple[str, int]:
    labels = []
    while length := data[place]:
        labels.append(data[place + 1 : place + 1 + length].decode())
        place += 1 + length
    return ".".join(labels), place + 1


def test_addresses(dns: DnsServer):
    assert read(ask(dns, "good.test")) == (NUMBER, NO_ERROR, False, [LOOPBACK], [300])
    assert read(ask(dns, "GOOD.Test")).values == [LOOPBACK]
    assert read(ask(dns, "six.test", AAAA)).values == ["::1"]
    assert read(ask(dns, "both.test")).values == [LOOPBACK]
    assert read(ask(dns, "both.test", AAAA)).values == ["::1"]
    assert read(ask(dns, "several.test")).values == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    assert read(ask(dns, "any.wild.test")).values == [LOOPBACK]
    assert read(ask(dns, "mapped.test", AAAA)).values == [str(ipaddress.ip_address("::ffff:127.0.0.1"))]
    assert read(ask(dns, "metadata.test")).values == ["169.254.169.254"]
    assert read(ask(dns, "public-and-loopback.test")).values == [PUBLIC, LOOPBACK]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("missing.test", NO_NAME),
        ("servfail.test", SERVFAIL),
        ("refused.test", REFUSED),
        ("nodata.test", NO_ERROR),
        ("six.test", NO_ERROR),
    ],
)
def test_no_addresses(dns: DnsServer, name: str, code: int):
    assert read(ask(dns, name)) == (NUMBER, code, False, [], [])


def test_aliases(dns: DnsServer):
    assert read(ask(dns, "alias.test")).values == ["alias2.test", "good.test", LOOPBACK]
    assert read(ask(dns, "alias.test", CNAME)).values == ["alias2.test"]
    assert read(ask(dns, "alias-a.test")).values == ["alias-b.test", "alias-a.test"]
    assert read(ask(dns, "alias-self.test")).values == ["alias-self.test"]
    assert read(ask(dns, "alias-nowhere.test"))[1:4] == (NO_NAME, False, ["missing.test"])
    assert read(ask(dns, "alias-private.test")).values[-1] == "10.0.0.1"
    assert len(read(ask_tcp(dns, "chain0.test")).values) == 31


def test_times_to_live(dns: DnsServer):
    assert read(ask(dns, "ttl-0.test")).ttls == [0]
    assert read(ask(dns, "ttl-huge.test")).ttls == [LONGEST_TTL]


def test_late_and_never(dns: DnsServer):
    with dns_server({"late.test": at(LOOPBACK).late(0.2)}) as own:
        start = time.monotonic()
        assert read(ask(own, "late.test")).values == [LOOPBACK]
        assert time.monotonic() - start > 0.15
    with pytest.raises(TimeoutError):
        ask(dns, "never.test", wait=0.2)


@pytest.mark.parametrize("name", ["truncated.test", "many.test", "chain0.test"])
def test_truncated_answers_are_whole_over_tcp(dns: DnsServer, name: str):
    assert read(ask(dns, name))[2:4] == (True, [])
    whole = read(ask_tcp(dns, name))
    assert not whole.truncated
    assert whole.values
    assert [query.over for query in dns.queries[-2:]] == ["udp", "tcp"]


def test_spoiled_packets(dns: DnsServer):
    assert read(ask_tcp(dns, "truncated-always.test")).truncated
    assert read(ask(dns, "wrong-id.test")).number == NUMBER ^ 0xFFFF
    assert name_at(ask(dns, "wrong-question.test"), HEAD.size)[0] == "xrong-question.test"
    with pytest.raises((ValueError, IndexError, UnicodeDecodeError)):
        read(ask(dns, "garbage.test"))
    with pytest.raises((ValueError, AssertionError)):
        read(ask(dns, "short.test"))


def test_rebinding_counts_each_type_of_question():
    with dns_server({"rebind.test": rebinding(PUBLIC, LOOPBACK)}) as dns:
        assert read(ask(dns, "rebind.test", AAAA)).values == []
        assert [read(ask(dns, "rebind.test")).values for _ in range(3)] == [[PUBLIC], [LOOPBACK], [LOOPBACK]]
        assert read(ask(dns, "rebind.test")).ttls == [0]
        assert [(query.name, query.type) for query in dns.queries] == [("rebind.test", AAAA)] + [("rebind.test", A)] * 4


def test_noise_is_not_answered(dns: DnsServer):
    before = len(dns.queries)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"noise", ("127.0.0.1", dns.port))
        client.sendto(b"", ("127.0.0.1", dns.port))
    assert read(ask(dns, "good.test")).values == [LOOPBACK]
    assert len(dns.queries) == before + 1


def test_it_stops_with_questions_open():
    threads = set(threading.enumerate())
    zone = {"late.test": at(LOOPBACK).late(60)}
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        dns_server(zone) as dns,
        connect(dns.port) as open_one,
        connect(dns.port) as half,
    ):
        client.sendto(packet("late.test"), ("127.0.0.1", dns.port))
        open_one.sendall(struct.pack("!H", len(packet("late.test"))) + packet("late.test"))
        half.sendall(b"\x00")
        until(lambda: len(dns.queries) == 2)
        start = time.monotonic()
    assert time.monotonic() - start < 2
    assert set(threading.enumerate()) == threads


def test_a_real_resolver_believes_it(dns: DnsServer):
    pycares = pytest.importorskip("pycares")
    channel = pycares.Channel(
        servers=["127.0.0.1"], udp_port=dns.port, tcp_port=dns.port, timeout=1.0, tries=1, lookups="b"
    )
    try:
        assert resolve(channel, "good.test") == ({LOOPBACK}, None)
        assert resolve(channel, "alias.test") == ({LOOPBACK}, None)
        assert resolve(channel, "truncated.test") == ({LOOPBACK}, None)
        assert len(resolve(channel, "many.test")[0]) == 200
        assert resolve(channel, "missing.test") == (set(), pycares.errno.ARES_ENOTFOUND)
        assert resolve(channel, "nodata.test") == (set(), pycares.errno.ARES_ENODATA)
        assert resolve(channel, "servfail.test") == (set(), pycares.errno.ARES_ESERVFAIL)
    finally:
        channel.close()


def resolve(channel, name: str) -> tuple[set[str], int | None]:
    done = threading.Event()
    given: list = []

    def found(result, error) -> None:
        given.extend((result, error))
        done.set()

    channel.query(name, A, callback=found)
    assert done.wait(5)
    result, error = given
    return {record.data.addr for record in result.answer if record.type == A} if result else set(), error
