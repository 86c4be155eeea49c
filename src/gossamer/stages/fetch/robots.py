"""robots.txt by RFC 9309: the bytes of one file and the name of an agent → what that agent may fetch.

Rules are sorted once, the longest first and `Allow` before `Disallow`, so that the first that matches decides. Patterns are
cut at their stars and the pieces found from the left, which takes linear time whatever a site writes. Patterns and paths
are compared in one spelling, in which only what can stand for itself on both sides is left bare: a URL's `*` and `$` become
`%2A` and `%24`, so those of a pattern are never mistaken for them.

Where the RFC leaves a choice we read files as Google's parser does, misspellings included. So only `Allow` and `Disallow`
end a list of user-agents; a `Crawl-delay` between them holds for the agents named so far.
"""

from __future__ import annotations

import math
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gossamer.events import harmless

LONGEST = 512_000  # bytes parsed (500 KiB is the RFC's least), cut at a line end
LONGEST_LINE = 1 << 14  # bytes; the rest of a line is not read
LONGEST_SAID = 500  # characters of a line that decided
MOST_SITEMAPS = 1_000

KINDS = {
    b"user-agent": "agent",
    b"useragent": "agent",
    b"user agent": "agent",
    b"allow": "allow",
    b"disallow": "disallow",
    b"dissallow": "disallow",
    b"dissalow": "disallow",
    b"disalow": "disallow",
    b"diasllow": "disallow",
    b"disallaw": "disallow",
    b"crawl-delay": "delay",
    b"crawl delay": "delay",
    b"sitemap": "sitemap",
    b"site-map": "sitemap",
}

_BARE = r"A-Za-z0-9\-._~:/?\[\]@!&()+,;="  # `'` is not: the URL standard encodes it in queries
_ENCODED = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"  # all but the unreserved
_NORMAL = re.compile(f"[{_BARE}]*+(?:{_ENCODED}[{_BARE}]*+)*+")
_ODD = re.compile(f"%[0-9A-Fa-f]{{2}}|[^%{_BARE}]")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_SECONDS = re.compile(r"\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")


class Verdict(NamedTuple):
    """Whether a URL may be fetched, and the line that says so."""

    allowed: bool
    line: str | None  # `12: Disallow: /private`; None: no rule matched


class Rule(NamedTuple):
    """A pattern, cut at its stars for matching."""

    needle: str  # the longest piece, to look for before anything else: most paths fail here; empty if the head is all
    head: str  # what a path begins with
    rest: tuple[str, ...] | None  # what follows, with anything between; None: nothing more is asked
    anchored: bool  # whether the path ends there
    verdict: Verdict


class Record(NamedTuple):
    """A line that means something."""

    number: int
    kind: str
    value: bytes
    line: bytes


UNRULED = Verdict(True, None)
ITSELF = Rule("/robots.txt", "/robots.txt", (), True, UNRULED)  # always allowed, whatever the rules


@dataclass(frozen=True, slots=True)
class Robots:
    """What one robots.txt means for one agent."""

    group: str | None = None  # the name by which its groups were chosen: the agent's, `*`, or None if there is neither
    crawl_delay: float | None = None  # seconds
    sitemaps: tuple[str, ...] = ()  # as written; they belong to no group
    rules: tuple[Rule, ...] = field(default=(), repr=False)  # the first that matches decides
    prefixes: tuple[str, ...] = field(default=(), repr=False)  # of all rules that are nothing more
    starred: tuple[Rule, ...] = field(default=(), repr=False)  # all others, for paths that no prefix fits

    def decide(self, url: str) -> Verdict:
        """Whether this normalised absolute URL may be fetched."""
        path = _path(url)
        rules = self.rules if path.startswith(self.prefixes) else self.starred
        for needle, head, rest, anchored, verdict in rules:
            begun = needle in path and path.startswith(head)
            if begun and (rest is None or _follows(path, len(head), rest, anchored)):
                return verdict
        return UNRULED


def parse_robots(body: bytes, agent: str) -> Robots:
    """What these bytes, whatever they are, mean for this agent."""
    name = product_token(agent)
    groups: dict[str, _Group] = {}
    sitemaps: dict[str, None] = {}
    named: list[_Group] = []  # the groups for which the current lines are, of those that matter
    listing = True  # whether a user-agent line joins the ones before it
    for record in _records(_as_utf8(body)):
        match record.kind:
            case "agent":
                if not listing:
                    named, listing = [], True
                token = product_token(_text(record.value))
                if token == "*" or (token and token == name):
                    group = groups.setdefault(token, _Group())
                    if group not in named:  # a name listed a thousand times takes each rule once
                        named.append(group)
            case "sitemap":
                if record.value and len(sitemaps) < MOST_SITEMAPS:
                    sitemaps[_text(record.value)] = None
            case "delay":
                for group in named:
                    group.delay(_text(record.value))
            case _:
                listing = False
                for group in named:
                    group.records.append(record)
    chosen = next((token for token in (name, "*") if token in groups), None)
    group = groups.get(chosen or "", _Group())
    rules = _sorted(group.records)
    prefixes = tuple(rule.head for rule in rules if rule.rest is None)
    starred = tuple(rule for rule in rules if rule.rest is not None)
    return Robots(chosen, group.crawl_delay, tuple(sitemaps), rules, prefixes, starred)


