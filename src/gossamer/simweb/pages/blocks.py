"""What stands on a page: a page kind's `blocks` → texts and links, without markup.

html.py writes them down and survey.py takes the links, so both see the same. A link is (where to, anchor): a path for the site itself, a whole
URL for others. A block is named in TOML with its numbers: "latest 10", "text 6 14".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from msgspec.structs import replace

from gossamer.errors import SettingsError
from gossamer.simweb.config import Kind, Span
from gossamer.simweb.pages import content, navigation, ways
from gossamer.simweb.pages.find import SESSION, Found
from gossamer.simweb.pages.templates import paths
from gossamer.simweb.pages.view import Block, View, view
from gossamer.simweb.sites.draw import key_of

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


def check(kind: Kind) -> None:
    """Refuse a kind whose pages have paths or blocks that mean nothing."""
    for page in kind.pages:
        try:
            parsed(page.blocks)
            for template in page.path:
                paths(template)
        except SettingsError as error:
            raise SettingsError(f"site {kind.name}, page {page.name}: {error}") from None
        if not page.path or (page.format == "html" and not page.blocks and page.over != "go"):
            raise SettingsError(f"site {kind.name}, page {page.name}: a page needs a path and some blocks")


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


BLOCKS: dict[str, Maker] = {
    "menu": navigation.menu, "crumbs": navigation.crumbs, "headline": content.headline, "byline": content.byline, "picture": navigation.picture, "text": content.text, "code": content.code,
    "table": content.table, "list": content.listing, "pager": navigation.pager, "tags": navigation.tags, "also": navigation.also, "copies": navigation.copies, "comments": content.comments,
    "related": navigation.related, "latest": navigation.latest, "popular": navigation.popular, "neighbours": navigation.neighbours, "cloud": navigation.cloud, "archive": ways.archive, "months": ways.months,
    "deeper": ways.deeper, "facets": ways.facets, "external": ways.outward, "go": ways.go, "searches": navigation.searches, "form": navigation.form, "footer": navigation.footer,
}  # fmt: skip
