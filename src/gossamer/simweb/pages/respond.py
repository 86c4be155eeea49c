"""Requests → responses: status, headers and body of any URL at a moment, and how the host means to deliver them.

Pure: the same request at the same moment gets the same bytes. Limits and delays that depend on what came before are the server's.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec
from msgspec.structs import replace
from xxhash import xxh3_64_hexdigest

from gossamer.simweb.pages import formats
from gossamer.simweb.pages.blocks import compose
from gossamer.simweb.pages.find import Found, look
from gossamer.simweb.pages.head import declared
from gossamer.simweb.pages.html import excuse, render
from gossamer.simweb.pages.robots import robots, text
from gossamer.simweb.pages.view import view
from gossamer.simweb.sites.draw import below, chance, key_of, millionths, numbers
from gossamer.simweb.sites.site import Site
from gossamer.simweb.web import Web

TYPES = {
    "html": "text/html", "rss": "application/rss+xml", "atom": "application/atom+xml", "sitemap": "application/xml",
    "pdf": "application/pdf", "png": "image/png",
}  # fmt: skip
NO_HEADERS: Mapping[str, str] = {}


class Response(msgspec.Struct, frozen=True):
    """What is sent, and how."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    latency_ms: int = 0
    silent: str = ""
    page: str = ""  # what was asked for, in the words of the site's kind


def respond(
    web: Web, scheme: str, host: str, target: str, moment: int, headers: Mapping[str, str] = NO_HEADERS
) -> Response:
    """The answer to GET scheme://host/target; `headers` have lower-case names."""
    site = web.find(host)
    if site is None:
        return Response(421, [("Content-Type", "text/plain")], b"no such host in this web\n", page="stranger")
    trouble = _trouble(site, target, moment)
    if trouble is not None:
        return trouble
    found = look(web, scheme, host, target, moment)
    path = target.partition("?")[0]
    if found.target == "" and path in SPECIAL:
        response = SPECIAL[path](site, moment)
    elif found.status == 200 and not found.soft:
        response = _page(site, found, headers)
    elif found.target:
        response = Response(found.status, [("Location", found.target), ("Content-Type", "text/html")], page="redirect")
    else:
        response = _absent(site, found)
    if site.manner.silent or site.manner.latency_ms[1]:
        return replace(response, latency_ms=_latency(site, target, moment), silent=site.manner.silent)
    return response


def _page(site: Site, found: Found, headers: Mapping[str, str]) -> Response:
    """A page that is there, or word that it is as the client knows it."""
    assert found.page is not None
    kind = found.page.format
    about = TYPES[kind]
    if kind == "html":
        body = render(found, compose(found)).encode(site.charset, "xmlcharrefreplace")
        if site.manner.declared in ("both", "header", "wrong"):
            about += f"; charset={declared(site)}"
    else:
        body = _other(found, kind)
    fields = _validators(site, f'"{xxh3_64_hexdigest(body)}"', found.since)
    if _unchanged(headers, dict(fields), found.since):
        return Response(304, fields, page=found.page.name)
    fields.append(("Content-Type", about))
    if site.manner.gzip and "gzip" in headers.get("accept-encoding", "") and kind != "png":
        body = gzip.compress(body, 1, mtime=0)
        fields += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    return Response(200, fields, body, page=found.page.name)


def _other(found: Found, kind: str) -> bytes:
    if kind == "png":
        return formats.png(found)
    writers = {"rss": formats.rss, "atom": formats.atom, "sitemap": formats.sitemap, "pdf": formats.pdf}
    return writers[kind](view(found))


def _validators(site: Site, tag: str, since: int) -> list[tuple[str, str]]:
    kind = site.manner.validators
    fields = [("ETag", tag)] if kind in ("both", "etag") else []
    return [*fields, ("Last-Modified", formats.http_date(since))] if kind in ("both", "date") else fields


def _unchanged(headers: Mapping[str, str], fields: Mapping[str, str], since: int) -> bool:
    """Whether the client has this very version: by its tag if it sent one, else by the date."""
    known = headers.get("if-none-match")
    if known is not None and "ETag" in fields:
        return known.strip() == "*" or fields["ETag"] in [tag.strip().removeprefix("W/") for tag in known.split(",")]
    after = headers.get("if-modified-since")
    if known is not None or after is None or "Last-Modified" not in fields:
        return False
    try:
        return since <= int(parsedate_to_datetime(after).timestamp())
    except ValueError:
        return False


def _absent(site: Site, found: Found) -> Response:
    body = excuse(site).encode(site.charset, "xmlcharrefreplace")
    about = "text/html" + (f"; charset={declared(site)}" if site.manner.declared in ("both", "header", "wrong") else "")
    return Response(found.status, [("Content-Type", about)], body, page="soft404" if found.soft else "missing")


def _trouble(site: Site, target: str, moment: int) -> Response | None:
    """What the host answers instead, when it is down or one of its answers fails."""
    how = site.manner
    if not how.down_minutes and not how.failing:
        return None
    down = moment % 3600 < how.down_minutes * 60
    failed = how.failing and chance(numbers(key_of(site.key, target, moment // 60), 1)[0], millionths(how.failing))
    if not down and not failed:
        return None
    wait = [("Retry-After", str(how.retry_after))] if how.retry_after and how.fail_status in (429, 503) else []
    return Response(how.fail_status, [*wait, ("Content-Type", "text/plain")], b"try again later\n", page="trouble")


def _latency(site: Site, target: str, moment: int) -> int:
    low, high = site.manner.latency_ms
    return low + below(numbers(key_of(site.key, target, moment), 1)[0], high - low + 1) if high else 0


def _robots(site: Site, moment: int) -> Response:
    answer = robots(site)
    where = [("Location", answer.target)] if answer.target else []
    return Response(answer.status, [*where, ("Content-Type", answer.kind)], answer.body, page="robots")


def _rules(site: Site, moment: int) -> Response:
    if site.manner.robots != "redirect":
        return _absent(site, Found(404, site))
    return Response(200, [("Content-Type", "text/plain")], text(site), page="robots")


def _index(site: Site, moment: int) -> Response:
    if not any(page.format == "sitemap" for page in site.kind.pages):
        return _absent(site, Found(404, site))
    return Response(200, [("Content-Type", "application/xml")], formats.sitemap_index(site, moment), page="sitemap")


SPECIAL = {"/robots.txt": _robots, "/robots-rules.txt": _rules, "/sitemap.xml": _index}
