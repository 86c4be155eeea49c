"""What stands on a page: a page kind's `blocks` → texts and links, without markup.

html.py writes them down and truth.py takes the links, so both see the same. A link is (where to, anchor): a path for the site itself, a whole
URL for others. A block is named in TOML with its numbers: "latest 10", "text 6 14".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from gossamer.errors import SettingsError
from gossamer.simweb import body
from gossamer.simweb.config import Kind, PageKind, Span
from gossamer.simweb.draw import below, chance, key_of, logarithmic, numbers
from gossamer.simweb.find import SESSION, Found, address, item_address
from gossamer.simweb.ranges import RANGES, Calendar, Dates, Search, has
from gossamer.simweb.site import Item, Site
from gossamer.simweb.text import person

Link = tuple[str, str]


class Block(NamedTuple):
    """One piece of a page; `texts` are paragraphs, or stand beside the links one by one."""

    role: str
    heading: str = ""
    links: Sequence[Link] = ()
    texts: Sequence[str] = ()
    kind: str = "a"  # a, img, form
    nofollow: bool = False
    fixed: str = ""  # a name, if all pages of the site in this era have the very same


class View(NamedTuple):
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


def compose(found: Found) -> list[Block]:
    """All blocks of a page in order; session ids are in the links if the site hands out some."""
    here = view(found)
    blocks = []
    for make, span in parsed(here.page.blocks):
        block = make(here, span)
        if block is not None:
            blocks.append(block)
    sessions = here.site.manner.sessions
    if not sessions:
        return blocks
    session = found.session or f"{key_of(here.site.key, found.own) % sessions:08x}"
    return [block._replace(links=[(_with(url, session), text) for url, text in block.links], fixed="") for block in blocks]


def _with(url: str, session: str) -> str:
    if not url.startswith("/"):
        return url
    return f"{url}{'&' if '?' in url else '?'}{SESSION}={session}"


@lru_cache(maxsize=1024)
def parsed(names: tuple[str, ...]) -> list[tuple[Maker, Span | None]]:
    """Blocks by name with their numbers: at least, at most."""
    found = []
    for text in names:
        name, *amounts = text.split()
        if name not in BLOCKS or not all(amount.isdigit() for amount in amounts):
            raise SettingsError(f"there is no block {text!r}; known are {', '.join(BLOCKS)}, each with its numbers")
        span = (int(amounts[0]), int(amounts[-1])) if amounts else None
        found.append((BLOCKS[name], span))
    return found


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


def _items(here: View, found: Sequence[int]) -> list[Link]:
    links = (item_link(here.site, number, here.moment) for number in found)
    return [link for link in links if link is not None]


def _pages(here: View, chosen: Sequence[PageKind]) -> list[Link]:
    links = []
    for page in chosen:
        for args in RANGES[page.over].every(here.site, page, here.moment):
            links.append((address(here.site, page, args, here.moment), _name(here, page)))
            break
    return links


def _name(here: View, page: PageKind) -> str:
    return here.site.language.ui.get(page.title or page.name, page.name)


def _home(here: View) -> Link:
    return "/", here.ui("home")


def _listing(here: View, over: str, value: int, text: str) -> Link | None:
    """A link to the first part of a listing, if the site has such listings."""
    name = (over, value, here.site.era(here.moment))
    return here.site.keep(name, lambda: (_first_part(here, over, value, text),))[0]


def _first_part(here: View, over: str, value: int, text: str) -> Link | None:
    for page in here.site.kind.pages:
        if page.over == over and page.format == "html" and not page.useful:
            return address(here.site, page, (value, 1), here.moment), text
    return None


def menu(here: View, span: Span | None) -> Block:
    """The front page, all sections, and what the kind puts into its menu."""
    name = f"menu {here.site.era(here.moment)}"
    return here.site.keep(name, lambda: _menu(here)._replace(fixed=name))


def _menu(here: View) -> Block:
    sections = [_listing(here, "section", n, text) for n, (text, _) in enumerate(here.site.sections)]
    chosen = [page for page in here.site.kind.pages if page.menu]
    return Block("menu", here.site.name, [_home(here), *filter(None, sections), *_pages(here, chosen)])


def footer(here: View, span: Span | None) -> Block:
    """What the kind puts into its footer."""
    name = f"footer {here.site.era(here.moment)}"
    return here.site.keep(name, lambda: _footer(here)._replace(fixed=name))


def _footer(here: View) -> Block:
    chosen = [page for page in here.site.kind.pages if page.footer]
    return Block("footer", here.ui("all_rights"), _pages(here, chosen))


def crumbs(here: View, span: Span | None) -> Block:
    """The way from the front page."""
    links = [_home(here)]
    if here.item is not None:
        section = _listing(here, "section", here.item.section, here.site.sections[here.item.section][0])
        links += [section] if section else []
    return Block("crumbs", "", links)


def headline(here: View, span: Span | None) -> Block:
    """What the page is about."""
    return Block("headline", title(here))


def title(here: View) -> str:
    """The title of the page."""
    if here.page.title and here.page.over == "site":
        return _name(here, here.page)
    about = RANGES[here.page.over].title(here.site, here.found.args)
    part = RANGES[here.page.over].part(here.found.args)
    return f"{about} – {here.ui('page')} {part}" if part > 1 else about


def byline(here: View, span: Span | None) -> Block | None:
    """Who wrote it, and when."""
    if here.item is None:
        return None
    value = here.site.by_author.of(here.item.number)[0]
    text = here.site.authors[value][0]
    link = _listing(here, "author", value, text)
    fields = here.site.item_fields(here.item, moved=False)
    when = f"{here.ui('published')} {fields['year']}-{fields['month']}-{fields['day']}"
    return Block("byline", here.ui("author") if link else text, [link] if link else [], [when])


def text(here: View, span: Span | None) -> Block:
    """Paragraphs: the item's, or some of the site's own."""
    span = span or here.site.kind.paragraphs
    if here.item is not None:
        version = here.site.life(here.item.number).version(here.moment)
        return Block("text", "", (), body.paragraphs(here.site, here.item, version, span))
    key = key_of(here.site.key, here.page.name, *map(str, here.found.args[:1]))
    return Block("text", "", (), body.words(here.site, here.site.topic(here.site.main_topic), key, span))


def listing(here: View, span: Span | None) -> Block:
    """The items this page lists, each with its first sentence."""
    chosen = RANGES[here.page.over].items(here.site, here.page, here.found.args, here.moment)
    links, texts = [], []
    for number in chosen:
        link = item_link(here.site, number, here.moment)
        if link is not None:
            links.append(link)
            texts.append(body.teaser(here.site, here.site.item(number)))
    return Block("list", "", links, texts)


def latest(here: View, span: Span | None) -> Block:
    """The newest items."""
    count = here.site.count(here.moment)
    low, _ = span or (8, 8)
    return Block("aside", here.ui("latest"), _items(here, range(count - 1, max(-1, count - 1 - low), -1)))


def related(here: View, span: Span | None) -> Block | None:
    """Items of the same section, near ones more often."""
    if here.item is None:
        return None
    low, _ = span or (6, 6)
    pattern, count = here.site.by_section, here.site.count(here.moment)
    mine = pattern.count(here.item.section, here.item.number)
    total = pattern.count(here.item.section, count)
    chosen: dict[int, None] = {}
    for number in numbers(here.item.key ^ 5, low):
        place = (mine + 1 + logarithmic(number, total)) % total if total > 1 else mine
        chosen[pattern.nth(here.item.section, place)] = None
    chosen.pop(here.item.number, None)
    return Block("aside", here.ui("related"), _items(here, list(chosen)))


def neighbours(here: View, span: Span | None) -> Block | None:
    """The items before and after."""
    if here.item is None:
        return None
    around = [n for n in (here.item.number - 1, here.item.number + 1) if 0 <= n < here.site.count(here.moment)]
    return Block("pager", "", _items(here, around))


def tags(here: View, span: Span | None) -> Block | None:
    """The item's tags."""
    if here.item is None:
        return None
    values = here.site.by_tag.of(here.item.number)
    links = [_listing(here, "tag", value, here.site.tags[value][0]) for value in values]
    return Block("tags", here.ui("tags"), [link for link in links if link])


