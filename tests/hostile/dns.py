"""A name server that misbehaves on request: a zone says for each name what is answered, when, and whether it makes sense.

UDP and TCP share a port. It answers as a resolver does: aliases are followed within the zone and all of the chain is in the answer. A name that
the zone does not have may be there as `*.` and its parent; else it does not exist.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from gossamer.simweb.serving.dns import (
    ASKED_BACK,
    HEAD,
    IN,
    NO_ERROR,
    NO_NAME,
    RECURSIVE,
    RESPONSE,
    A,
    Question,
    question,
)
from tests.hostile.sockets import in_thread, listen

AAAA, CNAME = 28, 5
SERVFAIL, REFUSED = 2, 5
TRUNCATED = 0x0200
LARGEST_PACKET = 512
LONGEST_CHAIN = 40
FIELDS = struct.Struct("!2HIH")  # type, class, TTL, length
Manner = Literal["plain", "silent", "truncated", "truncated-always", "garbage", "short", "wrong-id", "wrong-question"]
Family = Literal["udp", "tcp"]


class Record(NamedTuple):
    """One record of an answer: an address, or the name an alias is for."""

    value: str
    ttl: int = 300

    @property
    def type(self) -> int:
        try:
            return A if ipaddress.ip_address(self.value).version == 4 else AAAA
        except ValueError:
            return CNAME

    @property
    def data(self) -> bytes:
        return wire_name(self.value) if self.type == CNAME else ipaddress.ip_address(self.value).packed


@dataclass(frozen=True)
class Name:
    """What is answered for a name: its records, in turns of which the last remains, and the manner of it."""

    turns: tuple[tuple[Record, ...], ...] = ((),)
    code: int = NO_ERROR
    after: float = 0.0
    manner: Manner = "plain"

    def late(self, seconds: float) -> Name:
        """The same, after some seconds."""
        return replace(self, after=seconds)

    def in_manner(self, manner: Manner) -> Name:
        """The same in another manner."""
        return replace(self, manner=manner)

    def of(self, kind: int, turn: int) -> list[Record]:
        """The records for a type of question, asked for the nth time (from 0)."""
        return [each for each in self.turns[min(turn, len(self.turns) - 1)] if each.type in (kind, CNAME)]


def at(*addresses: str, ttl: int = 300) -> Name:
    """A name with addresses, or with a chain's next name; with none of them it is there but has no data."""
    return Name((tuple(Record(address, ttl) for address in addresses),))


def rebinding(*turns: str, ttl: int = 0) -> Name:
    """A name that has another address each time it is asked, up to the last."""
    return Name(tuple((Record(address, ttl),) for address in turns))


NODATA = Name()
NXDOMAIN, SERVER_FAILS, REFUSES = Name(code=NO_NAME), Name(code=SERVFAIL), Name(code=REFUSED)
NEVER, GARBAGE = Name(manner="silent"), Name(manner="garbage")
LONGEST_TTL = 2**31 - 1

PUBLIC, LOOPBACK = "93.184.216.34", "127.0.0.1"
HOSTILE_ZONE: dict[str, Name] = {  # every behaviour once; HTTP goes to 127.0.0.1 where it goes anywhere
    "good.test": at(LOOPBACK),
    "six.test": at("::1"),
    "both.test": at(LOOPBACK, "::1"),
    "several.test": at("127.0.0.1", "127.0.0.2", "127.0.0.3"),
    "many.test": at(*(f"127.0.1.{n}" for n in range(1, 201))),
    "alias.test": at("alias2.test"),
    "alias2.test": at("good.test"),
    **{f"chain{n}.test": at(f"chain{n + 1}.test") for n in range(30)},
    "chain30.test": at(LOOPBACK),
    "alias-self.test": at("alias-self.test"),
    "alias-a.test": at("alias-b.test"),
    "alias-b.test": at("alias-a.test"),
    "alias-nowhere.test": at("missing.test"),
    "alias-private.test": at("private.test"),
    "late.test": at(LOOPBACK).late(1.0),
    "never.test": NEVER,
    "servfail.test": SERVER_FAILS,
    "refused.test": REFUSES,
    "nodata.test": NODATA,
    "truncated.test": at(LOOPBACK).in_manner("truncated"),
    "truncated-always.test": at(LOOPBACK).in_manner("truncated-always"),
    "garbage.test": GARBAGE,
    "short.test": at(LOOPBACK).in_manner("short"),
    "wrong-id.test": at(LOOPBACK).in_manner("wrong-id"),
    "wrong-question.test": at(LOOPBACK).in_manner("wrong-question"),
    "rebind.test": rebinding(PUBLIC, LOOPBACK),
    "rebind-back.test": rebinding(PUBLIC, LOOPBACK, PUBLIC),
    "public-and-loopback.test": at(PUBLIC, LOOPBACK, ttl=0),
    "loopback-and-public.test": at(LOOPBACK, PUBLIC, ttl=0),
    "public-and-six.test": at(PUBLIC, "::1", ttl=0),
    "private.test": at("10.0.0.1"),
    "metadata.test": at("169.254.169.254"),
    "cgnat.test": at("100.64.0.1"),
    "unspecified.test": at("0.0.0.0", "::"),
    "mapped.test": at("::ffff:127.0.0.1"),
    "nat64.test": at("64:ff9b::7f00:1"),
    "sixtofour.test": at("2002:7f00:1::"),
    "ttl-0.test": at(LOOPBACK, ttl=0),
    "ttl-huge.test": at(LOOPBACK, ttl=LONGEST_TTL),
    "ttl-negative.test": at(LOOPBACK, ttl=2**32 - 1),  # RFC 2181: to be taken as 0
    "*.wild.test": at(LOOPBACK),
}


