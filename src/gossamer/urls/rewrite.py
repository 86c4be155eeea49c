"""What we normalise beyond the WHATWG standard: one function per matter, on one URL, and a way to run it on a column.

Each matter has a pattern that finds every URL it could change; only those leave the column and meet Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

# Lower case digits, or an unreserved character behind a triplet.
ENCODED = r"%(?:[0-9A-F]?[a-f]|2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])"
EMPTY_PARAMETER = r"[?&]&|[?&]$"
INDEX_PAGE = r"(?i)/(?:index|default)\.(?:[psx]?html?|aspx?|php[3-6]?|cgi|cfm|js[pf][afx]?)(?:\?|$)"
DOUBLE_SLASH = r"://.*//"

_TRIPLET = re.compile(r"%[0-9A-Fa-f]{2}")
# After a lone % (or one with a single digit) nothing is decoded: it would make a triplet that was not there.
_DECODABLE = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])%[0-9A-Fa-f]{2}")
_DECODED = {f"%{ord(char):02X}": char for char in UNRESERVED}
_INDEX = re.compile(INDEX_PAGE.replace(r"(?:\?|$)", r"\Z"))
_SLASHES = re.compile("/{2,}")
_ASP_SESSION = r"/\([AFS]\([A-Za-z0-9_-]{10,}\)\)"
_ASP = re.compile(rf"{_ASP_SESSION}(?=/)")


def rewrite(urls: pa.Array, pattern: str, change: Callable[[str], str]) -> pa.Array:
    """The column with `change` applied to the URLs in which the pattern is found."""
    return rewrite_where(urls, pc.match_substring_regex(urls, pattern).fill_null(False), change)


def rewrite_where(urls: pa.Array, mask: pa.Array, change: Callable[[str], str]) -> pa.Array:
    """The column with `change` applied to the URLs under the mask."""
    if not pc.any(mask).as_py():
        return urls
    changed = pa.array([change(url) for url in urls.filter(mask).to_pylist()], pa.string())
    return pc.replace_with_mask(urls, mask, changed)


def decode_unreserved(url: str) -> str:
    """Percent-encoding in upper case, and only where the character needs it."""
    decoded = _DECODABLE.sub(lambda found: _DECODED.get(found[0].upper(), found[0]), url)
    return _TRIPLET.sub(lambda found: found[0].upper(), decoded)


@dataclass(frozen=True)
class Parameters:
    """Names of parameters to take out of URLs, compiled; `*` in a name stands for anything."""

    mask: str
    path: re.Pattern[str] | None
    query: re.Pattern[str]

    def strip(self, url: str) -> str:
        """The URL without these parameters, in the path (`;name=…`) and in the query."""
        path, _, query = url.partition("?")
        if self.path:
            host_end = path.index("/", 8)  # `;` and `=` may be in hosts
            path = path[:host_end] + _ASP.sub("", self.path.sub("", path[host_end:]))
        if query:
            kept = self.query.sub("", query)
            query = kept if kept == query else kept.lstrip("&;")
        return f"{path}?{query}" if query else path


@lru_cache(maxsize=64)
def parameters(names: tuple[str, ...], *, sessions: bool = False) -> Parameters | None:
    """The names compiled; with `sessions` they are looked for in the path too, as is ASP.NET's `/(S(…))/`."""
    if not names:
        return None
    spelled = "|".join(re.escape(name).replace(r"\*", "[^=&;/?]*") for name in names)
    mask = rf"(?i)[?&;](?:{spelled})=" + (rf"|{_ASP_SESSION}/" if sessions else "")
    path = re.compile(rf"(?i);(?:{spelled})=[^;/]*") if sessions else None
    return Parameters(mask, path, re.compile(rf"(?i)(?:^|[&;])(?:{spelled})=[^&;]*"))


def clean_query(url: str) -> str:
    """The URL without empty parameters (`?&a=1&&b=2&`), and without a query that has nothing else."""
    path, _, query = url.partition("?")
    kept = "&".join(filter(None, query.split("&")))
    return f"{path}?{kept}" if kept else path


def drop_index_page(url: str) -> str:
    """`/index.html` and its like as `/`."""
    path, mark, query = url.partition("?")
    return f"{_INDEX.sub('/', path)}{mark}{query}"


def single_slashes(url: str) -> str:
    """The path with runs of slashes as one."""
    head, mark, query = url.partition("?")
    scheme, _, rest = head.partition("://")
    return f"{scheme}://{_SLASHES.sub('/', rest)}{mark}{query}"


@lru_cache(maxsize=8)
def wrong_hosts(www: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Host as it should not be → as it should, from domain → `with` or `without`."""
    return {
        (name if kind == "with" else f"www.{name}"): (f"www.{name}" if kind == "with" else name) for name, kind in www
    }


def rename_host(url: str, hosts: dict[str, str]) -> str:
    """The URL on the host it should be on."""
    scheme, _, rest = url.partition("://")
    end = next((at for at, char in enumerate(rest) if char in ":/"), len(rest))
    return f"{scheme}://{hosts.get(rest[:end], rest[:end])}{rest[end:]}"
