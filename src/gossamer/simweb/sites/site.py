"""One site: a web and a number → its host, language, sections and items, and what each is at a moment.

Nothing is stored: an item's facts come from one hash of its number, and listings from closed forms (pattern.py). Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from xxhash import xxh3_64_intdigest

from gossamer.simweb.sites.banks import HEADLINES, RARES, TOPICS, Worded, day, headlines, label, people, rares, tags
from gossamer.simweb.sites.draw import below, chance, key_of, numbers
from gossamer.simweb.sites.life import DAY, NEVER, Life, life, restless
from gossamer.simweb.sites.pattern import SPAN, Pattern, pattern
from gossamer.simweb.sites.text import Topic, language, topic

if TYPE_CHECKING:
    from gossamer.simweb.config import Kind, Manner
    from gossamer.simweb.web import Web

T = TypeVar("T")
THINGS_KEPT = 300  # by each site
ITEMS_KEPT = 100_000
WIRE = 1 << 62  # keys of agency stories are told from those of items by this bit
MASK = (1 << 64) - 1


class Item(NamedTuple):
    """What an item is, whenever."""

    number: int
    key: int
    born: int
    topic: int
    title: str
    section_number: int
    restless: bool  # moves or is deleted some day
    story: int  # the key its text is made from; that of an agency's story is shared by several sites
    # What paths say about it, by the names that templates use.
    id: str
    slug: str
    section: str
    year: str
    month: str
    day: str
    page: str


class Site:
    """The facts about one site."""

    def __init__(self, web: Web, index: int) -> None:
        self.web, self.index = web, index
        self.key = key_of(web.config.seed, "site", index)
        drawn = numbers(self.key, 13)
        self.kind: Kind = web.kind_for(drawn[0])
        self.code = web.language_for(index)
        self.language = language(self.code)
        self.manner: Manner = web.manner_for(self.kind, self.key)
        self.secure = chance(drawn[1], web.https)
        low, high = self.kind.years
        self.launch = web.start - low * 365 * DAY - below(drawn[2], (high - low) * 365 * DAY + 1)
        self.relaunch = (
            web.start + below(drawn[4], 360 * DAY) - 180 * DAY
            if chance(drawn[3], web.shares[self.kind.name].relaunched)
            else NEVER
        )
        self.size = web.size_of(index, self.kind)
        self.period = max(1, (web.start - self.launch) // self.size)
        self.first_id = 1000 + below(drawn[5], 90_000)
        self.skin = below(drawn[6], 4)
        self.main_topic = below(drawn[7], TOPICS)
        self.section_count = _between(drawn[8], self.kind.sections)
        self.tag_count = min(_between(drawn[9], self.kind.tags), self.size)
        self.author_count = min(_between(drawn[10], self.kind.authors), self.size)
        self.host, self.other_host = web.hosts_for(index, self.kind, self.manner, drawn[11])
        port = web.config.tls_port if self.secure else web.config.port
        self.origin = f"{'https' if self.secure else 'http'}://{self.host}" + (f":{port}" if port else "")
        self.charset = (
            self.language.charsets[drawn[12] % len(self.language.charsets)] if self.old_fashioned else "utf-8"
        )
        self.fates, self.wire = web.shares[self.kind.name].fates, web.shares[self.kind.name].wire
        self._item_key = self.key ^ 0x6974656D
        self._kept: dict[Any, Any] = {}
        self._life: tuple[int, Life | None] = (-1, None)

    @property
    def old_fashioned(self) -> bool:
        """Whether its pages are in a charset from before Unicode."""
        return self.manner.legacy and bool(self.language.charsets)

    @cached_property
    def name(self) -> str:
        """What the site calls itself."""
        return self.host.removeprefix("www.").split(".")[0].capitalize()

    @cached_property
    def topics(self) -> tuple[int, ...]:
        """The topics of its sections, the first its own."""
        step = 1 + 2 * (self.key % 8)
        return tuple((self.main_topic + step * place) % TOPICS for place in range(self.section_count))

    @cached_property
    def sections(self) -> tuple[Worded, ...]:
        """Its sections: names and path segments."""
        return tuple(label(self.code, number) for number in self.topics)

    @cached_property
    def tags(self) -> tuple[Worded, ...]:
        """Its tags: names and path segments, all different."""
        found: dict[str, Worded] = {}
        for number in self.topics:
            found |= {slug: (text, slug) for text, slug in tags(self.code, number)}
            if len(found) >= self.tag_count:
                break
        return tuple(found.values())[: self.tag_count]

    @cached_property
    def authors(self) -> tuple[Worded, ...]:
        """Its authors: names and path segments, all different."""
        known = people(self.code)
        start = self.key % len(known)
        return (known + known)[start : start + self.author_count]

    @cached_property
    def by_section(self) -> Pattern:
        """Which items are in which section."""
        return pattern(self.key, len(self.topics))

    @cached_property
    def by_tag(self) -> Pattern:
        """Which items bear which tags."""
        return pattern(self.key >> 8, len(self.tags), each=3)

    @cached_property
    def by_author(self) -> Pattern:
        """Which items are by which author."""
        return pattern(self.key >> 16, len(self.authors))

    def topic(self, number: int) -> Topic:
        """A topic in the site's language."""
        return topic(self.code, number)

    def era(self, moment: int) -> int:
        """0 before the relaunch, 1 from then on."""
        return 1 if moment >= self.relaunch else 0

    def born(self, number: int) -> int:
        """When an item is born: one in each period, somewhere in it."""
        return self.launch + number * self.period + (self._hash(number) >> 40) * self.period // (1 << 24)

    def count(self, moment: int) -> int:
        """How many items were born by then."""
        number = (moment - self.launch) // self.period
        if number < 0:
            return 0
        return number + 1 if self.born(number) <= moment else number

    def rebuilt(self, moment: int) -> int:
        """When the listings last looked at what is new."""
        return moment // self.kind.rebuilt * self.kind.rebuilt

    def seen(self, moment: int) -> int:
        """When the listings first show what happened at `moment`."""
        return -(-moment // self.kind.rebuilt) * self.kind.rebuilt

    def keep(self, name: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, made once for all pages of the site; for the few things that they share."""
        found: T | None = self._kept.get(name)
        if found is None:
            if len(self._kept) > THINGS_KEPT:
                self._kept.clear()
            found = self._kept[name] = make()
        return found

    def item(self, number: int) -> Item:
        """The facts about an item; those of late are remembered, for a page asks several times."""
        items = self.web.items
        found = items.get((self.index, number))
        if found is None:
            if len(items) >= ITEMS_KEPT:
                items.clear()
            found = items[self.index, number] = self._item(number)
        return found

    def _item(self, number: int) -> Item:
        key = xxh3_64_intdigest(number.to_bytes(8, "little"), self._item_key)
        born = self.launch + number * self.period + (key >> 40) * self.period // (1 << 24)
        section = self._section_at[number % SPAN]
        about, bank, slug = self._banks[section]
        worded_by, story = key, key & ~WIRE
        if self.wire and (key >> 21 & 0x3FF) * 1_000_000 >> 10 < self.wire:
            story = worded_by = self.web.story(self, number, born)
            about = story % TOPICS
            bank = headlines(self.code, about)
        head, head_slug = bank[worded_by % HEADLINES]
        own, own_slug = self._rares[(worded_by >> 9) % RARES]
        facts = (
            number, key, born, about, f"{head}{self.language.joiner}{own}", section, restless(key, self.fates), story,
            str(self.first_id + number), f"{head_slug}-{own_slug}", slug, *day(born // DAY), "1",
        )  # fmt: skip
        return tuple.__new__(Item, facts)  # four times as fast as Item(…)

    @cached_property
    def _section_at(self) -> list[int]:
        """The section at each place of the pattern."""
        return [values[0] for values in self.by_section.values]

    @cached_property
    def _banks(self) -> list[tuple[int, tuple[Worded, ...], str]]:
        """The topic of each section, its headlines, and the section's path segment."""
        return [
            (topic, headlines(self.code, topic), slug)
            for topic, (_, slug) in zip(self.topics, self.sections, strict=True)
        ]

    @cached_property
    def _rares(self) -> tuple[Worded, ...]:
        return rares(self.code)

    def life(self, number: int) -> Life:
        """What happens to an item, and when; the last one is remembered, for a page asks several times."""
        kept, found = self._life
        if found is None or kept != number:
            found = life(self.kind, self._hash(number), self.born(number), self.fates)
            self._life = number, found
        return found

    def moved(self, item: Item, moment: int) -> bool:
        """Whether an item had moved by then."""
        return item.restless and self.life(item.number).moved <= moment

    def gone(self, item: Item, moment: int) -> bool:
        """Whether an item had been deleted by then."""
        return item.restless and self.life(item.number).deleted <= moment

    def after_move(self, item: Item) -> Item:
        """An item as it is after it moved: with another path segment."""
        return item._replace(slug=f"{item.slug}-{rares(self.code)[(item.key >> 30) % RARES][1]}")

    def _hash(self, number: int) -> int:
        return xxh3_64_intdigest(number.to_bytes(8, "little"), self._item_key)


def _between(number: int, span: tuple[int, int]) -> int:
    return span[0] + below(number, span[1] - span[0] + 1)


@lru_cache(maxsize=4096)
def month_days(year: int, month: int) -> tuple[int, int]:
    """The first day of a month and of the next one, counted from 1970."""
    return _civil(year, month, 1), _civil(year + month // 12, month % 12 + 1, 1)


def _civil(year: int, month: int, date: int) -> int:
    """A date as days since 1970; the reverse of banks.day."""
    year -= month <= 2
    era, rest = divmod(year, 400)
    days = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + date - 1
    return era * 146097 + rest * 365 + rest // 4 - rest // 100 + days - 719468


def day_number(year: int, month: int, date: int) -> int | None:
    """A date as days since 1970; None if there is no such date."""
    if not 1 <= month <= 12:
        return None
    first, after = month_days(year, month)
    return first + date - 1 if 1 <= date <= after - first else None
