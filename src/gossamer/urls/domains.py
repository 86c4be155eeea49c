"""Registered domains by the Public Suffix List, private section included: hosts → domains, each distinct host once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from gossamer.urls.keys import ORIGIN
from gossamer.urls.parse import parse

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

_HOST_ONLY = frozenset("/?#@\\ ")  # what cannot be in a host


@lru_cache(maxsize=1)
def suffix_list() -> PublicSuffixList:
    """The list that comes with the package; reading it takes 60 ms."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def is_address(host: str) -> bool:
    """Whether a normalised host is an IPv4 or IPv6 literal."""
    return host.startswith("[") or host.replace(".", "").isdigit()


def registered_domain(host: str) -> str | None:
    """The registrable part of a normalised host; an address is its own, a public suffix or a lone label has none."""
    if is_address(host):
        return host
    found: str | None = suffix_list().privatesuffix(host)
    return found


def public_suffix(host: str) -> str | None:
    """The public suffix of a normalised host; an address has none."""
    found: str | None = None if is_address(host) else suffix_list().publicsuffix(host)
    return found


def domain_of(host: str) -> str:
    """The domain a host is counted under: its registered domain, or itself if it has none."""
    return registered_domain(host) or host


def explain_domain(text: str) -> tuple[str | None, str]:
    """The registered domain of a host or URL in any spelling and how it was found, or None and why there is none."""
    text = text.strip()
    if "://" not in text and (not text or text.startswith(".") or not _HOST_ONLY.isdisjoint(text)):
        return None, "not a host"
    href, reason = parse(text if "://" in text else f"http://{text}/")
    found = ORIGIN.fullmatch(href) if href else None
    if found is None:
        return None, reason or "not a host"
    host = found["host"]
    if is_address(host):
        return host, "address"
    domain, suffix = registered_domain(host), public_suffix(host)
    return (
        (domain, f"public suffix {suffix}") if domain else (None, "public suffix" if suffix == host else "not a host")
    )


def domains(hosts: pa.Array) -> pa.Array:
    """`domain_of` of a column; NULL stays NULL."""
    encoded = hosts.dictionary_encode()
    unique = [None if host is None else domain_of(host) for host in encoded.dictionary.to_pylist()]
    return pa.array(unique, pa.string()).take(encoded.indices)
