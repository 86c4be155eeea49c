"""Do simulated pages look like real ones to a parser? Shapes of both, side by side. ARGS: folders of real HTML (/usr/share/doc)."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from benchmarks.report import table
from gossamer.simweb.config import load_web
from gossamer.simweb.pages.find import address
from gossamer.simweb.pages.ranges import RANGES
from gossamer.simweb.pages.respond import respond
from gossamer.simweb.web import Web

PAGES = 1500
VOID = {"br", "hr", "img", "input", "link", "meta", "base", "area", "col", "embed", "source", "track", "wbr"}
HIDDEN = {"script", "style"}
AROUND = {"nav", "header", "footer", "aside", "form"}
MEASURES = ("KB", "text, chars", "text / bytes", "links", "text in links", "tags", "depth", "paragraphs")


class Shape(HTMLParser):
    """Counts what a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.deepest = self.tags = self.links = self.text = self.linked = self.paragraphs = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags += 1
        self.links += tag == "a" and any(name == "href" for name, _ in attrs)
        self.paragraphs += tag == "p"
        if tag not in VOID:
            if tag in ("p", "li", "td", "tr", "dt", "dd") and self.open and self.open[-1] == tag:
                self.open.pop()  # closed by the next of its kind
            self.open.append(tag)
            self.deepest = max(self.deepest, len(self.open))

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if HIDDEN.isdisjoint(self.open[-1:]):
            size = len(" ".join(data.split()))
            self.text += size
            self.linked += size if "a" in self.open else 0


def shape(body: str) -> tuple[float, ...]:
    found = Shape()
    found.feed(body)
    size = len(body.encode())
    return (
        size / 1000, found.text, found.text / max(1, size), found.links, found.linked / max(1, found.text), found.tags, found.deepest,
        found.paragraphs,
    )  # fmt: skip


def real(folders: list[str]) -> Iterator[str]:
    files = sorted(path for folder in folders for path in Path(folder).rglob("*.html") if path.is_file())
    random.Random(1).shuffle(files)
    for path in files[:PAGES]:
        yield path.read_text(encoding="utf-8", errors="replace")


def simulated(name: str | None = None) -> Iterator[str]:
    """HTML pages of all kinds; or of the one kind of page that links to items lead to."""
    web = Web(load_web(hosts=300, pages=30_000))
    chance = random.Random(1)
    chosen = []
    for index in range(web.hosts):
        site = web.site(index)
        for page in site.kind.pages:
            if page.format == "html" and (name is None or page.useful) and page.blocks:
                chosen += [(site, page, args) for args in RANGES[page.over].every(site, page, web.start)]
    chance.shuffle(chosen)
    for site, page, args in chosen[:PAGES]:
        answer = respond(web, "http", site.host, address(site, page, args, web.start), web.start)
        if answer.status == 200:
            yield answer.body.decode(site.charset)


def main(arguments: list[str]) -> None:
    folders = arguments or ["/usr/share/doc"]
    samples = {"real: " + ", ".join(folders): list(map(shape, real(folders)))}
    samples["simulated, all HTML"] = list(map(shape, simulated()))
    samples["simulated, useful HTML"] = list(map(shape, simulated("useful")))
    rows = []
    for name, shapes in samples.items():
        if not shapes:
            print(f"{name}: no pages; install some, such as Debian's python3-doc, apache2-doc and postgresql-doc")
            continue
        for part, place in (("25 %", 0), ("median", 1), ("75 %", 2)):
            quartiles = [statistics.quantiles(column, n=4)[place] for column in zip(*shapes, strict=True)]
            rows.append(
                (
                    f"{name} ({len(shapes)})" if place == 0 else "",
                    part,
                    *(f"{value:.2f}" if value < 10 else f"{value:,.0f}" for value in quartiles),
                )
            )
    table("Shapes of HTML pages", ("pages", "", *MEASURES), rows)
