"""Redirects: without end, to where nobody should go, and such as say nothing sensible."""

from __future__ import annotations

from urllib.parse import quote

from tests.hostile.behaviours.base import (
    ADDRESSES,
    BEHAVIOURS,
    REDIRECTS,
    Behaviour,
    Request,
    Writer,
    add,
    behaviour,
    page,
)
from tests.hostile.spellings import SPELLINGS

HOPS = "redirect_temporary for each hop until the bound, then fail or the rest left to later rounds; no endless loop"
REFUSED = "redirect_temporary without redirect_to, or filtered; nothing else opened"
NO_TARGET = "fail: no target; or success of its body"


async def lead(writer: Writer, to: str, status: int = 302) -> None:
    await writer.answer(status, page("Elsewhere", 300), {"Location": to})


@behaviour(
    "redirect", REDIRECTS, "redirect_temporary or _permanent; the target passes filters, robots and the address check"
)
async def to(request: Request, writer: Writer) -> None:
    """To `?to=` (/page/1), with the code `?code=` (302)."""
    await lead(writer, request.query("to", "/page/1"), request.count("code", 302))


@behaviour("redirect-self", REDIRECTS, HOPS)
async def to_self(request: Request, writer: Writer) -> None:
    """To itself."""
    await lead(writer, request.seen.target)


@behaviour("redirect-loop", REDIRECTS, HOPS)
async def loop(request: Request, writer: Writer) -> None:
    """`/redirect-loop/a` and `/redirect-loop/b` lead to each other."""
    await lead(writer, "/redirect-loop/a" if request.segments[-1] == "b" else "/redirect-loop/b", 301)


@behaviour("redirect-grow", REDIRECTS, HOPS)
async def grow(request: Request, writer: Writer) -> None:
    """To itself with one more segment: never the same URL twice."""
    await lead(writer, f"{request.path}/more")


@behaviour("redirect-chain", REDIRECTS, HOPS)
async def chain(request: Request, writer: Writer) -> None:
    """`/redirect-chain/N` leads to N-1, and 0 is a page."""
    left = int(request.segments[1]) if len(request.segments) > 1 else 50
    if left:
        await lead(writer, f"/redirect-chain/{left - 1}")
    else:
        await writer.answer(body=page("The end of the chain"))


@behaviour("redirect-hosts", REDIRECTS, HOPS)
async def hosts(request: Request, writer: Writer) -> None:
    """`/redirect-hosts/N` leads to N-1 on another host, `hopN.test`, at the same port; 0 is a page."""
    left = int(request.segments[1]) if len(request.segments) > 1 else 50
    if left:
        scheme = "https" if request.tls else "http"
        await lead(writer, f"{scheme}://hop{left - 1}.test:{request.port}/redirect-hosts/{left - 1}")
    else:
        await writer.answer(body=page("The end of the chain"))


@behaviour("redirect-address", ADDRESSES, "redirect_temporary, then blocked_address; no connect at all")
async def address(request: Request, writer: Writer) -> None:
    """`/redirect-address/N` leads to the Nth host of SPELLINGS at port `?port=` (80)."""
    host = list(SPELLINGS)[int(request.segments[1]) if len(request.segments) > 1 else 0]
    await lead(writer, f"http://{host}:{request.count('port', 80)}/secret")


@behaviour("redirect-endless-body", REDIRECTS, "redirect_temporary; the body cut or not read")
async def endless_body(_: Request, writer: Writer) -> None:
    """To /page/1, with a body without end."""
    await writer.head(302, {"Location": "/page/1", "Transfer-Encoding": "chunked"})
    while True:
        await writer.chunk(b"<p>not yet</p>\n" * 1000)


@behaviour("redirect-stalled-body", REDIRECTS, "redirect_temporary; the body cut or not read")
async def stalled_body(_: Request, writer: Writer) -> None:
    """To /page/1, with a body that never comes."""
    await writer.head(302, {"Location": "/page/1", "Content-Length": "1000"})
    await writer.stall()


@behaviour("redirect-bomb", REDIRECTS, "redirect_temporary; the body cut or not read")
async def bomb(_: Request, writer: Writer) -> None:
    """To /page/1, with a gigabyte in gzip for a body."""
    from tests.hostile.bombs import gzip

    body = gzip(1024)
    await writer.head(302, {"Location": "/page/1", "Content-Encoding": "gzip", "Content-Length": str(len(body))})
    await writer.send(body)


@behaviour("redirect-twice", REDIRECTS, "fail, or redirect_temporary to the first; one target at most")
async def twice(_: Request, writer: Writer) -> None:
    """Two different Locations."""
    await writer.send(b"HTTP/1.1 302 Found\r\nLocation: /page/1\r\nLocation: /page/2\r\nContent-Length: 0\r\n\r\n")
    writer.keep = True


@behaviour("redirect-200", REDIRECTS, "success; Location of a 200 means nothing")
async def with_200(_: Request, writer: Writer) -> None:
    """A Location on a 200."""
    await writer.answer(200, page("Not a redirect"), {"Location": "/page/1"})


