"""The truth about one site: every URL it ever had, what each is over a time, and the links between them. Nothing is fetched.

It starts from the pages the site has and goes on to what their links name (redirectors, filters, session ids), so it ends where a patient
crawler would. What leads to other sites is handed back, for they may know it under a name that only links use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from gossamer.simweb.config import PageKind
from gossamer.simweb.pages.blocks import compose
from gossamer.simweb.pages.find import Found, address, look, named, where
from gossamer.simweb.pages.formats import listed
from gossamer.simweb.pages.head import head_links
from gossamer.simweb.pages.ranges import RANGES, Args
from gossamer.simweb.pages.robots import allowed
from gossamer.simweb.pages.view import Block, view
from gossamer.simweb.sites.draw import key_of
from gossamer.simweb.sites.life import NEVER
from gossamer.simweb.sites.site import WIRE, Site
from gossamer.simweb.web import Web

TRAPS = {"calendar", "maze", "facets"}
SIGN = 1 << 63


class UrlRow(NamedTuple):
    """What is so about a URL at all times."""

    url: str
    host: str
    site: int
    kind: str
    page: str
    format: str
    useful: bool
    language: str
    charset: str
    declared: str
    duplicate: int | None
    near: int | None
    trap: bool
    allowed: bool


class StateRow(NamedTuple):
    """What a URL is from one moment to another (0: to the end)."""

    url: str
    valid_from: int
    valid_to: int
    status: int
    target: str
    soft: bool
    changed: int


class LinkRow(NamedTuple):
    """A link, from one moment to another."""

    src: str
    dst: str
    anchor: str
    kind: str
    nofollow: bool
    valid_from: int
    valid_to: int


class Survey(NamedTuple):
    """What was found out about a site."""

    urls: list[UrlRow]
    states: list[StateRow]
    links: list[LinkRow]
    elsewhere: set[str]


def survey(
    web: Web, index: int, start: int, end: int, asked: Iterable[str] = (), known: Set[str] = frozenset()
) -> Survey:
    """Everything about one site between two moments; with `asked`, only those URLs and what they lead to on it, the known ones aside."""
    site = web.site(index)
    found = Survey([], [], [], set())
    waiting = list(asked) or [site.origin + target for target in _targets(site, end)]
    seen = set(waiting)
    while waiting:
        url = waiting.pop()
        for other in _visit(web, site, url, start, end, found):
            if other not in seen and other not in known:
                if _is_own(site, other):
                    seen.add(other)
                    waiting.append(other)
                else:
                    found.elsewhere.add(other)
    return found


def _targets(site: Site, end: int) -> Iterator[str]:
    """Every path that one of the site's pages has or had."""
    seen = {"/"}
    yield "/"
    for page in site.kind.pages:
        eras = min(site.era(end), len(page.path) - 1)
        for args in RANGES[page.over].every(site, page, end):
            life = RANGES[page.over].life(site, page, args)
            for era in range(eras + 1):
                for moved in (False, True)[: 1 + (life is not None and life.moved <= end)]:
                    target = where(site, page, args, era, moved)
                    if target not in seen:
                        seen.add(target)
                        yield target


