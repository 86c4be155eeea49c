"""What a simulated web is made of: TOML → kinds of site, traits of hosts, and the web that mixes them.

`kinds/*.toml` and `traits.toml` beside this file are the built-in ones; a web's own file adds to them or replaces them by name. A typo is an
error that names the file and the field.
"""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, date, datetime, time
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from gossamer.errors import SettingsError

S = TypeVar("S", bound=msgspec.Struct)
Over = Literal[
    "site", "item", "all", "section", "tag", "author", "year", "month", "day", "facets", "calendar", "maze", "go", "search", "sitemap"
]  # fmt: skip
Format = Literal["html", "rss", "atom", "sitemap", "pdf", "png"]
Span = tuple[Annotated[int, msgspec.Meta(ge=0)], Annotated[int, msgspec.Meta(ge=0)]]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
FIRST_YEAR, LAST_YEAR = 1980, 2200


class PageKind(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True, kw_only=True):
    """Pages of one shape: where they are, how many there are, what is on them."""

    name: str
    path: Annotated[
        tuple[str, ...], msgspec.Meta(min_length=1, max_length=2)
    ]  # a second path holds after the site's relaunch
    over: Over = "site"
    blocks: tuple[str, ...] = ()
    format: Format = "html"
    title: str = ""  # a text of the language's [ui]
    useful: bool = False
    menu: bool = False  # linked from every menu
    footer: bool = False  # linked from every footer
    disallow: bool = False  # robots.txt keeps crawlers out
    noindex: bool = False
    nofollow: bool = False  # links to it say so
    parts: Span = (1, 1)  # over items: how many pages each has
    facets: dict[str, tuple[str, ...]] = {}
    depth: int = 0  # of traps: how far they go
    share: Share = 1.0  # over items: how many of them have it


class Kind(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True, kw_only=True):
    """Sites of one sort."""

    name: str
    about: str
    pages: Annotated[tuple[PageKind, ...], msgspec.Meta(min_length=1)]
    share: Annotated[int, msgspec.Meta(ge=0)] = 10  # how many of the sites, beside the other kinds
    scale: Count = 1  # how much larger they are than others of their rank
    urls_per_item: Count = 3  # about so many URLs exist for each item
    sections: Span = (4, 8)
    tags: Span = (8, 24)
    authors: Span = (3, 12)
    years: Span = (2, 8)  # age when the web starts
    per_page: Count = 20
    rebuilt: Count = 3600  # seconds between two looks of its listings at what is new
    edited: Share = 0.2  # share of items that are edited
    steady: bool = False  # edited for ever, each at its own pace, rather than in the days after birth
    deleted: Share = 0.03
    moved: Share = 0.02
    relaunched: Share = 0.1  # share of sites that change their URLs around the start of the web
    wire: Share = 0.0  # share of items that are an agency's, with small edits
    paragraphs: Span = (5, 14)
    external: Span = (0, 3)  # links to other hosts on an item's page
    platform: Annotated[str, msgspec.Meta(pattern="^[a-z0-9-]*$")] = (
        ""  # a domain that many such sites are hosted under
    )
    hosted: Share = 0.0  # share of the sites that are
    traits: tuple[str, ...] = ()  # that all its sites have


