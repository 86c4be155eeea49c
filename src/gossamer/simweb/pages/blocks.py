"""What stands on a page: a page kind's `blocks` → texts and links, without markup.

html.py writes them down and survey.py takes the links, so both see the same. A link is (where to, anchor): a path for the site itself, a whole
URL for others. A block is named in TOML with its numbers: "latest 10", "text 6 14".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from msgspec.structs import replace

from gossamer.errors import SettingsError
from gossamer.simweb.config import Kind, PageKind, Span
from gossamer.simweb.pages import content, navigation, ways
from gossamer.simweb.pages.find import SESSION, Found
from gossamer.simweb.pages.templates import paths
from gossamer.simweb.pages.view import Block, View, view
from gossamer.simweb.sites.banks import TOPICS
from gossamer.simweb.sites.draw import key_of
from gossamer.simweb.sites.pattern import SPAN

Maker = Callable[[View, Span | None], Block | None]


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
    return [
        replace(block, links=[(_with(url, session), text) for url, text in block.links], fixed="") for block in blocks
    ]


# What the paths of pages must say, so that they can be told from each other.
NEEDED = {
    "item": {"id"}, "section": {"section"}, "tag": {"tag"}, "author": {"author"}, "year": {"year"}, "month": {"year", "month"},
    "day": {"year", "month", "day"}, "calendar": {"year", "month"}, "maze": {"maze"}, "facets": {"section"}, "go": {"url"},
    "search": {"q"}, "sitemap": {"page"},
}  # fmt: skip
# What they may say besides.
ALLOWED = {
    "item": {"slug", "section", "year", "month", "day", "page"}, "all": {"page"}, "section": {"page"}, "tag": {"page"}, "author": {"page"},
    "year": {"section"}, "month": {"section"}, "day": {"section"},
}  # fmt: skip
FORMATS = {"pdf": {"item"}, "png": {"item"}, "rss": {"all"}, "atom": {"all"}, "sitemap": {"sitemap"}}
MOST = {"sections": TOPICS, "tags": SPAN, "authors": SPAN, "years": 100, "external": 200, "parts": 1000}


def check(kind: Kind) -> None:
    """Refuse a kind that could not be served."""
    for name in ("sections", "tags", "authors", "years", "paragraphs", "external"):
        low, high = getattr(kind, name)
        if low > high or high > MOST.get(name, 1000) or (low < 1 and name != "external"):
            most = MOST.get(name, 1000)
            raise SettingsError(
                f"site {kind.name}: {name} = [{low}, {high}] must rise, from 1 or more to at most {most}"
            )
    for page in kind.pages:
        try:
            _check_page(page)
        except SettingsError as error:
            raise SettingsError(f"site {kind.name}, page {page.name}: {error}") from None


def _check_page(page: PageKind) -> None:
    parsed(page.blocks)
    needed = NEEDED.get(page.over, set())
    for template in page.path:
        fields = {field for path in paths(template) if path for field in path.fields}
        if wrong := needed - fields:
            raise SettingsError(f"path {template!r} needs {{{min(wrong)}}}, as pages over {page.over} do")
        if wrong := fields - needed - ALLOWED.get(page.over, set()):
            raise SettingsError(f"path {template!r} cannot have {{{min(wrong)}}}: pages over {page.over} have none")
    if page.format == "html" and not page.blocks and page.over != "go":
        raise SettingsError("a page needs blocks")
    if page.over not in FORMATS.get(page.format, {page.over}):
        raise SettingsError(f"format {page.format} is for pages over {' or '.join(FORMATS[page.format])}")
    if page.over == "facets" and not page.facets:
        raise SettingsError("pages over facets need some, such as facets = { sort = ['price', 'new'] }")
    if not 1 <= page.parts[0] <= page.parts[1] <= MOST["parts"]:
        raise SettingsError(f"parts = {list(page.parts)} must rise, from 1 or more to at most {MOST['parts']}")


def _with(url: str, session: str) -> str:
    if not url.startswith("/"):
        return url
    return f"{url}{'&' if '?' in url else '?'}{SESSION}={session}"


@lru_cache(maxsize=1024)
def parsed(names: tuple[str, ...]) -> list[tuple[Maker, Span | None]]:
    """Blocks by name with their numbers: at least, at most."""
    found = []
    for text in names:
        name, *amounts = text.split() or [""]
        if name not in BLOCKS or not all(amount.isdigit() for amount in amounts):
            raise SettingsError(f"there is no block {text!r}; known are {', '.join(BLOCKS)}, each with its numbers")
        span = (int(amounts[0]), int(amounts[-1])) if amounts else None
        found.append((BLOCKS[name], span))
    return found


BLOCKS: dict[str, Maker] = {
    "menu": navigation.menu, "crumbs": navigation.crumbs, "headline": content.headline, "byline": content.byline, "picture": navigation.picture, "text": content.text, "code": content.code,
    "table": content.table, "list": content.listing, "pager": navigation.pager, "tags": navigation.tags, "also": navigation.also, "copies": navigation.copies, "comments": content.comments,
    "related": navigation.related, "latest": navigation.latest, "popular": navigation.popular, "neighbours": navigation.neighbours, "cloud": navigation.cloud, "archive": ways.archive, "months": ways.months,
    "deeper": ways.deeper, "facets": ways.facets, "external": ways.outward, "go": ways.go, "searches": navigation.searches, "form": navigation.form, "footer": navigation.footer,
}  # fmt: skip
