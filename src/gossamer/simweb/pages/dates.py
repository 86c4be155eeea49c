"""Pages of dates: archives of years, months and days, and calendars that go on where nothing happens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gossamer.simweb.config import PageKind
from gossamer.simweb.pages.listings import Args, Range
from gossamer.simweb.sites.banks import day
from gossamer.simweb.sites.life import DAY
from gossamer.simweb.sites.site import Site, day_number, month_days


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
        fields = {
            name: f"{value:0{2 + 2 * (name == 'year')}d}"
            for name, value in zip(("year", "month", "day"), args, strict=False)
        }
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
        for date in self.dates(site, moment):
            if "{section}" in page.path[0]:
                yield from ((*date, section) for section in range(len(site.sections)))
            else:
                yield date

    def dates(self, site: Site, moment: int) -> list[Args]:
        """The dates in which something was born, found by looking at dates or at items, whichever are fewer."""
        count = site.count(site.rebuilt(moment))
        if not count:
            return []
        first, last = (site.born(number) // DAY for number in (0, count - 1))
        if count < (last - first) // (1, 28, 300)[3 - self.length]:
            return sorted({self.date_of(site, number) for number in range(count)})
        found, before, today = [], 0, first
        while before < count:
            date = tuple(map(int, day(today)[: self.length]))
            days = _days(date)
            assert days is not None
            today = days[1]
            after = site.count(min(today * DAY - 1, moment))
            if after > before:
                found.append(date)
            before = after
        return found

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        span = self._span(site, args, site.rebuilt(moment))[::-1]
        if len(args) > self.length:
            return [number for number in span if site.by_section.of(number)[0] == args[-1]]
        return span[: 5 * site.kind.per_page]

    def title(self, site: Site, args: Args) -> str:
        return "-".join(self.fields(site, args, moved=False).values())

    def inside(self, site: Site, args: Args, moment: int) -> list[Args]:
        """The dates one step finer in which something was born."""
        date, finer = args[: self.length], Dates(self.length + 1)
        every = [(*date, n) for n in range(1, (12, 31)[self.length - 1] + 1)]
        return [one for one in every if finer._span(site, one, site.rebuilt(moment))]

    def date_of(self, site: Site, number: int) -> Args:
        """The date in which an item was born; before all dates if there is none."""
        return tuple(map(int, day(site.born(number) // DAY)[: self.length])) if number >= 0 else ()

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