def product_token(agent: str) -> str:
    """The name by which groups call an agent, in lower case: what `Name/1.0 (more)` begins with; `*` for all agents."""
    if agent == "*" or agent.startswith(("* ", "*\t")):
        return "*"
    found = _TOKEN.match(agent)
    return found[0].lower() if found else ""


class _Group:
    """What all groups with one name say."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.crawl_delay: float | None = None

    def delay(self, value: str) -> None:
        """Take a delay if it is one; of several the longest is the polite one."""
        if _SECONDS.fullmatch(value) and math.isfinite(seconds := float(value)):
            self.crawl_delay = max(seconds, self.crawl_delay or 0.0)


def _as_utf8(body: bytes) -> bytes:
    """The part of a file that is read. NULs go: they say nothing, and UTF-16 without its mark is then readable too."""
    cut = len(body) > LONGEST
    body = body[: LONGEST + 1]  # one more, since it may be the end of the last line
    if body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        body = body.decode("utf-16", "replace").encode()
    if cut:
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r"), 0)]
    return body.removeprefix(BOM_UTF8).replace(b"\0", b"")


def _records(body: bytes) -> Iterator[Record]:
    """The lines that mean something. Of bytes, `splitlines` knows CR, LF and CRLF only, as the RFC does."""
    for number, line in enumerate(body.splitlines(), 1):
        bare = line[:LONGEST_LINE].partition(b"#")[0]
        key, colon, value = bare.partition(b":")
        kind = KINDS.get(key.strip().lower()) if colon else None
        if kind is None:
            kind, value = _without_colon(bare)
        if kind is not None:
            yield Record(number, kind, value.strip(), line)


def _without_colon(line: bytes) -> tuple[str | None, bytes]:
    """The kind and value of `Disallow /x`; with more words than that it is prose."""
    *key, value = line.split(None, 3) or [b""]
    return KINDS.get(b" ".join(key).lower()), value


def _sorted(records: list[Record]) -> tuple[Rule, ...]:
    """Rules in the order in which they decide, each pattern once."""
    found: dict[str, tuple[int, bool, Record]] = {}
    for record in records:
        if record.value.startswith((b"/", b"*")):  # an empty one says nothing, and no path begins with anything else
            pattern = _normal_pattern(record.value.decode("latin-1"))
            allowed = record.kind == "allow"
            if pattern not in found or (allowed and not found[pattern][1]):
                found[pattern] = (len(pattern), allowed, record)
    ordered = sorted(found.items(), key=lambda item: item[1][:2], reverse=True)
    rules = [_rule(pattern, Verdict(allowed, _said(record))) for pattern, (_, allowed, record) in ordered]
    return (ITSELF, *rules) if rules else ()


def _normal_pattern(pattern: str) -> str:
    """A pattern in the spelling of paths, in which the only bare `*` and `$` are the special ones."""
    anchor = "$" if pattern.endswith("$") else ""
    return "*".join(map(_normal, pattern.removesuffix("$").split("*"))) + anchor


def _rule(pattern: str, verdict: Verdict) -> Rule:
    """A normal pattern, cut at its stars."""
    anchored = pattern.endswith("$")
    head, *rest = pattern.removesuffix("$").split("*")
    pieces = (*filter(None, rest[:-1]), *rest[-1:])
    if pieces == ("",) or not (pieces or anchored):  # a star at the end asks for nothing, with `$` or without
        return Rule("", head, None, False, verdict)
    return Rule(max((head, *pieces), key=len), head, pieces, anchored, verdict)


def _follows(path: str, at: int, pieces: tuple[str, ...], anchored: bool) -> bool:
    """Whether the pieces come one after the other; taking each as early as it comes leaves most for the others."""
    if not pieces:
        return at == len(path)
    *before, last = pieces
    for piece in before:
        at = path.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return path.endswith(last, at) if anchored else path.find(last, at) >= 0


def _path(url: str) -> str:
    """Path and query in normal spelling."""
    start = url.find("/", 8)  # the third slash: a host has a character at least
    if start < 0:
        return "/"
    if _NORMAL.fullmatch(url, start):
        return url[start:]
    path = url[start:].partition("#")[0]
    return _normal(path if path.isascii() else path.encode("utf-8", "surrogatepass").decode("latin-1"))


def _normal(octets: str) -> str:
    """Octets (as characters below 256) with those encoded, and only those, that are neither unreserved nor bare."""
    return _ODD.sub(_spelled, octets)


def _spelled(found: re.Match[str]) -> str:
    text = found[0]
    octet = int(text[1:], 16) if len(text) == 3 else ord(text)
    return chr(octet) if octet in _UNRESERVED else f"%{octet:02X}"


def _said(record: Record) -> str:
    """A line by its number and as written, for people."""
    line = record.line.strip()[: 4 * LONGEST_SAID].decode("utf-8", "surrogateescape")
    return f"{record.number}: {harmless(line)}"[:LONGEST_SAID]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
