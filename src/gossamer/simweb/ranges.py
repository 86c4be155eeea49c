"""What page kinds range over: one page, every item, listings in parts, dates, traps.

Each range knows its pages by `args`, a tuple: how they are read off a URL and written into one, whether the page is there at a moment, since
when it is as it is, and which items it lists. A page that lists shows the state at the last time something new came up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from gossamer.simweb.banks import Worded, day
from gossamer.simweb.config import PageKind
from gossamer.simweb.draw import chance, key_of
from gossamer.simweb.life import DAY, NEVER
from gossamer.simweb.pattern import Pattern
from gossamer.simweb.site import Site, day_number, month_days
from gossamer.simweb.text import topic

if TYPE_CHECKING:
    from gossamer.simweb.life import Life

Args = tuple[Any, ...]


class Range:
    """One page for the whole site; the others differ where they say so."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        """The page a URL's fields name, whether or not it is there."""
        return ()

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        """What the page's URL says."""
        return {}

    def part(self, args: Args) -> int:
        """Which part of a listing it is."""
        return 1

    def life(self, site: Site, page: PageKind, args: Args) -> Life | None:
        """The life of the item the page is about."""
        return None

    def there(self, site: Site, page: PageKind, args: Args, moment: int) -> bool:
        """Whether the page has come; going is told by its life."""
        return moment >= site.launch

    def news(self, site: Site, args: Args, moment: int) -> int:
        """When the last thing came that the page shows."""
        return site.launch

    def comings(self, site: Site, args: Args, after: int, until: int) -> list[int]:
        """The times in (after, until) at which things come that the page shows."""
        return []

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        """All pages there ever were until `moment`, those aside that only links make."""
        yield ()

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        """The items it lists, newest first."""
        return ()

    def parts(self, site: Site, page: PageKind, args: Args, moment: int) -> int:
        """How many parts the listing has."""
        return 1

    def title(self, site: Site, args: Args) -> str:
        """What the page is about, if its kind does not say."""
        return site.name


