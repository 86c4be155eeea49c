from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from gossamer.simweb.config import load_web
from gossamer.simweb.serving.dns import addresses_of, answer, start
from gossamer.simweb.web import Web

ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
A, AAAA, MX, ANY = 1, 28, 15, 255
ASKED, ANSWERED = 0x0100, 0x8580


@pytest.fixture(scope="module")
def web() -> Web:
    return Web(load_web(hosts=50, pages=500))


@pytest.fixture(scope="module")
def server(web) -> Iterator[socket.socket]:
    """A socket that speaks to a real server."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin():
        return await start(addresses_of(web, ADDRESSES))

    async def stop() -> None:
        transport.close()
        await asyncio.sleep(0.01)

    transport, port = asyncio.run_coroutine_threadsafe(begin(), loop).result(10)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(10)
        client.connect(("127.0.0.1", port))
        yield client
    asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def wire(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"


def query(name: str, kind: int = A, number: int = 7, flags: int = ASKED, klass: int = 1, tail: bytes = b"") -> bytes:
    head = struct.pack("!6H", number, flags, 1, 0, 0, bool(tail))
    return head + wire(name) + struct.pack("!2H", kind, klass) + tail


def ask(server: socket.socket, packet: bytes) -> bytes:
    server.send(packet)
    return server.recv(4096)


def code(reply: bytes) -> int:
    return int.from_bytes(reply[2:4]) & 0xF


def answers(reply: bytes) -> int:
    return int.from_bytes(reply[6:8])


def test_a_host_has_an_address(web, server):
    host = web.site(4).host
    reply = ask(server, query(host, number=0xBEEF))
    assert struct.unpack_from("!6H", reply) == (0xBEEF, ANSWERED, 1, 1, 0, 0)
    asked = query(host)[12:]
    assert reply[12:].startswith(asked)
    record = reply[12 + len(asked) :]
    assert struct.unpack("!3HIH", record[:-4]) == (0xC00C, A, 1, 300, 4)
    assert socket.inet_ntoa(record[-4:]) == ADDRESSES[4 % 3]


def test_hosts_share_the_addresses(web, server):
    found = [socket.inet_ntoa(ask(server, query(web.site(index).host))[-4:]) for index in range(9)]
    assert found == list(ADDRESSES) * 3


def test_both_names_of_a_site_are_at_one_address(web, server):
    site = next(site for site in map(web.site, range(50)) if site.other_host)
    assert ask(server, query(site.host))[-4:] == ask(server, query(site.other_host))[-4:]


def test_the_case_of_the_question_comes_back(web, server):
    host = "".join(letter.upper() if place % 2 else letter for place, letter in enumerate(web.site(0).host))
    reply = ask(server, query(host))
    assert wire(host) in reply
    assert answers(reply) == 1


@pytest.mark.parametrize("kind", [AAAA, MX, ANY, 65])
def test_other_types_of_a_host_are_empty(web, server, kind):
    reply = ask(server, query(web.site(0).host, kind))
    assert (code(reply), answers(reply)) == (0, 0)
    assert reply[12:] == query(web.site(0).host, kind)[12:]


@pytest.mark.parametrize("kind", [A, AAAA])
@pytest.mark.parametrize("name", ["nobody.test", "", "test", "x." * 120 + "test"])
def test_unknown_names_do_not_exist(server, name, kind):
    reply = ask(server, query(name, kind))
    assert (code(reply), answers(reply)) == (3, 0)


def test_a_dot_within_a_label_is_no_border(web, server):
    host = web.site(0).host.encode()
    packet = query("")[:12] + bytes([len(host)]) + host + b"\0" + struct.pack("!2H", A, 1)
    assert code(ask(server, packet)) == 3


def test_other_classes_and_operations_are_not_known(web, server):
    assert code(ask(server, query(web.site(0).host, klass=3))) == 4
    update = ask(server, query(web.site(0).host, flags=5 << 11))
    assert code(update) == 4
    assert int.from_bytes(update[2:4]) >> 11 & 0xF == 5


def test_an_option_record_is_passed_over(web, server):
    option = b"\0" + struct.pack("!2HIH", 41, 1232, 0, 0)
    assert answers(ask(server, query(web.site(0).host, tail=option))) == 1


@pytest.mark.parametrize("flags", [0, ASKED, ASKED | 0x10])
def test_wishes_come_back(web, server, flags):
    reply = ask(server, query(web.site(0).host, flags=flags))
    assert int.from_bytes(reply[2:4]) == 0x8480 | flags


def malformed(host: str) -> dict[str, bytes]:
    good = query(host)
    return {
        "empty": b"",
        "short": good[:11],
        "no question": struct.pack("!6H", 7, ASKED, 0, 0, 0, 0),
        "two questions": struct.pack("!6H", 7, ASKED, 2, 0, 0, 0) + good[12:] * 2,
        "an answer": query(host, flags=ANSWERED),
        "name cut": good[:16],
        "type cut": good[:-1],
        "pointer": good[:12] + b"\xc0\x0c" + good[-4:],
        "long label": good[:12] + b"\x40" + b"a" * 64 + b"\0" + good[-4:],
        "long name": query("x." * 127 + "x"),
    }


@pytest.mark.parametrize("disease", malformed("x"))
def test_malformed_packets_get_no_answer(web, server, disease):
    server.send(malformed(web.site(0).host)[disease])
    reply = ask(server, query(web.site(0).host, number=99))  # the next answer is that to the next question
    assert reply[:2] == b"\0c"
    assert answers(reply) == 1


def test_the_longest_name_is_still_a_name():
    longest = "x." * 126 + "x"  # 255 bytes with its lengths and its end
    assert len(wire(longest)) == 255
    assert answer(query(longest), lambda _: None) is not None


def test_every_cut_and_every_flipped_byte_is_survived(web):
    packet = query(web.site(0).host)
    lookup = addresses_of(web, ADDRESSES)
    for place in range(len(packet)):
        assert answer(packet[:place], lookup) is None
        for value in (0, 1, 0x3F, 0x40, 0x80, 0xC0, 0xFF):
            answer(packet[:place] + bytes([value]) + packet[place + 1 :], lookup)
