"""What page kinds range over: one page, every item, listings in parts, dates, traps.

Each range knows its pages by `args`, a tuple: how they are read off a URL and written into one, whether the page is there at a moment, since
when it is as it is, and which items it lists. A page that lists shows the state at the last time something new came up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gossamer.simweb.config import PageKind
from gossamer.simweb.sites.banks import Worded
from gossamer.simweb.sites.draw import chance, millionths
from gossamer.simweb.sites.pattern import Pattern
from gossamer.simweb.sites.site import Site

if TYPE_CHECKING:
    from gossamer.simweb.sites.life import Life

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
        item = site.item(args[0])
        return (site.after_move(item) if moved else item)._asdict() | {"page": str(args[1])}

    def part(self, args: Args) -> int:
        return int(args[1])

    def life(self, site: Site, page: PageKind, args: Args) -> Life:
        return site.life(args[0])

    def there(self, site: Site, page: PageKind, args: Args, moment: int) -> bool:
        return (
            site.born(args[0]) <= moment
            and args[1] <= self.parts(site, page, args, moment)
            and has(site, page, args[0])
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


class By(Listing):
    """A listing for every section, tag or author: the site's `sections` and `by_section`, and so on."""

    def __init__(self, field: str) -> None:
        self.field = field

    def values(self, site: Site) -> tuple[Worded, ...]:
        found: tuple[Worded, ...] = getattr(site, f"{self.field}s")
        return found

    def pattern(self, site: Site) -> Pattern:
        found: Pattern = getattr(site, f"by_{self.field}")
        return found


class Sitemaps(Listing):
    """Sitemap files of 1,000 items each, oldest first."""

    size = 1000

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        count = site.count(site.rebuilt(moment))
        return range((args[1] - 1) * self.size, min(args[1] * self.size, count))

    def parts(self, site: Site, page: PageKind, args: Args, moment: int) -> int:
        return max(1, -(-site.count(site.rebuilt(moment)) // self.size))


def has(site: Site, page: PageKind, number: int) -> bool:
    """Whether an item has a page of this kind."""
    return page.share >= 1 or chance(site.item(number).key >> 28 & 0xFFFFFFFF, millionths(page.share))
