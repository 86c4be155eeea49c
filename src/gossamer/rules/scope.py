"""Scope: a crawl that stays on the hosts, in the domains or below the seeds it was given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from gossamer.rules.lines import rule_lines
from gossamer.rules.prefixes import Prefixes
from gossamer.urls.batch import UrlBatch
from gossamer.urls.domains import domain_of, public_suffix
from gossamer.urls.keys import ORIGIN
from gossamer.urls.parse import parse

OUTSIDE = "out of scope"


@dataclass(frozen=True)
class Scope:
    """`any`, or `host`, `domain` or `seed` with what was listed and injected: hosts, domains, URL prefixes."""

    kind: str = "any"
    listed: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()

    @cached_property
    def _names(self) -> frozenset[str]:
        """Hosts or domains that are inside; what is listed counts as it stands, a seed with its whole domain."""
        seeds = map(_host_of, self.seeds)
        return frozenset(map(_host_of, self.listed)) | frozenset(
            map(domain_of, seeds) if self.kind == "domain" else seeds
        )

    @cached_property
    def _prefixes(self) -> Prefixes:
        return Prefixes(prefix for entry in (*self.listed, *self.seeds) for prefix in _prefixes_of(entry))

    def reasons(self, batch: UrlBatch) -> pa.Array:
        """Why each URL is outside, or NULL. What is injected is inside by definition."""
        if self.kind == "any" or batch.stage == "inject":
            return pa.nulls(len(batch), pa.string())
        if self.kind == "seed":
            inside = pa.array([self._prefixes.longest(url) is not None for url in batch.urls.to_pylist()], pa.bool_())
        else:
            hosts = batch.hosts.dictionary_encode()
            unique = [host is not None and self._holds(host) for host in hosts.dictionary.to_pylist()]
            inside = pa.array(unique, pa.bool_()).take(hosts.indices).fill_null(False)
        return pc.if_else(inside, pa.scalar(None, pa.string()), OUTSIDE)

    def _holds(self, host: str) -> bool:
        host = host.lower()  # `gossamer check filter` takes URLs as they come
        names = {host} if self.kind == "host" else {host, domain_of(host), public_suffix(host), host.rpartition(".")[2]}
        return not names.isdisjoint(self._names)


def parse_scope(text: str) -> list[str]:
    """Hosts, domains, suffixes or URLs, one a line."""
    return [line.strip().removeprefix("*").lstrip(".") for _, line in rule_lines(text)]


def entries(scope: str, urls: Iterable[str]) -> list[str]:
    """What is remembered of injected URLs: hosts, or for `seed` the URLs up to their last slash."""
    below = set(map(_below, urls)) - {""}
    return sorted(below if scope == "seed" else set(map(_host_of, below)))


def _host_of(entry: str) -> str:
    """The host an entry names, be it a URL or a bare name in any spelling."""
    href = parse(entry if "://" in entry else f"http://{entry}/")[0]
    found = None if href is None else ORIGIN.fullmatch(href)
    return found["host"] if found else ""


def _below(url: str) -> str:
    """The URL up to the last slash of its path."""
    path = (parse(url)[0] or "").partition("?")[0]
    return path[: path.rfind("/") + 1]


def _prefixes_of(entry: str) -> list[str]:
    """The URL prefixes an entry of a `seed` scope stands for; a bare name stands for its host."""
    if "://" in entry:
        href = _below(entry)
        return [href] if href else []
    host = _host_of(entry)
    return [f"{scheme}://{host}/" for scheme in ("http", "https")] if host else []