class Query(NamedTuple):
    """A question as the server's record keeps it."""

    time: float  # monotonic
    name: str  # in lower case
    type: int
    over: Family


class DnsServer:
    """What a test sees of the server, and how it answers."""

    def __init__(self, zone: Mapping[str, Name], port: int) -> None:
        self.zone = {name.lower().rstrip("."): what for name, what in zone.items()}
        self.port = port
        self._queries: list[Query] = []
        self._asked: Counter[tuple[str, int]] = Counter()
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def queries(self) -> list[Query]:
        """Every question so far; a copy, to be had from any thread."""
        return list(self._queries)

    @property
    def server(self) -> str:
        """Address and port, as resolvers are told."""
        return f"127.0.0.1:{self.port}"

    def find(self, name: str) -> Name:
        return self.zone.get(name) or self.zone.get(f"*.{name.partition('.')[2]}") or NXDOMAIN

    async def reply(self, packet: bytes, over: Family) -> bytes | None:
        """The answer to a packet, when its time has come."""
        asked = question(packet)
        if asked is None:
            return None
        name = asked.name.lower()
        self._queries.append(Query(time.monotonic(), name, asked.type, over))
        what = self.find(name)
        turn = self._asked[name, asked.type]
        self._asked[name, asked.type] += 1
        await asyncio.sleep(what.after)
        if what.manner == "silent":
            return None
        if what.manner == "garbage":
            return packet[:2] + b"\xff" * 40
        records, code = self._chain(name, asked.type, turn)
        cut = what.manner == "truncated-always" or (what.manner == "truncated" and over == "udp")
        answer = encode(asked, [] if cut else records, code, truncated=cut)
        if over == "udp" and len(answer) > LARGEST_PACKET:
            answer = encode(asked, [], code, truncated=True)
        return _spoiled(answer, what.manner)

    def _chain(self, name: str, kind: int, turn: int) -> tuple[list[tuple[str, Record]], int]:
        """The records of a name, and of those it is an alias for: once around, if it is a loop."""
        records: list[tuple[str, Record]] = []
        visited: set[str] = set()
        while name not in visited and len(visited) < LONGEST_CHAIN:
            visited.add(name)
            what = self.find(name)
            found = what.of(kind, turn)
            records += [(name, record) for record in found]
            following = next((record.value for record in found if record.type == CNAME), None)
            if following is None or kind == CNAME:
                return records, what.code
            name = following
        return records, NO_ERROR

    def spawn(self, task: asyncio.Task[None]) -> None:
        """Keep a task until it is done."""
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def over_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the questions of a connection, each with its length before it."""
        task = asyncio.current_task()
        assert task is not None
        self.spawn(task)
        try:
            while True:
                (length,) = struct.unpack("!H", await reader.readexactly(2))
                answer = await self.reply(await reader.readexactly(length), "tcp")
                if answer is not None:
                    writer.write(struct.pack("!H", len(answer)) + answer)
                    await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has left, or the test is over
        finally:
            writer.transport.abort()


class OverUdp(asyncio.DatagramProtocol):
    """Answers packets, each in a task of its own: some are late."""

    def __init__(self, server: DnsServer) -> None:
        self.server = server
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self.transport = transport

    def datagram_received(self, data: bytes, client: tuple[str, int]) -> None:
        self.server.spawn(asyncio.get_running_loop().create_task(self._answer(data, client)))

    async def _answer(self, data: bytes, client: tuple[str, int]) -> None:
        answer = await self.server.reply(data, "udp")
        if answer is not None and self.transport is not None:
            self.transport.sendto(answer, client)


def encode(asked: Question, records: list[tuple[str, Record]], code: int, *, truncated: bool = False) -> bytes:
    """A packet that answers a question; names are written out, which is long but right."""
    flags = RESPONSE | RECURSIVE | asked.flags & (0x7800 | ASKED_BACK) | code | (TRUNCATED if truncated else 0)
    packet = HEAD.pack(asked.number, flags, 1, len(records), 0, 0) + asked.asked
    for name, record in records:
        packet += wire_name(name) + FIELDS.pack(record.type, IN, record.ttl, len(record.data)) + record.data
    return packet


def wire_name(name: str) -> bytes:
    """A name as packets have it."""
    labels = [label.encode("latin-1") for label in name.rstrip(".").split(".")]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _spoiled(answer: bytes, manner: Manner) -> bytes:
    if manner == "wrong-id":
        return bytes([answer[0] ^ 0xFF, answer[1] ^ 0xFF]) + answer[2:]
    if manner == "wrong-question":
        return answer[: HEAD.size + 1] + b"x" + answer[HEAD.size + 2 :]
    return answer[:-3] if manner == "short" else answer


@contextmanager
def dns_server(zone: Mapping[str, Name]) -> Iterator[DnsServer]:
    """Answer for a zone on 127.0.0.1, over UDP and TCP at one port."""
    with in_thread(_running(zone), "hostile name server") as server:
        yield server


@asynccontextmanager
async def _running(zone: Mapping[str, Name]) -> AsyncIterator[DnsServer]:
    loop = asyncio.get_running_loop()
    for _ in range(20):
        (listener,) = listen(["127.0.0.1"])
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with contextlib.suppress(OSError):
            datagrams.bind(listener.getsockname())
            break
        listener.close()  # somebody has the port of that number for UDP
        datagrams.close()
    else:
        raise RuntimeError("no port is free for both UDP and TCP")
    server = DnsServer(zone, listener.getsockname()[1])
    transport, _ = await loop.create_datagram_endpoint(lambda: OverUdp(server), sock=datagrams)
    connections = await asyncio.start_server(server.over_tcp, sock=listener)
    try:
        yield server
    finally:
        connections.close()
        transport.close()
        tasks = list(server.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)
