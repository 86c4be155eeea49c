"""The names of the simulated web: DNS questions over UDP → the loopback address of the host, or word that there is none.

Only what a crawler's resolver needs (RFC 1035, without zones, TCP and EDNS): one question per packet. Sites are spread over the addresses by
their number, so that several hosts share an address as they do on the real web.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gossamer.simweb.web import Web

A, IN = 1, 1
RESPONSE, AUTHORITATIVE, RECURSIVE = 0x8000, 0x0400, 0x0080
ASKED_BACK = 0x0100 | 0x0010  # recursion desired, checking disabled: returned as they came
NO_ERROR, NO_NAME, NOT_KNOWN_HOW = 0, 3, 4
TTL = 300
LONGEST_NAME = 255
HEAD = struct.Struct("!6H")  # id, flags, questions, answers, authorities, additional
QUESTION = struct.Struct("!2H")  # type, class
RECORD = struct.Struct("!3HIH")  # pointer to the name, type, class, TTL, length
NAME_AT = 0xC000 | HEAD.size

Lookup = Callable[[str], str | None]


class Question(NamedTuple):
    """What a packet asks."""

    number: int
    flags: int
    name: str
    type: int
    family: int  # the class
    asked: bytes  # as it was written, which the answer repeats

    @property
    def opcode(self) -> int:
        """0 for an ordinary question."""
        return self.flags >> 11 & 0xF


def addresses_of(web: Web, addresses: Sequence[str]) -> Lookup:
    """The address of each host of a web; None for others."""

    def lookup(host: str) -> str | None:
        site = web.find(host)
        return addresses[site.index % len(addresses)] if site is not None else None

    return lookup


def question(packet: bytes) -> Question | None:
    """The question in a packet; None if it is damaged, an answer, or asks another number of them than one."""
    if len(packet) < HEAD.size:
        return None
    number, flags, questions, *_ = HEAD.unpack_from(packet)
    if flags & RESPONSE or questions != 1:
        return None
    labels, at = [], HEAD.size
    while at < len(packet) and packet[at]:
        length = packet[at]
        if (
            length > 63 or at - HEAD.size + length + 2 > LONGEST_NAME
        ):  # also a pointer, where there is nothing to point to
            return None
        labels.append(packet[at + 1 : at + 1 + length].replace(b".", b"\\."))  # a dot within a label is no border
        at += 1 + length
    end = at + 1 + QUESTION.size
    if len(packet) < end:
        return None
    name = b".".join(labels).decode("latin-1")
    kind, family = QUESTION.unpack_from(packet, at + 1)
    return Question(number, flags, name, kind, family, packet[HEAD.size : end])


def answer(packet: bytes, lookup: Lookup) -> bytes | None:
    """The answer to a packet; None for one that deserves none."""
    asked = question(packet)
    if asked is None:
        return None
    known_how = not asked.opcode and asked.family == IN
    found = lookup(asked.name.lower()) if known_how else None
    code = NOT_KNOWN_HOW if not known_how else NO_NAME if found is None else NO_ERROR
    records = b""
    if found is not None and asked.type == A:
        records = RECORD.pack(NAME_AT, A, IN, TTL, 4) + socket.inet_aton(found)
    flags = RESPONSE | AUTHORITATIVE | RECURSIVE | asked.flags & (0x7800 | ASKED_BACK) | code
    return HEAD.pack(asked.number, flags, 1, bool(records), 0, 0) + asked.asked + records


class Resolver(asyncio.DatagramProtocol):
    """Answers packets as they come."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        """The port is open."""
        self.transport = transport

    def datagram_received(self, data: bytes, client: tuple[str, int]) -> None:
        """Answer a packet, if it is a question."""
        reply = answer(data, self.lookup)
        if reply is not None and self.transport is not None:
            self.transport.sendto(reply, client)


async def start(lookup: Lookup, address: str = "127.0.0.1", port: int = 0) -> tuple[asyncio.DatagramTransport, int]:
    """Listen, and say at which port; 0 takes a free one."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: Resolver(lookup), local_addr=(address, port))
    return transport, transport.get_extra_info("sockname")[1]
