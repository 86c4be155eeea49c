"""robots.txt of a site in its variants, and what it means: which paths it forbids, by the rules of RFC 9309."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from gossamer.simweb.config import Kind
from gossamer.simweb.sites.site import Site


class Robots(NamedTuple):
    """What a request for robots.txt gets."""

    status: int
    body: bytes = b""
    target: str = ""
    kind: str = "text/plain"


def robots(site: Site) -> Robots:
    """The site's robots.txt."""
    variant = site.manner.robots
    if variant == "none":
        return Robots(404, b"not found\n")
    if variant == "broken":
        return Robots(500, b"error\n")
    if variant == "redirect":
        return Robots(301, target=f"{site.origin}/robots-rules.txt")
    if variant == "html":
        return Robots(
            200,
            f"<html><head><title>{site.name}</title></head><body><p>robots</p></body></html>\n".encode(),
            kind="text/html",
        )
    return Robots(200, text(site))


def text(site: Site) -> bytes:
    """The rules as written."""
    rules = [f"Disallow: {rule}" for rule in disallowed(site)]
    delay = [f"Crawl-delay: {site.manner.crawl_delay}"] if site.manner.crawl_delay else []
    maps = [f"Sitemap: {site.origin}/sitemap.xml"] if any(page.format == "sitemap" for page in site.kind.pages) else []
    variant = site.manner.robots
    if variant == "empty":
        return b""
    if variant == "messy":
        lines = [
            "# made by hand",
            "USER-AGENT : *",
            "noise without a colon",
            *(f"disallow:{rule[10:]}" for rule in rules),
            *delay,
            "",
            *maps,
        ]
        return b"\xef\xbb\xbf" + "\r".join(lines).encode() + b"\r"
    named = ["User-agent: greedybot", "Disallow: /", ""] if variant == "named" else []
    padding = [f"# {'x' * 70} {n}" for n in range(4000)] if variant == "large" else []
    return "\n".join([*padding, *named, "User-agent: *", *(rules or ["Disallow:"]), *delay, "", *maps, ""]).encode()


def crawl_delay(site: Site) -> int:
    """The delay that robots.txt asks for; nothing where it cannot be read."""
    return site.manner.crawl_delay if site.manner.robots not in ("none", "empty", "html", "broken") else 0


def disallowed(site: Site) -> tuple[str, ...]:
    """The path rules for everybody; none where there is no robots.txt, everything while it is broken."""
    if site.manner.robots in ("none", "empty", "html"):
        return ()
    if site.manner.robots in ("closed", "broken"):
        return ("/",)
    return _rules(site.kind)


@lru_cache(maxsize=256)
def _rules(kind: Kind) -> tuple[str, ...]:
    """Prefixes of the pages that are not for crawlers; a field is a *."""
    found = []
    for page in kind.pages:
        for template in page.path if page.disallow else ():
            rule = re.sub(r"\{\w+\}", "*", re.sub(r"\[.*?\]", "", template)).rstrip("*")
            found.append(rule)
    return tuple(dict.fromkeys(found))


def allowed(site: Site, target: str) -> bool:
    """Whether robots.txt lets a crawler have a path."""
    if target == "/robots.txt":
        return True
    return not any(_pattern(rule).match(target) for rule in disallowed(site))


@lru_cache(maxsize=1024)
def _pattern(rule: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, rule.split("*"))))