def _visit(web: Web, site: Site, url: str, start: int, end: int, found: Survey) -> Iterator[str]:
    """Note what a URL is over the time, and give where its links and redirects lead."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    host, target = authority.partition(":")[0], "/" + path
    origin = f"{scheme}://{authority}"
    open_links: dict[tuple[str, str, str, bool], int] = {}
    before: Found | None = None
    since = start
    for moment in [start, *_changes(site, target, start, end)]:
        now = look(web, scheme, host, target, moment)
        if before is None:
            found.urls.append(_url_row(site, url, host, target, now, start))
        elif _same(before, now):
            continue
        else:
            found.states.append(_state_row(url, since, moment, before))
        before, since = now, moment
        links = dict.fromkeys(links_on(site, origin, now))
        found.links.extend(
            LinkRow(url, *link, opened, moment) for link, opened in open_links.items() if link not in links
        )
        open_links = {link: open_links.get(link, moment) for link in links}
        yield from (dst for dst, _, kind, _ in links if kind != "form")
        if now.target:
            yield now.target
    if before is not None:
        found.states.append(_state_row(url, since, 0, before))
    found.links.extend(LinkRow(url, *link, opened, 0) for link, opened in open_links.items())


def _changes(site: Site, target: str, start: int, end: int) -> list[int]:
    """The moments between at which a URL may become another thing."""
    if end <= start:
        return []
    path, _, rest = target.partition("?")
    times = {site.relaunch}
    for page, args, _ in named(site, path, rest):
        times.update(RANGES[page.over].comings(site, args, start, end))
        life = RANGES[page.over].life(site, page, args)
        if life is not None:
            times.update(life.changes(start, end))
    return sorted(time for time in times if start < time < end and time != NEVER)


def _same(one: Found, other: Found) -> bool:
    return (one.status, one.target, one.since, one.soft) == (other.status, other.target, other.since, other.soft)


def _url_row(site: Site, url: str, host: str, target: str, now: Found, start: int) -> UrlRow:
    pages = [(page, args) for page, args, _ in named(site, *_cut(target))]
    page, args = pages[0] if pages else (None, ())
    if now.page is not None:
        page, args = now.page, now.args
    html = page is not None and page.format == "html"
    own = address(site, page, args, start) if page else ""
    return UrlRow(
        url=url,
        host=host,
        site=site.index,
        kind=site.kind.name,
        page=page.name if page else "",
        format=page.format if page else "",
        useful=bool(page and page.useful and RANGES[page.over].part(args) == 1 and host == site.host and own == target),
        language=site.code,
        charset=site.charset if html else "utf-8",
        declared=site.manner.declared if html else "",
        duplicate=_signed(key_of(site.key, page.name, *_same_text(page, args))) if page and page.over != "go" else None,
        near=near_of(site, page, args),
        trap=bool((page and page.over in TRAPS) or now.session),
        allowed=allowed(site, target),
    )


def _cut(target: str) -> tuple[str, str]:
    path, _, rest = target.partition("?")
    return path, rest


def _same_text(page: PageKind, args: Args) -> list[str]:
    """What two pages of a kind share if they say the same."""
    return [repr(arg) for arg in ((args[0], *sorted(args[1:])) if page.over == "facets" else args)]


def near_of(site: Site, page: PageKind | None, args: Args) -> int | None:
    """The story an item's page tells, if it tells it."""
    if (
        page is None
        or page.over != "item"
        or not (page.format == "pdf" or any(b.split()[0] == "text" for b in page.blocks))
    ):
        return None
    return _signed(site.item(args[0]).story if site.item(args[0]).story & WIRE else key_of(site.key, "story", args[0]))


def _signed(key: int) -> int:
    return key - 2 * SIGN if key >= SIGN else key


def _state_row(url: str, since: int, until: int, found: Found) -> StateRow:
    return StateRow(url, since, until, found.status, found.target, found.soft, found.since)


def links_on(site: Site, origin: str, found: Found) -> Iterator[tuple[str, str, str, bool]]:
    """The links of a page: where to, anchor, kind, nofollow."""
    if found.status != 200 or found.page is None:
        if found.soft:  # says that it is a page
            yield f"{origin}/", site.language.ui["home"], "a", False
        return
    here = view(found)
    if found.page.format in ("rss", "atom", "sitemap"):
        kind = "sitemap" if found.page.format == "sitemap" else "feed"
        yield from ((url, text if kind == "feed" else "", kind, False) for url, text, _ in listed(here))
    if found.page.format != "html":
        return
    for relation, target in head_links(here):
        yield site.origin + target, "", relation, False
    base = origin if site.manner.hrefs == "path" else site.origin
    for block in compose(found):
        yield from _of_block(block, base)


def _of_block(block: Block, base: str) -> Iterator[tuple[str, str, str, bool]]:
    for url, text in block.links:
        yield base + url if url.startswith("/") else url, text, block.kind, block.nofollow


def _is_own(site: Site, url: str) -> bool:
    host = url.partition("://")[2].partition("/")[0].partition(":")[0]
    return host in (site.host, site.other_host)
