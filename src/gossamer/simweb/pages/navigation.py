"""Blocks that lead through a site: menus, crumbs, tags, related and newest items, parts of listings."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gossamer.simweb.config import PageKind, Span
from gossamer.simweb.pages.find import address, item_address
from gossamer.simweb.pages.linked import Search
from gossamer.simweb.pages.ranges import RANGES, has
from gossamer.simweb.pages.view import Block, Link, View, item_links, listing_link, page_name
from gossamer.simweb.sites.banks import day
from gossamer.simweb.sites.draw import below, key_of, numbers
from gossamer.simweb.sites.life import DAY
from gossamer.simweb.sites.site import month_days


def menu(here: View, span: Span | None) -> Block:
    """The front page, all sections, and what the kind puts into its menu."""
    name = f"menu {here.site.era(here.moment)}"
    return here.site.keep(name, lambda: replace(_menu(here), fixed=name))


def _menu(here: View) -> Block:
    sections = [listing_link(here, "section", n, text) for n, (text, _) in enumerate(here.site.sections)]
    chosen = [page for page in here.site.kind.pages if page.menu]
    return Block("menu", here.site.name, [_home(here), *filter(None, sections), *_pages(here, chosen)])


def footer(here: View, span: Span | None) -> Block:
    """What the kind puts into its footer and menu once more, and all sections."""
    name = f"footer {here.site.era(here.moment)}"
    return here.site.keep(name, lambda: replace(_footer(here), fixed=name))


def _footer(here: View) -> Block:
    chosen = [page for page in here.site.kind.pages if page.footer or page.menu]
    sections = [listing_link(here, "section", n, text) for n, (text, _) in enumerate(here.site.sections)]
    return Block("footer", here.ui("all_rights"), [*_pages(here, chosen), *filter(None, sections), _home(here)])


def crumbs(here: View, span: Span | None) -> Block:
    """The way from the front page."""
    links = [_home(here)]
    if here.item is not None:
        section = listing_link(
            here, "section", here.item.section_number, here.site.sections[here.item.section_number][0]
        )
        links += [section] if section else []
    return Block("crumbs", "", links)


def tags(here: View, span: Span | None) -> Block | None:
    """The item's tags."""
    if here.item is None:
        return None
    values = here.site.by_tag.of(here.item.number)
    links = [listing_link(here, "tag", value, here.site.tags[value][0]) for value in values]
    return Block("tags", here.ui("tags"), [link for link in links if link])


def cloud(here: View, span: Span | None) -> Block:
    """Many tags."""
    low, _ = span or (20, 20)
    name = f"cloud {low} {here.site.era(here.moment)}"
    return here.site.keep(name, lambda: replace(_cloud(here, low), fixed=name))


def _cloud(here: View, low: int) -> Block:
    links = [listing_link(here, "tag", n, text) for n, (text, _) in enumerate(here.site.tags[:low])]
    return Block("tags", here.ui("tags"), [link for link in links if link])


def latest(here: View, span: Span | None) -> Block:
    """The newest items."""
    count = here.site.count(here.moment)
    low, _ = span or (8, 8)
    return Block("aside", here.ui("latest"), item_links(here, range(count - 1, max(-1, count - 1 - low), -1)))


def related(here: View, span: Span | None) -> Block | None:
    """Items of the same section: some of its sixteen best-known ones, and some that came shortly before."""
    if here.item is None:
        return None
    low, _ = span or (6, 6)
    pattern, section = here.site.by_section, here.item.section_number
    mine = pattern.count(section, here.item.number)
    stride = max(1, (1 << mine.bit_length()) >> 5)
    chosen: dict[int, None] = {}
    for number in numbers(here.item.key ^ 5, low):
        place = mine - 1 - number % 8 if number & 8 else (number >> 8) % 16 * stride
        chosen[pattern.nth(section, max(0, min(place, mine - 1)))] = None
    chosen.pop(here.item.number, None)
    return Block("aside", here.ui("related"), item_links(here, list(chosen)))


