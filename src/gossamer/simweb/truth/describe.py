"""A web in words: its sites by kind, its kinds and traits, or what one URL is and why."""

from __future__ import annotations

from hashlib import sha256
from itertools import islice
from typing import Any

import msgspec

from gossamer.errors import UsageError
from gossamer.simweb.config import Manner, WebConfig, kinds_of, traits_of
from gossamer.simweb.pages.find import address, look
from gossamer.simweb.pages.formats import stamp
from gossamer.simweb.pages.ranges import RANGES
from gossamer.simweb.pages.respond import respond
from gossamer.simweb.pages.robots import allowed
from gossamer.simweb.sites.life import NEVER
from gossamer.simweb.truth.survey import near_of
from gossamer.simweb.web import Web

MOST_SITES = 20_000  # that are looked at; the rest is like the last of them
DIGEST_SITES = 200
DIGEST_PAGES = 5  # of each kind of page

Row = dict[str, Any]


def sites(web: Web, moment: int) -> list[Row]:
    """The sites by kind."""
    found: dict[str, Row] = {}
    looked = min(web.hosts, MOST_SITES)
    for index in range(looked):
        site = web.site(index)
        row = found.setdefault(
            site.kind.name,
            {
                "kind": site.kind.name,
                "sites": 0,
                "items": 0,
                "about_urls": 0,
                "largest": site.origin,
                "languages": set(),
            },
        )
        count = site.count(moment)
        row["sites"] += 1
        row["items"] += count
        row["about_urls"] += count * site.kind.urls_per_item
        row["languages"].add(site.code)
    rows = [{**row, "languages": len(row["languages"])} for _, row in sorted(found.items())]
    total = {
        "kind": "all" if looked == web.hosts else f"the first {looked} of {web.hosts}",
        **{name: sum(row[name] for row in rows) for name in ("sites", "items", "about_urls")},
        "largest": web.site(0).origin,
        "languages": len({web.language_for(index) for index in range(min(looked, 64))}),
    }
    return [*rows, total]


def digest(web: Web, moment: int) -> list[Row]:
    """One number that is equal wherever this web is the same: over answers of each of its first sites, header by header and byte by byte."""
    total, answers, size = sha256(), 0, 0
    for index in range(min(web.hosts, DIGEST_SITES)):
        site = web.site(index)
        targets = ["/robots.txt", "/sitemap.xml", "/not-there"]
        for page in site.kind.pages:
            every = RANGES[page.over].every(site, page, moment)
            targets += [address(site, page, args, moment) for args in islice(every, DIGEST_PAGES)]
        for target in targets:
            answer = respond(web, site.origin.partition(":")[0], site.host, target, moment)
            total.update(
                repr((site.origin, target, answer.status, answer.headers, len(answer.body))).encode() + answer.body
            )
            answers, size = answers + 1, size + len(answer.body)
    return [{"answers": answers, "bytes": size, "sha256": total.hexdigest()}]


def kinds(config: WebConfig) -> list[Row]:
    """The kinds of site and their pages."""
    return [
        {
            "kind": kind.name,
            "share": share,
            "page": page.name,
            "over": page.over,
            "path": page.path[0],
            "useful": page.useful,
            "about": kind.about if place == 0 else "",
        }
        for kind, share in kinds_of(config)
        for place, page in enumerate(kind.pages)
    ]


def traits(config: WebConfig) -> list[Row]:
    """The traits of hosts."""
    return [
        {
            "trait": trait.name,
            "group": trait.group,
            "share": trait.share,
            "about": trait.about,
            "sets": ", ".join(f"{k}={v}" for k, v in trait.set.items()),
        }
        for trait in traits_of(config).values()
    ]


def url(web: Web, text: str, moment: int) -> list[Row]:
    """What a URL is at a moment, fact by fact."""
    scheme, mark, rest = text.partition("#")[0].partition("://")
    authority, _, path = rest.partition("/")
    host = authority.partition(":")[0].lower()
    site = web.find(host) if mark else None
    if site is None:
        raise UsageError(f"{text} is not on this web; `gossamer simweb describe` names some that are")
    found = look(web, scheme, host, "/" + path, moment)
    facts: Row = {
        "url": text,
        "time": stamp(moment),
        "status": f"{found.status}{' (means 404)' if found.soft else ''}",
        "target": found.target,
        "site": f"{site.kind.name} in {site.language.name}, rank {site.index + 1}, {site.count(moment)} items",
        "manner": _peculiar(site.manner),
        "robots": "allowed" if allowed(site, "/" + path) else "disallowed",
        "relaunch": "never" if site.relaunch == NEVER else stamp(site.relaunch),
    }
    if found.page is not None:
        facts |= {
            "page": found.page.name,
            "useful": found.page.useful,
            "unchanged_since": stamp(found.since),
            "own_path": found.own,
        }
        near = near_of(site, found.page, found.args)
        facts |= {"story": near} if near is not None else {}
        if found.page.over == "item":
            life = site.life(found.args[0])
            facts["born"] = stamp(life.born)
            facts["edited"] = f"every {life.pace} s" if life.pace else ", ".join(map(stamp, life.edits)) or "never"
            facts["moved"] = "never" if life.moved == NEVER else stamp(life.moved)
            facts["deleted"] = "never" if life.deleted == NEVER else stamp(life.deleted)
    return [{"fact": name, "value": value} for name, value in facts.items()]


def _peculiar(manner: Manner) -> str:
    """How a host differs from a plain one."""
    plain = msgspec.to_builtins(Manner())
    found = {name: value for name, value in msgspec.to_builtins(manner).items() if value != plain[name]}
    return ", ".join(f"{name}={value}" for name, value in found.items()) or "plain"
