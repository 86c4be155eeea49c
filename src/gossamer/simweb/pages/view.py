"""The page that is being put together: blocks, links to items, titles. What all makers of blocks share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from gossamer.simweb.config import Kind, PageKind
from gossamer.simweb.pages.find import Found, address, item_address
from gossamer.simweb.pages.ranges import RANGES
from gossamer.simweb.pages.templates import paths
from gossamer.simweb.sites.site import Item, Site

Link = tuple[str, str]


class Block(msgspec.Struct, frozen=True):
    """One piece of a page; `texts` are paragraphs, or stand beside the links one by one."""

    role: str
    heading: str = ""
    links: Sequence[Link] = ()
    texts: Sequence[str] = ()
    kind: str = "a"  # a, img, form
    nofollow: bool = False
    fixed: str = ""  # a name, if all pages of the site in this era have the very same


class View(msgspec.Struct, frozen=True):
    """The page that is being put together, at the moment since when it has been so."""

    site: Site
    page: PageKind
    found: Found
    moment: int
    item: Item | None

    def ui(self, name: str) -> str:
        """A short text of the interface."""
        return self.site.language.ui[name]


def view(found: Found) -> View:
    """The page a URL leads to."""
    site, page = found.site, found.page
    assert site is not None
    assert page is not None
    item = site.item(found.args[0]) if page.over == "item" else None
    return View(site, page, found, found.since, item)


def title(here: View) -> str:
    """The title of the page."""
    if here.page.title and here.page.over == "site":
        return page_name(here, here.page)
    about = RANGES[here.page.over].title(here.site, here.found.args)
    part = RANGES[here.page.over].part(here.found.args)
    return f"{about} - {here.ui('page')} {part}" if part > 1 else about


def page_name(here: View, page: PageKind) -> str:
    """What a kind of page is called in the site's language."""
    return here.site.language.ui.get(page.title or page.name, page.name)


@lru_cache(maxsize=256)
def item_page(kind: Kind) -> PageKind | None:
    """The page of an item that links to items lead to: a useful one of HTML, or the first."""
    pages = [page for page in kind.pages if page.over == "item" and page.format in ("html", "pdf")]
    return min(pages, key=lambda page: (page.format != "html", not page.useful), default=None)


def item_link(site: Site, number: int, moment: int) -> Link | None:
    """A link to an item as it was at a moment; none if it was gone."""
    page = item_page(site.kind)
    item = site.item(number)
    if page is None or site.gone(item, moment):
        return None
    return item_address(site, page, item, moment), item.title


def listing_link(here: View, over: str, value: int, text: str) -> Link | None:
    """A link to the first part of a listing, if the site has such listings."""
    name = (over, value, here.site.era(here.moment))
    return here.site.keep(name, lambda: (_first_part(here, over, value, text),))[0]


def _first_part(here: View, over: str, value: int, text: str) -> Link | None:
    for page in here.site.kind.pages:
        if page.over == over and page.format == "html" and not page.useful:
            return address(here.site, page, (value, 1), here.moment), text
    return None


def item_links(here: View, found: Sequence[int]) -> list[Link]:
    """Links to items, those aside that are gone. Pages have dozens of these: what can be found once is found before the loop."""
    site, moment = here.site, here.moment
    page = item_page(site.kind)
    if page is None:
        return []
    way = paths(page.path[1 if moment >= site.relaunch and len(page.path) > 1 else 0])[0]
    item_of, path_of = site.item, way.item
    links = []
    for number in found:
        item = item_of(number)
        if not item.restless:
            links.append((path_of(item), item.title))
        elif not site.gone(item, moment):
            links.append((item_address(site, page, item, moment), item.title))
    return links
