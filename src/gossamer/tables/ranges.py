"""Row-key ranges of a host, a domain, a TLD or a prefix: what a look-up has to read, and nothing else."""

from __future__ import annotations

import re

import pyarrow as pa

from gossamer.tables.read import Keys
from gossamer.urls.keys import prefix_range, reverse_host, rowkeys

ORIGIN = re.compile(r"[^:/?#]+://[^/?#]*")


def host_ranges(host: str) -> Keys:
    """The URLs of one host, whatever their scheme and port."""
    return (prefix_range(f"{reverse_host(host)}:"),)


def domain_ranges(domain: str) -> Keys:
    """The URLs of a domain or TLD and of all hosts below it: two ranges, as `org.example0:` sorts between them."""
    reverse = reverse_host(domain)
    return prefix_range(f"{reverse}."), prefix_range(f"{reverse}:")


def prefix_ranges(prefix: str) -> Keys:
    """What begins with a piece of a row key, or with a piece of a URL that names at least the host."""
    origin = ORIGIN.match(prefix)
    if origin is None:
        return (prefix_range(prefix),)
    url = origin[0].lower() + prefix[origin.end() :]
    return (prefix_range(rowkeys(pa.array([url]))[0].as_py() or url),)
