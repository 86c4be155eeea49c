"""robots.txt by host: `robots-500.test` and so on misbehave for `/robots.txt` only; their other paths are like everybody's."""

from __future__ import annotations

import gzip as packing
from functools import partial

from tests.hostile import bombs
from tests.hostile.behaviours.base import (
    BEHAVIOURS,
    ROBOTS,
    ROBOTS_OF,
    Behaviour,
    Request,
    Writer,
    add,
    behaviour,
    page,
)

TEXT = {"Content-Type": "text/plain"}
ALLOWED, LATER = "all allowed", "nothing fetched for now, asked again later"
RULES = b"User-agent: *\nDisallow: /denied/\n"
BY_RULES = "/denied/ robots_denied, all else allowed"
ROOM = 500 * 1024
KEPT = "what came counts, up to the cap at a line: /denied/ robots_denied"

robots = partial(behaviour, line=ROBOTS, registry=ROBOTS_OF)


async def give(writer: Writer, body: bytes, status: int = 200) -> None:
    await writer.answer(status, body, TEXT)


def _file(name: str, does: str, body: bytes, expect: str = BY_RULES, status: int = 200) -> None:
    async def answer(_: Request, writer: Writer) -> None:
        await give(writer, body, status)

    add(Behaviour(f"robots-{name}", does, ROBOTS, expect, answer), ROBOTS_OF)


_file("rules", "A good file.", RULES)
_file("empty", "An empty file.", b"", ALLOWED)
for _status in (400, 401, 403, 404, 410):
    _file(str(_status), f"{_status} with rules in its body.", b"User-agent: *\nDisallow: /\n", ALLOWED, _status)
for _status in (429, 500, 502, 503):
    _file(str(_status), f"{_status}.", b"Not now.\n", LATER, _status)
_file("204", "204.", b"", ALLOWED, 204)
_file("nul", "NULs in the lines.", b"\x00User-agent: *\n\x00\x00\nDisallow: /denied/\nDisallow: /nul\x00/\n\x00")
_file("bom", "A BOM at the start.", b"\xef\xbb\xbf" + RULES)
_file("utf-16", "UTF-16, which nobody reads.", RULES.decode().encode("utf-16"), ALLOWED)
_file("cr", "Lines that end with CR alone.", RULES.replace(b"\n", b"\r"))
_file("crlf", "Lines that end with CRLF.", RULES.replace(b"\n", b"\r\n"))
_file("binary", "Noise.", bytes(range(256)) * 64, ALLOWED)
_file("html", "A page for people, with code 200.", page("Not found, but 200"), ALLOWED)
_file("denied", "Nothing is allowed.", b"User-agent: *\nDisallow: /\n", "all robots_denied")
_file(
    "delay",
    "Crawl-delay of 2.",
    b"User-agent: *\nCrawl-delay: 2\n",
    "two seconds between requests, counted from the end of the last",
)
_file(
    "delay-huge",
    "Crawl-delay of 10^9.",
    b"User-agent: *\nCrawl-delay: 1000000000\n",
    "the delay at its largest, no overflow",
)
_file(
    "delay-words",
    "Crawl-delays that are no numbers.",
    b"User-agent: *\nCrawl-delay: -5\nCrawl-delay: nan\nCrawl-delay: inf\nCrawl-delay: soon\n",
    ALLOWED,
)
_file("sitemap", "Names sitemaps, one on a private address.",
      b"Sitemap: /sitemap.xml\nSitemap: http://127.0.0.1/sitemap.xml\nSitemap: file:///etc/passwd\n" + RULES)  # fmt: skip