class Manner(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a host behaves; traits set some of these."""

    www: bool = False  # its own name begins with www.
    other: Literal["mirror", "redirect", "absent"] = "redirect"  # what the name with or without www. does
    soft404: bool = False
    sessions: int = 0  # how many session ids it hands out
    latency_ms: Span = (0, 0)
    failing: Share = 0.0  # share of answers that are errors
    fail_status: int = 503
    limit: int = 0  # requests per 10 s before it says 429
    retry_after: int = 0  # seconds, said with 429 and 503
    down_minutes: int = 0  # of each hour
    silent: Literal["", "close", "stall", "drip"] = ""  # hangs up, never answers, or sends a byte a second
    robots: Literal["plain", "none", "empty", "closed", "broken", "redirect", "html", "messy", "named", "large"] = (
        "plain"
    )
    crawl_delay: int = 0
    legacy: bool = False  # a charset from before Unicode
    declared: Literal["both", "header", "meta", "none", "wrong"] = "both"
    gzip: bool = False
    validators: Literal["both", "etag", "date", "none"] = "both"
    hrefs: Literal["path", "absolute", "scheme", "base"] = "path"
    canonical: bool = False
    old_urls: Literal["redirect", "gone", "kept"] = "redirect"  # after a relaunch
    gone_status: int = 404
    tls: Literal["good", "expired", "stranger"] = "good"


class Trait(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One peculiarity and the share of hosts that have it; of a group each host has at most one."""

    name: str
    about: str
    set: dict[str, Any]
    share: Share = 0.0
    group: str = ""
    trouble: bool = False  # calm webs have none of it


class WebConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole web."""

    seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)] = 1
    hosts: Count = 1000
    pages: Count = 100_000
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    suffixes: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("test", "example")
    port: Port = 0  # in the URLs of http; 0: none
    tls_port: Port = 0  # in the URLs of https; 0: none
    calm: bool = False  # no host is slow, failing, silent or limiting
    https: Share = 0.0  # share of sites whose own URLs are https
    languages: dict[str, Count] = {}
    kinds: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}  # if given, only these, with these shares
    traits: dict[str, Share] = {}  # shares that replace those of the traits
    site: tuple[Kind, ...] = ()  # further kinds, or others of a name
    trait: tuple[Trait, ...] = ()


LANGUAGES = {
    "en": 36, "de": 7, "ru": 7, "ja": 5, "es": 6, "fr": 5, "zh": 5, "pt": 4, "it": 3, "tr": 2, "pl": 2, "nl": 2,
    "ar": 2, "vi": 2, "cs": 2, "ko": 2, "sv": 1, "el": 1, "he": 1, "hi": 1, "uk": 1, "fi": 1,
}  # fmt: skip


def load_web(path: Path | None = None, **given: Any) -> WebConfig:
    """The web a file describes, with what was `given` on top; without a file the default one."""
    config = _fit(_read(path), WebConfig, str(path)) if path else WebConfig()
    config = _fit(msgspec.to_builtins(config) | {k: v for k, v in given.items() if v is not None}, WebConfig, "the web")
    if config.hosts < 1 or config.pages < config.hosts:
        raise SettingsError(f"a web of {config.hosts} hosts needs at least one page each; pages = {config.pages}")
    for suffix in config.suffixes:
        if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)*", suffix):
            raise SettingsError(f"{suffix!r} is no suffix of host names; write it like test or co.example")
    if not FIRST_YEAR <= config.start.year <= LAST_YEAR:
        raise SettingsError(f"start = {config.start:%Y-%m-%d}: choose a year from {FIRST_YEAR} to {LAST_YEAR}")
    if config.start.tzinfo is None:
        config = msgspec.structs.replace(config, start=config.start.replace(tzinfo=UTC))
    return config


def kinds_of(config: WebConfig) -> tuple[tuple[Kind, int], ...]:
    """The kinds a web mixes, with their shares."""
    known = {kind.name: kind for kind in (*builtin_kinds(), *config.site)}
    _known("kind of site", config.kinds, known)
    shares = config.kinds or {kind.name: kind.share for kind in known.values()}
    chosen = tuple((known[name], share) for name, share in sorted(shares.items()) if share > 0)
    if not chosen:
        raise SettingsError("no kind of site has a share; see [kinds]")
    return chosen


def traits_of(config: WebConfig) -> dict[str, Trait]:
    """The traits a web knows, with their shares; those it gives itself come first and keep theirs when a group has too many."""
    known = {trait.name: trait for trait in (*builtin_traits(), *config.trait)}
    _known("trait", config.traits, known)
    given = {name: msgspec.structs.replace(known[name], share=share) for name, share in config.traits.items()}
    for trait in known.values():
        how = _fit(trait.set, Manner, f"trait {trait.name}")
        if how.latency_ms[0] > how.latency_ms[1]:
            raise SettingsError(f"trait {trait.name}: latency_ms must rise")
    for group in {trait.group for trait in given.values() if trait.group}:
        total = sum(trait.share for trait in given.values() if trait.group == group)
        if total > 1:
            raise SettingsError(f"[traits] gives {total:g} of all hosts traits of the group {group}; 1 is the most")
    return given | {name: trait for name, trait in known.items() if name not in given}


@lru_cache(maxsize=1)
def builtin_kinds() -> tuple[Kind, ...]:
    """The kinds of site that come with Gossamer."""
    folder = resources.files("gossamer.simweb") / "kinds"
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return tuple(_fit(tomllib.loads(file.read_text(encoding="utf-8")), Kind, file.name) for file in found)


@lru_cache(maxsize=1)
def builtin_traits() -> tuple[Trait, ...]:
    """The traits that come with Gossamer."""
    text = (resources.files("gossamer.simweb") / "traits.toml").read_text(encoding="utf-8")
    return tuple(_fit(trait, Trait, "traits.toml") for trait in tomllib.loads(text)["trait"])


def manner(sets: dict[str, Any]) -> Manner:
    """The manner that traits have set."""
    return msgspec.convert(sets, Manner)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        if type(found.get("start")) is date:
            found["start"] = datetime.combine(found["start"], time(), UTC)
        return found
    except OSError as error:
        raise SettingsError(f"cannot read the web {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no TOML: {error}") from error


def _fit(document: Any, kind: type[S], where: str) -> S:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{where}: {error}") from error


def _known(what: str, named: dict[str, Any], known: dict[str, Any]) -> None:
    for name in named:
        if name not in known:
            raise SettingsError(f"there is no {what} {name!r}; known are {', '.join(sorted(known))}")
