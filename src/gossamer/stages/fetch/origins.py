"""Origins (scheme, host, port): how each is reached, by which manners, and what its robots.txt says."""

from __future__ import annotations

import re
from fnmatch import translate
from ipaddress import ip_address
from typing import TYPE_CHECKING, TypedDict

from gossamer.errors import SettingsError
from gossamer.urls.domains import is_address

if TYPE_CHECKING:
    from gossamer.settings import FetchSettings, HostSettings
    from gossamer.stages.fetch.politeness import Queue
    from gossamer.stages.fetch.robots import Robots

PLACE = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<four>[0-9.]+))(?::(?P<port>[0-9]{1,5}))?|(?P<bare>[0-9a-fA-F:.]+)")
FILES = 8  # read at a time


class Pace(TypedDict, total=False):
    """Arguments of `Politeness.add`."""

    delay: float
    connections: int
    cap: int


class Origin:
    """One origin, as far as this process knows it."""

    __slots__ = (
        "error", "expires", "headers", "host", "literal", "mapped", "name", "outcome", "proxy", "queue",
        "retry_after", "robots", "scheme",
    )  # fmt: skip

    def __init__(self, name: str, queue: Queue) -> None:
        self.name = name
        self.queue = queue
        self.scheme, _, authority = name.partition("://")
        self.host = authority if authority.endswith("]") else re.sub(r":\d+$", "", authority)
        self.literal = self.host.strip("[]") if is_address(self.host) else None
        self.mapped: str | None = None  # where `fetch.connect_to` leads
        self.proxy = ""
        self.headers: tuple[str, ...] = ()
        self.robots: Robots | None = None
        self.expires = float("-inf")  # when robots.txt has to be asked for again
        self.error: str | None = None  # why robots.txt cannot be had: nothing may be fetched for now
        self.outcome = 0  # … and what that means for the URLs
        self.retry_after: int | None = None


class Manners:
    """What the settings say of single hosts."""

    def __init__(self, fetch: FetchSettings, hosts: list[HostSettings]) -> None:
        self._mapped = [(_fits(pattern), place(address)) for pattern, address in fetch.connect_to.items()]
        self._hosts = [(_fits(rule.pattern), rule) for rule in hosts]

    def mapped(self, host: str) -> str | None:
        """The address and port a host is to be reached at, if one is set."""
        return next((address for fits, address in self._mapped if fits.match(host)), None)

    def rule(self, host: str) -> HostSettings | None:
        """The first `[[host]]` that fits."""
        return next((rule for fits, rule in self._hosts if fits.match(host)), None)

    def pace(self, key: str) -> Pace:
        """How fast a queue goes, where that is not the usual; files need no delay."""
        rule = self.rule(key)
        if rule is None:
            return {} if key else {"delay": 0.0, "connections": FILES}
        pace: Pace = {"connections": rule.connections or 0, "cap": rule.cap}
        return pace if rule.delay_ms is None else {**pace, "delay": rule.delay_ms / 1000}


def place(text: str) -> str:
    """An address with a port, or without; no name, as nobody would check where that leads."""
    found = PLACE.fullmatch(text)
    try:
        ip_address((found["six"] or found["four"] or found["bare"]) if found else "")
        fits = found is not None and (found["port"] is None or 0 < int(found["port"]) < 65536)
    except ValueError:
        fits = False
    if not fits:
        raise SettingsError(f"fetch.connect_to: {text!r} is no address; write it as 127.0.0.1:8080 or [::1]:8080")
    return text


def _fits(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.lower()))