class Items(Range):
    """One page for every item, or several."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        if "id" not in fields:
            return None
        number = int(fields["id"]) - site.first_id
        return (number, int(fields.get("page", "1"))) if number >= 0 else None

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        fields = site.item_fields(site.item(args[0]), moved)
        fields["page"] = str(args[1])
        return fields

    def part(self, args: Args) -> int:
        return int(args[1])

    def life(self, site: Site, page: PageKind, args: Args) -> Life:
        return site.life(args[0])

    def there(self, site: Site, page: PageKind, args: Args, moment: int) -> bool:
        return (
            site.born(args[0]) <= moment and args[1] <= self.parts(site, page, args, moment) and has(site, page, args[0])
        )

    def news(self, site: Site, args: Args, moment: int) -> int:
        return site.life(args[0]).changed(moment)

    def comings(self, site: Site, args: Args, after: int, until: int) -> list[int]:
        return site.life(args[0]).changes(after, until)

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        for number in range(site.count(moment)):
            if has(site, page, number):
                for part in range(1, self.parts(site, page, (number,), moment) + 1):
                    yield number, part

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        return (args[0],)

    def parts(self, site: Site, page: PageKind, args: Args, moment: int) -> int:
        low, high = page.parts
        return low + (site.item(args[0]).key >> 12) % (high - low + 1) if high > low else low

    def title(self, site: Site, args: Args) -> str:
        return site.item(args[0]).title


class Listing(Range):
    """All items, newest first, in parts."""

    def values(self, site: Site) -> tuple[Worded, ...]:
        """What there is a listing of; one of everything here."""
        return (("", ""),)

    def pattern(self, site: Site) -> Pattern | None:
        """Which items are in which listing."""
        return None

    field = ""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        part = int(fields.get("page", "1"))
        if not self.field:
            return 0, part
        slugs = [slug for _, slug in self.values(site)]
        return (slugs.index(fields[self.field]), part) if fields[self.field] in slugs else None

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        return {self.field: self.values(site)[args[0]][1], "page": str(args[1])}

    def part(self, args: Args) -> int:
        return int(args[1])

    def there(self, site: Site, page: PageKind, args: Args, moment: int) -> bool:
        return moment >= site.launch and args[1] <= self.parts(site, page, args, moment)

    def news(self, site: Site, args: Args, moment: int) -> int:
        count = self._count(site, args, site.rebuilt(moment))
        if not count:
            return site.launch
        pattern = self.pattern(site)
        last = count - 1 if pattern is None else pattern.nth(args[0], count - 1)
        return max(site.launch, site.seen(site.born(last)))

    def comings(self, site: Site, args: Args, after: int, until: int) -> list[int]:
        pattern = self.pattern(site)
        low, high = (self._count(site, args, site.rebuilt(moment)) for moment in (after, until - 1))
        born = (site.born(place if pattern is None else pattern.nth(args[0], place)) for place in range(low, high))
        return sorted({site.seen(moment) for moment in born})

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        for value in range(len(self.values(site))):
            for part in range(1, self.parts(site, page, (value,), moment) + 1):
                yield value, part

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        count = self._count(site, args, site.rebuilt(moment))
        high = count - (args[1] - 1) * site.kind.per_page
        places = range(high - 1, max(-1, high - 1 - site.kind.per_page), -1)
        pattern = self.pattern(site)
        return places if pattern is None else [pattern.nth(args[0], place) for place in places]

    def parts(self, site: Site, page: PageKind, args: Args, moment: int) -> int:
        if "{page}" not in page.path[0]:
            return 1
        return max(1, -(-self._count(site, args, site.rebuilt(moment)) // site.kind.per_page))

    def title(self, site: Site, args: Args) -> str:
        return self.values(site)[args[0]][0] or site.name

    def _count(self, site: Site, args: Args, moment: int) -> int:
        items, pattern = site.count(moment), self.pattern(site)
        return items if pattern is None else pattern.count(args[0], items)


class Sections(Listing):
    """A listing for every section."""

    field = "section"

    def values(self, site: Site) -> tuple[Worded, ...]:
        return site.sections

    def pattern(self, site: Site) -> Pattern | None:
        return site.by_section


class Tags(Listing):
    """A listing for every tag."""

    field = "tag"

    def values(self, site: Site) -> tuple[Worded, ...]:
        return site.tags

    def pattern(self, site: Site) -> Pattern | None:
        return site.by_tag


class Authors(Listing):
    """A listing for every author."""

    field = "author"

    def values(self, site: Site) -> tuple[Worded, ...]:
        return site.authors

    def pattern(self, site: Site) -> Pattern | None:
        return site.by_author


class Dates(Range):
    """An archive page for every year, month or day in which an item was born; args are its date, then perhaps a section."""

    def __init__(self, length: int) -> None:
        self.length = length

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        date = tuple(int(fields[name]) for name in ("year", "month", "day")[: self.length])
        if "section" not in fields:
            return date if _days(date) else None
        slugs = [slug for _, slug in site.sections]
        return (*date, slugs.index(fields["section"])) if fields["section"] in slugs and _days(date) else None

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        fields = {name: f"{value:0{2 + 2 * (name == 'year')}d}" for name, value in zip(("year", "month", "day"), args, strict=False)}
        if len(args) > self.length:
            fields["section"] = site.sections[args[-1]][1]
        return fields

    def there(self, site: Site, page: PageKind, args: Args, moment: int) -> bool:
        return bool(self._span(site, args, site.rebuilt(moment)))

    def news(self, site: Site, args: Args, moment: int) -> int:
        span = self._span(site, args, site.rebuilt(moment))
        return site.seen(site.born(span[-1])) if span else site.launch

    def comings(self, site: Site, args: Args, after: int, until: int) -> list[int]:
        born = (site.born(number) for number in self._span(site, args, until))
        return sorted({seen for seen in map(site.seen, born) if after < seen < until})

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        dates = {
            tuple(map(int, day(site.born(number) // DAY)[: self.length])) for number in range(site.count(site.rebuilt(moment)))
        }
        for date in sorted(dates):
            if "{section}" in page.path[0]:
                yield from ((*date, section) for section in range(len(site.sections)))
            else:
                yield date

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        span = self._span(site, args, site.rebuilt(moment))[::-1]
        if len(args) > self.length:
            return [number for number in span if site.by_section.of(number)[0] == args[-1]]
        return span[: 5 * site.kind.per_page]

    def title(self, site: Site, args: Args) -> str:
        return "-".join(self.fields(site, args, moved=False).values())

    def inside(self, site: Site, args: Args, moment: int) -> list[Args]:
        """The dates one step finer in which something was born."""
        span = self._span(site, args, site.rebuilt(moment))
        return sorted({tuple(map(int, day(site.born(number) // DAY)[: self.length + 1])) for number in span})

    def _span(self, site: Site, args: Args, moment: int) -> range:
        days = _days(args[: self.length])
        if not days:
            return range(0)
        low, high = days
        return range(site.count(min(low * DAY - 1, moment)), site.count(min(high * DAY - 1, moment)))


def _days(date: Args) -> tuple[int, int] | None:
    """The days of a year, month or day: the first and the one after the last."""
    if not 1 <= date[0] <= 9999:
        return None
    if len(date) == 1:
        return month_days(date[0], 1)[0], month_days(date[0], 12)[1]
    if len(date) == 2:
        return month_days(*date) if 1 <= date[1] <= 12 else None
    first = day_number(*date)
    return None if first is None else (first, first + 1)


class Calendar(Range):
    """A trap: a page for every month, `depth` months into past and future."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        year, month = int(fields["year"]), int(fields["month"])
        return (year, month) if year and 1 <= month <= 12 else None

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        return {"year": f"{args[0]:04d}", "month": f"{args[1]:02d}"}

    def there(self, site: Site, page: PageKind, args: Args, moment: int) -> bool:
        return moment >= site.launch and abs(self.distance(site, args)) <= page.depth

    def distance(self, site: Site, args: Args) -> int:
        """Months from the start of the web."""
        year, month, _ = map(int, day(site.web.start // DAY))
        return int((args[0] - year) * 12 + args[1] - month)

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        year, month, _ = map(int, day(site.web.start // DAY))
        yield year, month

    def title(self, site: Site, args: Args) -> str:
        return f"{site.language.ui['calendar']} {args[0]:04d}-{args[1]:02d}"


class Maze(Range):
    """A trap: relative links that repeat segments, `depth` deep."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        segments = tuple(fields["maze"].strip("/").split("/"))
        known = {slug for _, slug in site.sections[:2]}
        return segments if known.issuperset(segments) else None

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        return {"maze": "/".join(args)}

    def there(self, site: Site, page: PageKind, args: Args, moment: int) -> bool:
        return moment >= site.launch and len(args) <= page.depth

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        yield (site.sections[0][1],)

    def title(self, site: Site, args: Args) -> str:
        return " / ".join(map(unquote, args))


class Facets(Range):
    """A trap: a section filtered and sorted in every order of clicks; args are the section, then the choices as (name, value)."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        slugs = [slug for _, slug in site.sections]
        return (slugs.index(fields["section"]),) if fields["section"] in slugs else None

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        return {"section": site.sections[args[0]][1]}

    def news(self, site: Site, args: Args, moment: int) -> int:
        return RANGES["section"].news(site, (args[0], 1), moment)

    def comings(self, site: Site, args: Args, after: int, until: int) -> list[int]:
        return RANGES["section"].comings(site, (args[0], 1), after, until)

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        return iter(())

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        whole = list(RANGES["section"].items(site, page, (args[0], 1), moment))
        key = key_of(site.key, *map("=".join, sorted(args[1:])))
        return sorted(whole, key=lambda number: key_of(key, number))[: max(1, len(whole) >> len(args) - 1)]

    def title(self, site: Site, args: Args) -> str:
        return " · ".join([site.sections[args[0]][0], *(value for _, value in sorted(args[1:]))])


class Go(Range):
    """A redirector on the site's own host to anywhere; args are the URL it leads to."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        url = unquote(fields["url"])
        return (url,) if url.startswith(("http://", "https://")) else None

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        return {"url": quote(args[0], safe="")}

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        return iter(())


class Search(Range):
    """Results for any word, of which some are linked; args are the word as the URL spells it."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        return (fields["q"][:80],)

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        return {"q": args[0]}

    def news(self, site: Site, args: Args, moment: int) -> int:
        return RANGES["all"].news(site, (0, 1), moment)

    def comings(self, site: Site, args: Args, after: int, until: int) -> list[int]:
        return RANGES["all"].comings(site, (0, 1), after, until)

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        return iter(())

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        count = site.count(site.rebuilt(moment))
        chosen = {key_of(site.key, args[0], place) % count for place in range(10)} if count else set()
        return sorted(chosen, reverse=True)

    def words(self, site: Site) -> list[str]:
        """Words people look for."""
        return [quote(word) for word in topic(site.code, site.main_topic).words]

    def title(self, site: Site, args: Args) -> str:
        return f"{site.language.ui['search']}: {unquote(args[0])}"


class Sitemaps(Listing):
    """Sitemap files of 1,000 items each, oldest first."""

    size = 1000

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        count = site.count(site.rebuilt(moment))
        return range((args[1] - 1) * self.size, min(args[1] * self.size, count))

    def parts(self, site: Site, page: PageKind, args: Args, moment: int) -> int:
        return max(1, -(-site.count(site.rebuilt(moment)) // self.size))


RANGES: dict[str, Range] = {
    "site": Range(),
    "item": Items(),
    "all": Listing(),
    "section": Sections(),
    "tag": Tags(),
    "author": Authors(),
    "year": Dates(1),
    "month": Dates(2),
    "day": Dates(3),
    "calendar": Calendar(),
    "maze": Maze(),
    "facets": Facets(),
    "go": Go(),
    "search": Search(),
    "sitemap": Sitemaps(),
}


def has(site: Site, page: PageKind, number: int) -> bool:
    """Whether an item has a page of this kind."""
    return page.share >= 1 or chance(site.item(number).key >> 28 & 0xFFFFFFFF, round(page.share * 1_000_000))


__all__ = ["NEVER", "RANGES", "Args", "Range", "has"]
