"""URLs ⇄ pages: which page a URL names at a moment, whether it is there, has moved or is gone; and where a page is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from gossamer.simweb.config import Kind, PageKind
from gossamer.simweb.pages.ranges import RANGES, Args
from gossamer.simweb.pages.templates import Path, paths
from gossamer.simweb.sites.site import Item, Site
from gossamer.simweb.web import Web

SESSION = "sid"


class Route(NamedTuple):
    """One way into a page kind."""

    page: PageKind
    era: int
    path: Path


class Found(msgspec.Struct, frozen=True):
    """What a URL is at a moment."""

    status: int
    site: Site | None = None
    page: PageKind | None = None
    args: Args = ()
    since: int = 0  # the page has been as it is since then
    target: str = ""  # where a redirect leads
    session: str = ""
    own: str = ""  # the path and query that the page would give itself
    soft: bool = False  # says 200 and means 404


@lru_cache(maxsize=4096)
def routes(kind: Kind, slashes: int) -> tuple[Route, ...]:
    """The ways into a kind of site by paths with so many slashes, the most particular first."""
    found: list[Route] = []
    for page in kind.pages:
        for era, template in enumerate(page.path):
            first, later = paths(template)
            found += [
                Route(page, era, path)
                for path in dict.fromkeys((first, later))
                if path is not None and path.slashes in (-1, slashes)
            ]
    return tuple(sorted(found, key=lambda route: (route.page.over != "facets", -len(route.path.query))))


def look(web: Web, scheme: str, host: str, target: str, moment: int) -> Found:
    """What the URL scheme://host/target is: the wrong name and scheme lead to the right ones."""
    site = web.find(host)
    if site is None:
        return Found(421)
    if (host != site.host and site.manner.other == "redirect") or (scheme == "http" and site.secure):
        return Found(301, site, target=site.origin + target, since=site.launch)
    return resolve(site, target, moment)


def resolve(site: Site, target: str, moment: int) -> Found:
    """What a path and query are on a site."""
    path, _, rest = target.partition("?")
    for page, args, era in named(site, path, rest):
        found = _state(site, page, args, era, path, moment)
        if found is not None:
            session = dict(_query(rest)).get(SESSION, "") if site.manner.sessions else ""
            return replace(found, session=session) if session and found.status == 200 else found
    return missing(site, 404)


def named(site: Site, path: str, rest: str) -> Iterator[tuple[PageKind, Args, int]]:
    """The pages a URL may name, whether or not they are there, with the era of such URLs."""
    query = _query(rest)
    known = dict(query)
    for page, era, way in routes(site.kind, path.count("/")):
        fields = way.match(path, known)
        args = None if fields is None else RANGES[page.over].read(site, page, fields)
        if args is None:
            continue
        if page.over == "facets":
            chosen = _choices(page, query)
            if not chosen:
                continue
            args = (*args, *chosen)
        yield page, args, era


def _query(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (part.partition("=") for part in text.split("&")) if name]


def missing(site: Site, status: int) -> Found:
    """No such page, or no longer; some sites will not say so."""
    return Found(200, site, since=site.launch, soft=True) if site.manner.soft404 else Found(status, site)


def _state(site: Site, page: PageKind, args: Args, era: int, path: str, moment: int) -> Found | None:
    """What a page is at a moment when asked for by the path of an era; None if that was never its path."""
    now = min(site.era(moment), len(page.path) - 1)
    life = RANGES[page.over].life(site, page, args)
    moved = life is not None and life.moved <= moment
    own = where(site, page, args, now, moved)
    as_now = own.partition("?")[0] == path
    if not (as_now and era == now) and not _once(site, page, args, era, moved, path):
        return None
    if era > now or not RANGES[page.over].there(site, page, args, moment):
        return missing(site, 404)
    if life is not None and life.deleted <= moment:
        return missing(site, site.manner.gone_status)
    if page.over == "go":
        return Found(302, site, page, args, site.launch, args[0])
    since = max(RANGES[page.over].news(site, args, moment), site.relaunch if site.era(moment) else 0)
    if era < now and site.manner.old_urls == "gone":
        return missing(site, site.manner.gone_status)
    if not as_now and (era == now or site.manner.old_urls == "redirect"):
        status = 302 if era == now and args[0] % 4 == 0 else 301
        return Found(status, site, page, args, since, site.origin + own)
    return Found(200, site, page, args, since, own=own)


def _once(site: Site, page: PageKind, args: Args, era: int, moved: bool, path: str) -> bool:
    """Whether a page had a path in an era, before it moved or after."""
    return any(where(site, page, args, era, state).partition("?")[0] == path for state in (False, True)[: 1 + moved])


def where(site: Site, page: PageKind, args: Args, era: int, moved: bool) -> str:
    """The path and query of a page in an era."""
    if page.over == "item" and args[1] == 1:
        item = site.item(args[0])
        return paths(page.path[min(era, len(page.path) - 1)])[0].item(site.after_move(item) if moved else item)
    reach = RANGES[page.over]
    first, later = paths(page.path[min(era, len(page.path) - 1)])
    way = later if later is not None and reach.part(args) > 1 else first
    text = way.fill(reach.fields(site, args, moved))
    if page.over == "facets" and len(args) > 1:
        text += ("&" if "?" in text else "?") + "&".join(map("=".join, args[1:]))
    return text


def address(site: Site, page: PageKind, args: Args, moment: int) -> str:
    """The path and query of a page at a moment."""
    moved = page.over == "item" and site.moved(site.item(args[0]), moment)
    return where(site, page, args, site.era(moment), moved)


def item_address(site: Site, page: PageKind, item: Item, moment: int) -> str:
    """The path and query of an item's first page at a moment; the same as `address`, for the many links to items."""
    template = page.path[1 if moment >= site.relaunch and len(page.path) > 1 else 0]
    if item.restless and site.moved(item, moment):
        item = site.after_move(item)
    return paths(template)[0].item(item)


def _choices(page: PageKind, query: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The facets a query names, in its order, each once."""
    found = {name: value for name, value in query if value in page.facets.get(name, ())}
    return tuple(found.items())