_file("600k", "A rule before 500 KiB of comments and one after.",
      RULES + (b"# " + b"x" * 61 + b"\n") * (600 * 1024 // 64) + b"Disallow: /late/\n",
      "/denied/ robots_denied; /late/ allowed if the cap is 500 KiB")  # fmt: skip
_file(
    "long-line",
    "A line of 600 KB, then a rule.",
    RULES + b"Disallow: /" + b"x" * 600_000 + b"\nDisallow: /late/\n",
    KEPT,
)
_file(
    "wildcards",
    "A pattern that backtracks.",
    RULES + b"Disallow: /" + b"*a" * 500 + b"$\n",
    f"{BY_RULES}; matched in linear time",
)


@robots("robots-stall", expect=LATER)
async def stall(_: Request, writer: Writer) -> None:
    """Never answers."""
    await writer.stall()


@robots("robots-stall-body", expect=LATER)
async def stall_body(_: Request, writer: Writer) -> None:
    """A rule, then silence."""
    await writer.head(200, {"Content-Length": "100000"}, "text/plain")
    await writer.send(RULES)
    await writer.stall()


@robots("robots-short", expect=LATER)
async def short(_: Request, writer: Writer) -> None:
    """A file that ends before its length."""
    await writer.head(200, {"Content-Length": "100000"}, "text/plain")
    await writer.send(RULES)


@robots("robots-reset", expect=LATER)
async def reset(_: Request, writer: Writer) -> None:
    """RST."""
    await writer.reset()


@robots("robots-close", expect=LATER)
async def close(_: Request, writer: Writer) -> None:
    """Closes without a word."""


@robots("robots-malformed", expect=LATER)
async def malformed(_: Request, writer: Writer) -> None:
    """No status line."""
    await writer.send(RULES)


@robots("robots-huge", expect=KEPT)
async def huge(_: Request, writer: Writer) -> None:
    """A file without end."""
    await writer.head(200, {"Transfer-Encoding": "chunked"}, "text/plain")
    await writer.chunk(RULES)
    while True:
        await writer.chunk(b"# more to come\nDisallow: /other/\n" * 500)


@robots("robots-gzip-bomb", expect="what came counts, up to the cap: all allowed")
async def gzip_bomb(_: Request, writer: Writer) -> None:
    """A gigabyte of spaces in gzip."""
    body = bombs.gzip(1024)
    await writer.head(200, {"Content-Encoding": "gzip", "Content-Length": str(len(body))}, "text/plain")
    await writer.send(body)


@robots("robots-gzip", expect=BY_RULES)
async def gzip(_: Request, writer: Writer) -> None:
    """A good file in gzip."""
    await writer.answer(200, packing.compress(RULES, mtime=0), TEXT | {"Content-Encoding": "gzip"})


@robots("robots-loop", expect=ALLOWED)
async def loop(_: Request, writer: Writer) -> None:
    """Leads to itself."""
    await writer.answer(302, headers={"Location": "/robots.txt"})


@robots("robots-redirect-address", expect=f"{ALLOWED}, or nothing fetched; no connect at all")
async def redirect_address(_: Request, writer: Writer) -> None:
    """Leads to a private address."""
    await writer.answer(302, headers={"Location": "http://169.254.169.254/robots.txt"})


@robots("robots-redirect-file", expect=ALLOWED)
async def redirect_file(_: Request, writer: Writer) -> None:
    """Leads to a file: URL."""
    await writer.answer(302, headers={"Location": "file:///etc/passwd"})


def _redirects(hops: int, expect: str) -> None:
    async def answer(_: Request, writer: Writer) -> None:
        await writer.answer(301, headers={"Location": f"/robots-hop/{hops - 1}"})

    add(
        Behaviour(f"robots-redirects-{hops}", f"{hops} redirects, then a good file.", ROBOTS, expect, answer), ROBOTS_OF
    )


_redirects(1, BY_RULES)
_redirects(5, BY_RULES)
_redirects(6, f"{ALLOWED}: RFC 9309 lets it count as unavailable")


@behaviour("robots-hop", ROBOTS, "a hop of robots-redirects-N", BEHAVIOURS)
async def hop(request: Request, writer: Writer) -> None:
    """`/robots-hop/N` leads to N-1, and 0 is the file."""
    left = int(request.segments[1]) if len(request.segments) > 1 else 0
    if left:
        await writer.answer(301, headers={"Location": f"/robots-hop/{left - 1}"})
    else:
        await give(writer, RULES)