def cloud(here: View, span: Span | None) -> Block:
    """Many tags."""
    low, _ = span or (20, 20)
    name = f"cloud {low} {here.site.era(here.moment)}"
    return here.site.keep(name, lambda: _cloud(here, low)._replace(fixed=name))


def _cloud(here: View, low: int) -> Block:
    links = [_listing(here, "tag", n, text) for n, (text, _) in enumerate(here.site.tags[:low])]
    return Block("tags", here.ui("tags"), [link for link in links if link])


def also(here: View, span: Span | None) -> Block | None:
    """The other pages of this item: print, comments, files."""
    if here.item is None:
        return None
    links = [
        (item_address(here.site, page, here.item, here.moment), _name(here, page))
        for page in here.site.kind.pages
        if page.over == "item" and page is not here.page and page.format != "png" and has(here.site, page, here.item.number)
    ]
    return Block("also", "", links)


def picture(here: View, span: Span | None) -> Block | None:
    """The item's picture."""
    pages = [page for page in here.site.kind.pages if page.format == "png"]
    if here.item is None or not pages or not has(here.site, pages[0], here.item.number):
        return None
    return Block("picture", "", [(item_address(here.site, pages[0], here.item, here.moment), here.item.title)], kind="img")


def pager(here: View, span: Span | None) -> Block | None:
    """The other parts of this listing: the next ones, the one before, the last."""
    reach = RANGES[here.page.over]
    part, parts = reach.part(here.found.args), reach.parts(here.site, here.page, here.found.args, here.moment)
    if parts < 2:
        return None
    near = {n: str(n) for n in range(max(1, part - 2), min(parts, part + 4) + 1) if n != part} | ({parts: str(parts)} if parts != part else {})
    near |= {n: here.ui(name) for n, name in ((part - 1, "previous"), (part + 1, "next")) if 1 <= n <= parts}
    first = here.found.args[0]
    return Block("pager", here.ui("page"), [(address(here.site, here.page, (first, n), here.moment), text) for n, text in near.items()])