@behaviour("redirect-300", REDIRECTS, "success or fail with http_code 300")
async def choices(_: Request, writer: Writer) -> None:
    """300 with choices and no Location."""
    await writer.answer(300, page("Choose", links=("/page/1", "/page/2")))


@behaviour("refresh", REDIRECTS, "success; the header left to the parser")
async def refresh(_: Request, writer: Writer) -> None:
    """200 with a Refresh header that leads to a private address."""
    await writer.answer(200, page("Wait"), {"Refresh": "0; url=http://127.0.0.1/"})


def _always(name: str, does: str, location: bytes | None, expect: str, line: str = REDIRECTS) -> None:
    field = b"" if location is None else b"Location: %s\r\n" % location

    async def answer(request: Request, writer: Writer) -> None:
        status = b"HTTP/1.1 302 Found\r\n"
        given = field.replace(b"{port}", str(request.port).encode()).replace(b"{host}", request.host.encode())
        await writer.send(status + given + b"Content-Type: text/html\r\nContent-Length: 6\r\n\r\nmoved\n")
        writer.keep = True

    add(Behaviour(f"redirect-{name}", does, line, expect, answer), BEHAVIOURS)


FOLLOWED = "redirect_temporary with redirect_to normalised"
_always("file", "To a file: URL.", b"file:///etc/passwd", REFUSED)
_always("ftp", "To an ftp: URL.", b"ftp://127.0.0.1:{port}/etc/passwd", REFUSED)
_always("data", "To a data: URL.", b"data:text/html,<script>alert(1)</script>", REFUSED)
_always("javascript", "To a javascript: URL.", b"javascript:alert(document.domain)", REFUSED)
_always("gopher", "To a gopher: URL.", b"gopher://127.0.0.1:{port}/_GET%20/secret%0d%0a", REFUSED)
_always("dict", "To a dict: URL.", b"dict://127.0.0.1:{port}/info", REFUSED)
_always("unix", "To a socket's path.", b"http+unix://%2Fvar%2Frun%2Fdocker.sock/info", REFUSED)
_always("about", "To about:blank.", b"about:blank", REFUSED)
_always(
    "crlf",
    "A Location with CRLF, encoded.",
    b"/page/1%0d%0aX-Injected:%20yes",
    f"{FOLLOWED}; still encoded in the next request",
)
_always("crlf-raw", "A Location that a CRLF cuts in two.", b"/page/1\r\nX-Injected: yes", FOLLOWED)
_always("cr", "A Location with a bare CR.", b"/page/1\rX-Injected: yes", f"{FOLLOWED}, the CR gone; or fail")
_always("nul", "A Location with a NUL.", b"/page/1\x00.html", "fail, or redirect_to with %00")
_always("tab", "A Location with tabs and spaces.", b"  /pa\tge/1  ", f"{FOLLOWED}: /page/1")
_always("none", "No Location.", None, NO_TARGET)
_always("empty", "An empty Location.", b"", f"{NO_TARGET}; not a loop")
_always("fragment", "A Location of a fragment only: itself.", b"#here", HOPS)
_always("relative", "A relative Location.", b"../page/1?from=relative", FOLLOWED)
_always("query", "A Location of a query only: itself with another.", b"?page=2", FOLLOWED)
_always("protocol-relative", "A Location without scheme.", b"//{host}:{port}/page/1", FOLLOWED)
_always("backslash", "A Location with backslashes.", rb"\\{host}:{port}\page\1", f"{FOLLOWED}, by the WHATWG rules")
_always("bytes", "A Location that is neither ASCII nor UTF-8.", b"/page/caf\xe9\xff", f"{FOLLOWED}, its bytes encoded")
_always("utf-8", "A Location in UTF-8.", "/page/köln".encode(), f"{FOLLOWED}: /page/{quote('köln')}")
_always("invalid", "A Location that is no URL.", b"http://[::1", "fail: no target")
_always(
    "no-host",
    "A Location without host.",
    b"http:///page/1",
    "by the WHATWG rules the host is `page`: passes all checks or fails",
)
_always("port", "To a port that is none.", b"http://{host}:99999/", "fail: no target")
_always("port-25", "To the port of mail.", b"http://{host}:25/", "redirect_temporary; refused if ports are limited")
_always(
    "credentials",
    "To a URL with a password.",
    b"http://user:secret@{host}:{port}/echo",
    f"{FOLLOWED}; no Authorization sent",
)
_always(
    "long", "A Location of a megabyte.", b"/page/" + b"x" * 2**20, "fail: headers over the cap, or the URL too long"
)
_always(
    "metadata",
    "To where a cloud machine's secrets are.",
    b"http://169.254.169.254/latest/meta-data/",
    "redirect_temporary, then blocked_address",
    ADDRESSES,
)
_always(
    "loopback",
    "To this server by its address.",
    b"http://127.0.0.1:{port}/echo",
    "redirect_temporary, then blocked_address",
    ADDRESSES,
)
