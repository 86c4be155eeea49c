"""Pages that behave: what the fetcher gets between two bad ones, and what shows whether it has manners itself."""

from __future__ import annotations

import json
from email.utils import formatdate

from tests.hostile.behaviours.base import PIECE, POLITENESS, REDIRECTS, Request, Writer, behaviour, page

ETAG, MODIFIED = '"gossamer-1"', formatdate(1_700_000_000, usegmt=True)
COOKIE = "visited=before"


@behaviour("page", POLITENESS, "success")
async def ordinary(request: Request, writer: Writer) -> None:
    """`/page/N` is an HTML page of 19 KB with links to the next two."""
    number = int(request.segments[1]) if len(request.segments) > 1 and request.segments[1].isdecimal() else 0
    links = f"/page/{number + 1}", f"/page/{number + 2}"
    await writer.answer(body=page(f"Page {number} of {request.host}", links=links))


@behaviour("empty", POLITENESS, "success, length 0")
async def empty(_: Request, writer: Writer) -> None:
    """200 with nothing in it."""
    await writer.answer()


@behaviour("status", POLITENESS, "by the code: 404 gone, 410 gone_for_good, 5xx fail")
async def status(request: Request, writer: Writer) -> None:
    """`/status/N` answers with that code and a small page."""
    await writer.answer(int(request.segments[1]) if len(request.segments) > 1 else 404, page("An answer", 500))


@behaviour("large", POLITENESS, "success, truncated: length if over the cap")
async def large(request: Request, writer: Writer) -> None:
    """An honest body of `?mb=` megabytes (64)."""
    megabytes = request.count("mb", 64)
    await writer.head(headers={"Content-Length": str(megabytes << 20)})
    for _ in range((megabytes << 20) // PIECE):
        await writer.send(b"x" * PIECE)
    writer.keep = True


@behaviour("validators", POLITENESS, "success with etag and last_modified, then not_modified")
async def validators(request: Request, writer: Writer) -> None:
    """A page with ETag and Last-Modified, and 304 for who has it already."""
    headers = {"ETag": ETAG, "Last-Modified": MODIFIED}
    match, since = request.header("if-none-match"), request.header("if-modified-since")
    if match == ETAG or (match is None and since == MODIFIED):
        await writer.send(_not_modified(headers))
        writer.keep = True
    else:
        await writer.answer(body=page("Seldom changed"), headers=headers)


def _not_modified(headers: dict[str, str]) -> bytes:
    lines = ["HTTP/1.1 304 Not Modified", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


@behaviour("cookie", REDIRECTS, "success, and no cookie on the second visit")
async def cookie(request: Request, writer: Writer) -> None:
    """Sets a cookie, and says in the body whether one came."""
    came = request.header("cookie")
    await writer.answer(
        body=json.dumps({"cookie": came}).encode(),
        headers={"Content-Type": "application/json", "Set-Cookie": f"{COOKIE}; Path=/"},
    )


@behaviour("cookie-redirect", REDIRECTS, "redirect_temporary; the target sees neither cookie nor credentials")
async def cookie_redirect(request: Request, writer: Writer) -> None:
    """Sets a cookie for every host it can and leads to `?to=` (/echo)."""
    domain = request.host.partition(".")[2] or request.host
    cookie = f"{COOKIE}; Path=/; Domain={domain}"
    await writer.answer(302, headers={"Location": request.query("to", "/echo"), "Set-Cookie": cookie})


@behaviour("echo", REDIRECTS, "success")
async def echo(request: Request, writer: Writer) -> None:
    """The request's own headers as JSON: a list of pairs."""
    told = {"host": request.seen.host, "target": request.seen.target, "headers": request.seen.headers}
    await writer.answer(body=json.dumps(told).encode(), headers={"Content-Type": "application/json"})


@behaviour("login", REDIRECTS, "fail or gone with 401; no credentials sent, no second try")
async def login(_: Request, writer: Writer) -> None:
    """401 that asks for a password."""
    await writer.answer(401, page("Who are you?", 500), {"WWW-Authenticate": 'Basic realm="hostile"'})