def archive(here: View, span: Span | None) -> Block:
    """The dates below this one, or all years; the months of each year where there are no pages of years."""
    finer = {"year": "month", "month": "day"}.get(here.page.over)
    pages = {page.over: page for page in here.site.kind.pages if page.over in ("year", "month", "day")}
    start = finer or next((over for over in ("year", "month", "day") if over in pages), "")
    if start not in pages:
        return Block("archive", here.ui("archive"))
    page, reach = pages[start], RANGES[here.page.over]
    if finer and isinstance(reach, Dates):
        dates = reach.inside(here.site, here.found.args, here.moment)
    else:
        dates = list(RANGES[start].every(here.site, page, here.moment))[-400:]
    if "{section}" in page.path[0]:
        dates = [(*date[:3], n) for date in dates for n in range(len(here.site.sections))] if finer else dates
    return Block(
        "archive",
        here.ui("archive"),
        [(address(here.site, page, date, here.moment), RANGES[start].title(here.site, date)) for date in dates],
    )


def months(here: View, span: Span | None) -> Block:
    """A calendar's way on: the months before and after, and the next year."""
    reach = RANGES[here.page.over]
    assert isinstance(reach, Calendar)
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


def deeper(here: View, span: Span | None) -> Block:
    """A maze's way on: two sections below this very path."""
    args = here.found.args
    if len(args) >= here.page.depth:
        return Block("aside")
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
        link = item_link(other, count - 1 - logarithmic(number, count), moment)
        return link and (origin + link[0], link[1])
    return f"{origin}/", f"{other.name}: {other.sections[0][0]}"


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
    return Block("form", here.ui("search"), [(pages[0].path[0].partition("?")[0], here.ui("search"))], kind="form") if pages else None


def copies(here: View, span: Span | None) -> Block:
    """This very page under parameters that count readers."""
    own = here.found.own
    mark = "&" if "?" in own else "?"
    links = [(f"{own}{mark}utm_source={name}", f"{here.ui('share')} {name}") for name in ("mail", "feed")]
    return Block("also", here.ui("share"), links)


def comments(here: View, span: Span | None) -> Block | None:
    """What readers wrote."""
    if here.item is None:
        return None
    low, high = span or (3, 12)
    part = RANGES[here.page.over].part(here.found.args)
    key = key_of(here.item.key, "comments", part)
    count = low + key % (high - low + 1)
    about = here.site.topic(here.item.topic)
    drawn = numbers(key, 3 * count)
    said = [
        f"{person(here.site.language, drawn[3 * n])}: " + here.site.language.joiner.join(about.sentences[i >> 22] for i in drawn[3 * n + 1 : 3 * n + 3])
        for n in range(count)
    ]
    return Block("comments", here.ui("comments"), (), said)


def table(here: View, span: Span | None) -> Block | None:
    """What a thing is made of, and its price."""
    if here.item is None:
        return None
    words = here.site.topic(here.item.topic).words
    rows = [f"{words[n % len(words)]}\t{value % 1000}" for n, value in enumerate(numbers(here.item.key ^ 7, 8))]
    version = here.site.life(here.item.number).version(here.moment)
    return Block("table", here.ui("price"), (), [f"{here.ui('price')}\t{(here.item.key + version * 7) % 900 + 10}.90", *rows])


def code(here: View, span: Span | None) -> Block | None:
    """An example in a programming language."""
    if here.item is None:
        return None
    lines = [f"def step_{n % 97}(value):\n    return value * {n % 13} + {n % 31}\n" for n in numbers(here.item.key ^ 11, (span or (6, 6))[0])]
    return Block("code", "", (), lines)


Maker = Callable[[View, Span | None], Block | None]
BLOCKS: dict[str, Maker] = {
    "menu": menu, "crumbs": crumbs, "headline": headline, "byline": byline, "picture": picture, "text": text, "code": code,
    "table": table, "list": listing, "pager": pager, "tags": tags, "also": also, "copies": copies, "comments": comments,
    "related": related, "latest": latest, "neighbours": neighbours, "cloud": cloud, "archive": archive, "months": months,
    "deeper": deeper, "facets": facets, "external": outward, "go": go, "searches": searches, "form": form, "footer": footer,
}  # fmt: skip
