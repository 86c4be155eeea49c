"""Small webs for the tests, and their pages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

from gossamer.simweb.config import PageKind, load_web
from gossamer.simweb.pages.find import address
from gossamer.simweb.pages.ranges import RANGES, Args
from gossamer.simweb.sites.site import Site
from gossamer.simweb.web import Web

KINDS = ("blog", "docs", "events", "forum", "gazette", "library", "news", "portal", "shop", "wiki")
CALM: dict[str, float] = dict.fromkeys(
    ("slow", "sluggish", "drips", "stalls", "hangs-up", "flaky", "down-at-times", "broken", "strict", "robots-broken"),
    0.0,
)
DAY = 86_400


@cache
def small(kind: str = "", hosts: int = 6, pages: int = 400, language: str = "en") -> Web:
    """A calm web of one kind of site, or of all."""
    kinds = {kind: 1} if kind else {}
    return Web(
        load_web(hosts=hosts, pages=pages, kinds=kinds, languages={language: 1} if language else {}, traits=CALM)
    )


def web_with(
    kind: str = "blog", hosts: int = 3, pages: int = 120, traits: dict[str, float] | None = None, **more: Any
) -> Web:
    """A web whose hosts all have some traits."""
    return Web(
        load_web(
            hosts=hosts,
            pages=pages,
            kinds={kind: 1},
            languages=more.pop("languages", {"en": 1}),
            traits=CALM | (traits or {}),
            **more,
        )
    )


def site_at(web: Web, host: str) -> Site:
    """The site that answers under a name."""
    site = web.find(host)
    assert site is not None
    return site


def natural(site: Site, moment: int) -> Iterator[tuple[PageKind, Args, str]]:
    """Every page of a site that is not made by links alone, with its path."""
    for page in site.kind.pages:
        for args in RANGES[page.over].every(site, page, moment):
            yield page, args, address(site, page, args, moment)


class Links(HTMLParser):
    """The links of an HTML page, as any reader sees them."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.base = url
        self.found: list[tuple[str, str]] = []  # kind, URL
        self.text: list[str] = []
        self.anchors: dict[str, str] = {}
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "base":
            self.base = urljoin(self.base, values["href"])
        elif tag == "a":
            self.inside = urljoin(self.base, values["href"])
            self.found.append(("a", self.inside))
        elif tag == "img":
            self.found.append(("img", urljoin(self.base, values["src"])))
        elif tag == "form":
            self.found.append(("form", urljoin(self.base, values["action"])))
        elif tag == "link":
            self.found.append((values["rel"], urljoin(self.base, values["href"])))

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self.inside = ""

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.inside:
            self.anchors[self.inside] = self.anchors.get(self.inside, "") + data


def links_of(url: str, body: str) -> Links:
    """A page, read."""
    reader = Links(url)
    reader.feed(body)
    reader.close()
    return reader
