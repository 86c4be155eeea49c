"""Sitemaps, good and bad; all but the first are of hosts whose robots.txt names them, which a test gives."""

from __future__ import annotations

from itertools import count
from xml.sax.saxutils import escape

from tests.hostile import bombs
from tests.hostile.behaviours.base import BEHAVIOURS, SITEMAPS, Behaviour, Request, Writer, add, behaviour

XML = {"Content-Type": "application/xml"}
SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
START, END = f'<?xml version="1.0"?>\n<urlset xmlns="{SPACE}">\n', "</urlset>\n"
EXPANDING = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
CAP = "success; no more than 50,000 URLs and 50 MB of it read"


def origin(request: Request) -> str:
    return f"{'https' if request.tls else 'http'}://{request.seen.host}"


def entry(url: str) -> str:
    return f"<url><loc>{escape(url)}</loc></url>\n"


@behaviour("sitemap.xml", SITEMAPS, "success, three URLs")
async def sitemap(request: Request, writer: Writer) -> None:
    """A sitemap of three pages."""
    pages = "".join(entry(f"{origin(request)}/page/{n}") for n in (1, 2, 3))
    await writer.answer(200, f"{START}{pages}{END}".encode(), XML)


@behaviour("sitemap-many", SITEMAPS, CAP)
async def many(request: Request, writer: Writer) -> None:
    """`?n=` URLs (60,000)."""
    pages = "".join(entry(f"{origin(request)}/page/{n}") for n in range(request.count("n", 60_000)))
    await writer.answer(200, f"{START}{pages}{END}".encode(), XML)


@behaviour("sitemap-endless", SITEMAPS, f"{CAP}, truncated: length")
async def endless(request: Request, writer: Writer) -> None:
    """URLs without end."""
    await writer.head(200, {"Transfer-Encoding": "chunked"}, "application/xml")
    await writer.chunk(START.encode())
    for number in count():
        await writer.chunk("".join(entry(f"{origin(request)}/page/{number * 200 + n}") for n in range(200)).encode())


@behaviour("sitemap-bomb.xml.gz", SITEMAPS, CAP)
async def bomb(request: Request, writer: Writer) -> None:
    """A gzip file, not a coding, of `?mb=` megabytes (1024) of spaces."""
    body = bombs.gzip(request.count("mb", 1024))
    await writer.answer(200, body, {"Content-Type": "application/gzip"})


@behaviour("sitemap-cycle", SITEMAPS, "success, each index visited once")
async def cycle(request: Request, writer: Writer) -> None:
    """An index that names itself and `/sitemap-cycle/b`, which names it."""
    places = "".join(f"<sitemap><loc>{origin(request)}/sitemap-cycle{end}</loc></sitemap>" for end in ("", "/b"))
    await writer.answer(200, f'<sitemapindex xmlns="{SPACE}">{places}</sitemapindex>'.encode(), XML)


@behaviour("sitemap-deep", SITEMAPS, "success, nesting bounded")
async def deep(request: Request, writer: Writer) -> None:
    """`/sitemap-deep/N` is an index that names N+1, without end."""
    number = int(request.segments[1]) if len(request.segments) > 1 else 0
    place = f"<sitemap><loc>{origin(request)}/sitemap-deep/{number + 1}</loc></sitemap>"
    await writer.answer(200, f'<sitemapindex xmlns="{SPACE}">{place}</sitemapindex>'.encode(), XML)


def _file(name: str, does: str, expect: str, text: str) -> None:
    async def answer(request: Request, writer: Writer) -> None:
        await writer.answer(200, text.replace("{origin}", origin(request)).encode(), XML)

    add(Behaviour(f"sitemap-{name}", does, SITEMAPS, expect, answer), BEHAVIOURS)


PAGES = entry("{origin}/page/1") + entry("{origin}/page/2")
_file(
    "entities",
    "Entities that grow to a gigabyte.",
    "success; refused for its DOCTYPE",
    f'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY e0 "x">{EXPANDING}]><urlset xmlns="{SPACE}">{entry("/")[:-1]}&e9;{END}',
)
_file(
    "external",
    "An entity that is a local file.",
    "success; refused for its DOCTYPE, no file read",
    f'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY f SYSTEM "file:///etc/passwd">]><urlset xmlns="{SPACE}"><url><loc>&f;</loc></url>{END}',
)
_file("cut", "XML that ends in its third URL.", "success, two URLs", f"{START}{PAGES}<url><loc>{{origin}}/pa")
_file("text", "A sitemap in plain text.", "success, two URLs or none", "{origin}/page/1\n{origin}/page/2\n")
_file(
    "private",
    "URLs on private addresses and of other schemes.",
    "success; each URL blocked_address or filtered, no connect at all",
    f"{START}{entry('http://127.0.0.1/')}{entry('http://169.254.169.254/')}{entry('file:///etc/passwd')}{END}",
)
