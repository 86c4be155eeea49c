"""Blocks that lead further: archives by date, traps, other sites."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from gossamer.simweb.config import PageKind, Span
from gossamer.simweb.pages.dates import Calendar, Dates
from gossamer.simweb.pages.find import address
from gossamer.simweb.pages.ranges import RANGES, Args
from gossamer.simweb.pages.view import Block, Link, View, item_link
from gossamer.simweb.sites.draw import below, chance, key_of, logarithmic, numbers
from gossamer.simweb.sites.site import Site

HUB = 16  # of so many items in a row one is the one that others link to


def archive(here: View, span: Span | None) -> Block:
    """The dates below this one; elsewhere all years, or months where there are no pages of years."""
    pages = {page.over: page for page in here.site.kind.pages if page.over in ("year", "month", "day")}
    finer = {"year": "month", "month": "day"}.get(here.page.over)
    start = finer or next((over for over in ("year", "month", "day") if over in pages), "")
    if start not in pages:
        return Block("archive", here.ui("archive"))
    page, reach = pages[start], RANGES[here.page.over]
    if not (finer and isinstance(reach, Dates)):
        links = _all_dates(here, page)
        name = f"archive {page.name} {here.site.era(here.moment)} {len(links)}"
        return Block("archive", here.ui("archive"), links, fixed=name)
    dates = reach.inside(here.site, here.found.args, here.moment)
    if "{section}" in page.path[0]:
        dates = [(*date, section) for date in dates for section in range(len(here.site.sections))]
    return Block("archive", here.ui("archive"), [_dated(here, page, date) for date in dates])


def _all_dates(here: View, page: PageKind) -> list[Link]:
    """Links to all dates until the page's moment: a part of those until the latest moment that was asked for."""
    site, reach = here.site, RANGES[page.over]
    assert isinstance(reach, Dates)
    kept = site.keep(("dates", page.name, site.era(here.moment)), lambda: _Archive([], [], 0))
    if here.moment > kept.until:
        kept.dates = reach.dates(site, here.moment)
        kept.links = [_dated(here, page, date) for date in kept.dates]
        kept.until = here.moment
    last = reach.date_of(site, site.count(site.rebuilt(here.moment)) - 1)
    return kept.links[: bisect_right(kept.dates, last)]


@dataclass
class _Archive:
    dates: list[Args]
    links: list[Link]
    until: int


def _dated(here: View, page: PageKind, date: Args) -> Link:
    return address(here.site, page, date, here.moment), RANGES[page.over].title(here.site, date)


def months(here: View, span: Span | None) -> Block | None:
    """A calendar's way on: the months before and after, and the next year."""
    reach = RANGES[here.page.over]
    if not isinstance(reach, Calendar):
        return None
    year, month = here.found.args
    around = [(year + (month + step - 1) // 12, (month + step - 1) % 12 + 1) for step in (-1, 1, 12)]
    return Block(
        "pager",
        here.ui("month"),
        [
            (address(here.site, here.page, args, here.moment), reach.title(here.site, args))
            for args in around
            if args[0] > 0 and reach.there(here.site, here.page, args, here.moment)
        ],
    )


def deeper(here: View, span: Span | None) -> Block | None:
    """A maze's way on: two sections below this very path."""
    args = here.found.args
    if here.page.over != "maze" or len(args) >= here.page.depth:
        return None
    links = [(address(here.site, here.page, (*args, slug), here.moment), text) for text, slug in here.site.sections[:2]]
    return Block("aside", here.ui("more"), links)


def facets(here: View, span: Span | None) -> Block | None:
    """Every choice that changes what is shown, added to those made already in the order of clicks."""
    pages = [page for page in here.site.kind.pages if page.over == "facets"]
    if not pages or here.page.over not in ("facets", "section"):
        return None
    page, args = pages[0], here.found.args
    made = dict(args[1:]) if here.page.over == "facets" else {}
    links = []
    for name, values in page.facets.items():
        for value in values:
            if made.get(name) != value:
                chosen = {key: kept for key, kept in made.items() if key != name} | {name: value}
                links.append((address(here.site, page, (args[0], *chosen.items()), here.moment), f"{name}: {value}"))
    return Block("facets", here.ui("filter"), links, nofollow=page.nofollow)


def outward(here: View, span: Span | None) -> Block:
    """Links to other sites, with anchors that say what is there."""
    return Block("external", here.ui("links"), _outward(here, span, "out"))


def go(here: View, span: Span | None) -> Block | None:
    """Links to other sites through the site's own redirector."""
    pages = [page for page in here.site.kind.pages if page.over == "go"]
    if not pages:
        return None
    links = [(address(here.site, pages[0], (url,), here.moment), text) for url, text in _outward(here, span, "go")]
    return Block("external", here.ui("links"), links, nofollow=pages[0].nofollow)


def _outward(here: View, span: Span | None, salt: str) -> list[Link]:
    low, high = span or here.site.kind.external
    key = key_of(here.site.key, salt, here.found.own)
    drawn = numbers(key, 1 + 4 * high)
    links = []
    for place in range(low + below(drawn[0], high - low + 1)):
        one, two, three, four = drawn[1 + 4 * place : 5 + 4 * place]
        link = _to(here.site.web.neighbour(here.site, one, two), three, four, here.moment)
        if link is not None:
            links.append(link)
    return links


def _to(other: Site, number: int, name: int, moment: int) -> Link | None:
    """A link to another site: its front page or one of its items, the newest more often."""
    if moment < other.launch:
        return None
    origin = other.origin
    if other.other_host and other.manner.other == "mirror" and chance(name, 200_000):
        origin = origin.replace(other.host, other.other_host, 1)
    count = other.count(moment)
    if number & 1 and count:
        link = item_link(other, (count - 1 - logarithmic(number, count)) // HUB * HUB, moment)
        return link and (origin + link[0], link[1])
    return f"{origin}/", f"{other.name}: {other.sections[0][0]}"