def popular(here: View, span: Span | None) -> Block:
    """What was read most in the year before: the same on all pages that changed last in one year."""
    year = int(day(here.moment // DAY)[0])
    low, _ = span or (8, 8)
    name = f"popular {low} {year} {here.site.era(here.moment)}"
    return here.site.keep(name, lambda: replace(_popular(here, low, year), fixed=name))


def _popular(here: View, low: int, year: int) -> Block:
    site = here.site
    since, until = (month_days(each, 1)[0] * DAY for each in (year - 1, year))
    first, count = site.count(since), site.count(until)
    drawn = numbers(key_of(site.key, "popular", year), low)
    chosen = sorted({first + below(number, count - first) for number in drawn}) if count > first else []
    then = replace(here, moment=max(until, site.relaunch) if site.era(here.moment) else until)
    return Block("aside", here.ui("latest"), item_links(then, chosen))


def neighbours(here: View, span: Span | None) -> Block | None:
    """The items before and after."""
    if here.item is None:
        return None
    around = [n for n in (here.item.number - 1, here.item.number + 1) if 0 <= n < here.site.count(here.moment)]
    return Block("pager", "", item_links(here, around))


def also(here: View, span: Span | None) -> Block | None:
    """The other pages of this item: print, comments, files."""
    if here.item is None:
        return None
    links = [
        (item_address(here.site, page, here.item, here.moment), page_name(here, page))
        for page in here.site.kind.pages
        if page.over == "item"
        and page is not here.page
        and page.format != "png"
        and has(here.site, page, here.item.number)
    ]
    return Block("also", "", links)


def copies(here: View, span: Span | None) -> Block:
    """This very page under parameters that count readers."""
    own = here.found.own
    mark = "&" if "?" in own else "?"
    links = [(f"{own}{mark}utm_source={name}", f"{here.ui('share')} {name}") for name in ("mail", "feed")]
    return Block("also", here.ui("share"), links)


def picture(here: View, span: Span | None) -> Block | None:
    """The item's picture."""
    pages = [page for page in here.site.kind.pages if page.format == "png"]
    if here.item is None or not pages or not has(here.site, pages[0], here.item.number):
        return None
    return Block(
        "picture", "", [(item_address(here.site, pages[0], here.item, here.moment), here.item.title)], kind="img"
    )


def pager(here: View, span: Span | None) -> Block | None:
    """The other parts of this listing: the next ones, the one before, the last."""
    reach = RANGES[here.page.over]
    part, parts = reach.part(here.found.args), reach.parts(here.site, here.page, here.found.args, here.moment)
    if parts < 2:
        return None
    near = {n: str(n) for n in range(max(1, part - 2), min(parts, part + 4) + 1) if n != part} | (
        {parts: str(parts)} if parts != part else {}
    )
    near |= {n: here.ui(name) for n, name in ((part - 1, "previous"), (part + 1, "next")) if 1 <= n <= parts}
    first = here.found.args[0]
    return Block(
        "pager",
        here.ui("page"),
        [(address(here.site, here.page, (first, n), here.moment), text) for n, text in near.items()],
    )


def searches(here: View, span: Span | None) -> Block | None:
    """Words that others looked for."""
    pages = [page for page in here.site.kind.pages if page.over == "search"]
    if not pages:
        return None
    reach = RANGES["search"]
    assert isinstance(reach, Search)
    words = reach.words(here.site)[: (span or (5, 5))[0]]
    links = [(address(here.site, pages[0], (word,), here.moment), reach.title(here.site, (word,))) for word in words]
    return Block("aside", here.ui("search"), links)


def form(here: View, span: Span | None) -> Block | None:
    """The field to search in."""
    pages = [page for page in here.site.kind.pages if page.over == "search"]
    return (
        Block("form", here.ui("search"), [(pages[0].path[0].partition("?")[0], here.ui("search"))], kind="form")
        if pages
        else None
    )


def _pages(here: View, chosen: Sequence[PageKind]) -> list[Link]:
    links = []
    for page in chosen:
        for args in RANGES[page.over].every(here.site, page, here.moment):
            links.append((address(here.site, page, args, here.moment), page_name(here, page)))
            break
    return links


def _home(here: View) -> Link:
    return "/", here.ui("home")
