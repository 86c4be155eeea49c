"""The whole web: configuration → sites by number or host name, their sizes, languages, manners and shared stories.

Sites are ranked; sizes fall as 1/rank (Zipf). Languages lie in a fixed pattern over the ranks, so a neighbour of the same language is found
without a search.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from xxhash import xxh3_64_intdigest

from gossamer.errors import SettingsError
from gossamer.simweb.config import LANGUAGES, Kind, Manner, Trait, WebConfig, kinds_of, manner, traits_of
from gossamer.simweb.sites.draw import below, chance, key_of, logarithmic, millionths, numbers
from gossamer.simweb.sites.life import DAY, Fates
from gossamer.simweb.sites.names import Names
from gossamer.simweb.sites.site import WIRE, Item, Site
from gossamer.simweb.sites.text import languages

SLOTS = 64
SITES_KEPT = 8192
SMALLEST = 3  # items a site has at least when the web starts


class Shares(NamedTuple):
    """The shares of a kind, in a million."""

    wire: int
    relaunched: int
    hosted: int
    fates: Fates


class Web:
    """A web that can be asked for any of its sites."""

    def __init__(self, config: WebConfig) -> None:
        from gossamer.simweb.pages.blocks import check  # which knows pages, which know webs

        self.config = config
        self.start = int(config.start.timestamp())
        self.hosts = config.hosts
        self.https = millionths(config.https)
        self.names = Names(config.seed, config.hosts)
        self.kinds = kinds_of(config)
        self._traits = traits_of(config)
        for kind, _ in self.kinds:
            check(kind)
            if unknown := sorted(set(kind.traits) - self._traits.keys()):
                raise SettingsError(
                    f"site {kind.name}: no trait {unknown[0]!r}; see `gossamer simweb describe --traits`"
                )
        self.shares = {kind.name: _shares(kind) for kind, _ in self.kinds}
        self._kind_steps = list(accumulate(share for _, share in self.kinds))
        self._groups = _groups(self._traits, config.calm)
        self._slots = _slots(config)
        self._places = {code: [n for n, other in enumerate(self._slots) if other == code] for code in set(self._slots)}
        self._largest = _largest(config, self.kinds)
        self._story_seconds = {code: self._pace(code) for code in set(self._slots)}
        self.items: dict[tuple[int, int], Item] = {}
        self.site = lru_cache(maxsize=SITES_KEPT)(self._site)
        self.find = lru_cache(maxsize=SITES_KEPT)(self._find)
        self._manner = lru_cache(maxsize=4096)(self._merged)

    def _site(self, index: int) -> Site:
        return Site(self, index)

    def _find(self, host: str) -> Site | None:
        """The site that answers under a host name, its other name included."""
        labels = host.split(".")
        for label in labels[:2] if labels[0] == "www" else labels[:1]:
            index = self.names.site(label)
            if index is not None:
                site = self.site(index)
                if host == site.host or (host == site.other_host and site.manner.other != "absent"):
                    return site
        return None

    def kind_for(self, number: int) -> Kind:
        """The kind of the site that drew `number`."""
        place = below(number, self._kind_steps[-1])
        return next(kind for (kind, _), step in zip(self.kinds, self._kind_steps, strict=True) if place < step)

    def language_for(self, index: int) -> str:
        """The language of a site."""
        return self._slots[index % SLOTS]

    def size_of(self, index: int, kind: Kind) -> int:
        """How many items a site has when the web starts."""
        return max(SMALLEST, (self._largest * kind.scale >> 16) // ((index + 1) * kind.urls_per_item))

    def hosts_for(self, index: int, kind: Kind, how: Manner, number: int) -> tuple[str, str]:
        """The host name of a site, and the other one people try."""
        label = self.names.label(index)
        suffix = self.config.suffixes[index % len(self.config.suffixes)]
        if kind.platform and chance(number, self.shares[kind.name].hosted):
            return f"{label}.{kind.platform}.{suffix}", ""
        bare, www = f"{label}.{suffix}", f"www.{label}.{suffix}"
        return (www, bare) if how.www else (bare, www)

    def manner_for(self, kind: Kind, key: int) -> Manner:
        """How the site `key` behaves, by the traits it draws: at most one of each group."""
        names = list(kind.traits)
        for salt, group in self._groups:
            place = (xxh3_64_intdigest(salt, key) >> 32) * 1_000_000 >> 32
            names += [name for low, high, name in group if name and low <= place < high]
        return self._manner(tuple(names))

    def _merged(self, names: tuple[str, ...]) -> Manner:
        sets: dict[str, Any] = {}
        for name in names:
            sets |= self._traits[name].set
        return manner(sets)

    def neighbour(self, site: Site, number: int, other: int) -> Site:
        """A site that `site` may link to: a well-known one more often, of its own language three times in four."""
        index = logarithmic(number, self.hosts)
        if below(other, 4):
            places = self._places[site.code]
            near = index // SLOTS * SLOTS + places[other % len(places)]
            index = near if near < self.hosts else index
        return self.site(index)

    def story(self, site: Site, number: int, born: int) -> int:
        """The key of the agency's story that an item tells: the n-th item of each site in a time tells the n-th story of that time."""
        time = born // self._story_seconds[site.code]
        place = number - site.count(time * self._story_seconds[site.code] - 1)
        return key_of(self.config.seed, "story", site.code, time, place) | WIRE

    def _pace(self, code: str) -> int:
        """Seconds in which an agency counts its stories anew: long enough that the sites of a language tell some eight."""
        slots = self._slots.count(code)
        total = sum(share for _, share in self.kinds)
        wired = sum(
            self.config.pages * share * self.shares[kind.name].wire // (kind.urls_per_item * sum(kind.years) // 2)
            for kind, share in self.kinds
        )
        per_year = wired * slots // (total * SLOTS * 1_000_000)
        return min(730 * DAY, max(3600, 8 * 365 * DAY // (per_year + 1)))


def _shares(kind: Kind) -> Shares:
    fates = Fates(millionths(kind.edited), millionths(kind.moved), millionths(kind.deleted))
    return Shares(millionths(kind.wire), millionths(kind.relaunched), millionths(kind.hosted), fates)


def _groups(traits: dict[str, Trait], calm: bool) -> list[tuple[bytes, list[tuple[int, int, str]]]]:
    """The traits by group, each with the part of a million in which it is drawn; a group's draws depend on its name alone."""
    groups: dict[str, list[tuple[int, int, str]]] = {}
    for trait in traits.values():
        group = groups.setdefault(trait.group or trait.name, [])
        low = group[-1][1] if group else 0
        group.append((low, low + millionths(trait.share), "" if calm and trait.trouble else trait.name))
    return [(name.encode(), group) for name, group in sorted(groups.items())]


def _slots(config: WebConfig) -> list[str]:
    """The language of each of 64 places that repeat over the ranks, by share, in an order of the seed's own."""
    unknown = sorted(set(config.languages) - set(languages()))
    if unknown:
        raise SettingsError(f"[languages]: no language {unknown[0]!r}; known are {', '.join(languages())}")
    shares = config.languages or {code: share for code, share in LANGUAGES.items() if code in languages()}
    total = sum(shares.values())
    # One place each, if there are enough, and the rest where it is missed most.
    evenly = list(shares)[:SLOTS]
    while len(evenly) < SLOTS:
        evenly.append(min(shares, key=lambda code: (evenly.count(code) * total - shares[code] * SLOTS, code)))
    order = numbers(key_of(config.seed, "slots"), SLOTS)
    return [evenly[place] for place in sorted(range(SLOTS), key=lambda place: (order[place], place))]


def _largest(config: WebConfig, kinds: tuple[tuple[Kind, int], ...]) -> int:
    """URLs of the first site, times 65,536, such that all sites together have as many as asked for."""
    scale = sum(kind.scale * share for kind, share in kinds)
    share = sum(share for _, share in kinds)
    return config.pages * share * (1 << 48) // (scale * _harmonic(config.hosts))


def _harmonic(count: int) -> int:
    """1 + 1/2 + … + 1/count, times 2^32; from 65,536 on by blocks, each with the reciprocal of its middle."""
    exact = min(count, 1 << 16)
    total = sum((1 << 32) // rank for rank in range(1, exact + 1))
    block = max(1, (count - exact) // (1 << 16))
    for low in range(exact + 1, count + 1, block):
        width = min(block, count + 1 - low)
        total += width * (1 << 33) // (2 * low + width - 1)
    return total
