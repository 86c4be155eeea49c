"""Which addresses may be connected to: public ones, and what the operator has named.

A crawler follows what strangers write, so nothing they write may lead it into the network it runs in. IPv6 addresses that
carry an IPv4 address are judged by that as well: Python's `is_global` calls several of them global.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from gossamer.errors import SettingsError

NAT64 = IPv6Network("64:ff9b::/96")
NEVER = (
    IPv6Network("64:ff9b:1::/48"),  # NAT64 of the local network
    IPv6Network("5f00::/16"),  # segment routing
    IPv6Network("fec0::/10"),  # site-local, which some versions of Python call global, as they do the next
    ip_network("192.0.0.0/24"),
    ip_network("192.88.99.0/24"),  # relays of 6to4
)
ISATAP = (0x00005EFE, 0x02005EFE)  # the third word of such an address


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address, and each IPv4 address inside it, is one of the public Internet."""
    if address.is_multicast or address.is_reserved or not address.is_global:
        return isinstance(address, IPv6Address) and address in NAT64 and _inner_public(address)
    if any(address in network for network in NEVER if network.version == address.version):
        return False
    return isinstance(address, IPv4Address) or _inner_public(address)


def _inner_public(address: IPv6Address) -> bool:
    return all(is_public(inner) for inner in embedded(address))


def embedded(address: IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses an IPv6 address carries: mapped, compatible, translated or tunnelled."""
    found: list[IPv4Address | None] = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    number = int(address)
    if address in NAT64 or (number >> 32 == 0 and number > 1) or (number >> 32) & 0xFFFFFFFF in ISATAP:
        found.append(IPv4Address(number & 0xFFFFFFFF))
    return [inner for inner in found if inner is not None]


class Guard:
    """Decides about addresses, of which few are different."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = tuple(parse_network(text) for text in allowed)
        self.allows = lru_cache(maxsize=65536)(self._allows)

    def _allows(self, address: str) -> bool:
        """Whether a connection to this address may be made; what is no address may not."""
        try:
            parsed = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if any(parsed in network for network in self._allowed if network.version == parsed.version):
            return True
        return is_public(parsed)


def parse_network(text: str):  # type: ignore[no-untyped-def]  # the two classes share no public base
    """A network as `10.0.0.0/8`, or one address."""
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise SettingsError(f"fetch.allow_networks: {error}; write it as 10.0.0.0/8") from error
