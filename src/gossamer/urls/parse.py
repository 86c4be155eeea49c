"""URLs by the WHATWG standard: raw text → canonical hrefs, or the reason why it is none that we could fetch.

Most URLs that reach a crawler are canonical already. One regular expression over the whole column finds these; only the
others are parsed, one by one, by ada. Both ways must agree, and a test sees to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from ada_url import join_url, normalize_url

WEB = ("http", "https")
LONGEST = 1 << 16  # characters of raw text; what is longer is not even parsed

# A last label that starts with a letter is no number, so the host is no address in disguise. The standard leaves
# percent signs and A-labels as they are, and of what looks like this we drop nothing but the fragment.
CANONICAL = (
    r"^https?://(?:[a-z0-9_-]+\.)+[a-z][a-z0-9_-]*/[A-Za-z0-9!$%&'()*+,;=:@/~._|\[\]-]*"
    r"(?:\?[A-Za-z0-9!$%&()*+,;=:@/~._|\[\]{}?-]+)?(?:#(?s:.*))?$"
)
UNSURE = r"/\.{1,2}(?:[/?#]|$)|%2[Ee]"  # dot segments to resolve
FRAGMENT = "#(?s:.*)"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PORT = re.compile(r"https?:[/\\]*(?:[^/\\?#]*@)?(?:\[[^\]]*\]|[^/\\?#:@\[\]]+):(?P<port>[^/\\?#]*)", re.IGNORECASE)
_TRAILING_DOTS = re.compile(r"\.+(?=(?::\d+)?$)")
_STRIPPED = "".join(map(chr, range(0x21)))  # C0 controls and space
_REMOVED = dict.fromkeys(map(ord, "\t\n\r"))


def parse(url: str, schemes: tuple[str, ...] = WEB) -> tuple[str | None, str | None]:
    """The canonical href without credentials, fragment, empty query and dots after the host; or None and why."""
    if len(url) > LONGEST:
        return None, "too long"
    try:
        href: str = normalize_url(url)
    except ValueError:
        return None, _why_not(url)
    if not href.startswith(("http://", "https://")):
        return _other(href, schemes)
    href = href.partition("#")[0]
    start = href.index("//") + 2
    end = href.index("/", start)
    authority = href[start:end].rpartition("@")[2]
    rest = href[end:]
    if rest.find("?") == len(rest) - 1:
        rest = rest.removesuffix("?")
    bare = _TRAILING_DOTS.sub("", authority)
    if bare != authority:
        if not bare or bare.startswith(":"):
            return None, "host"
        return parse(f"{href[:start]}{bare}{rest}")  # without its dots it may be an address
    return f"{href[:start]}{authority}{rest}", None


def _other(href: str, schemes: tuple[str, ...]) -> tuple[str | None, str | None]:
    """A URL of another scheme, where such are wanted; files are those of this machine."""
    scheme = href.partition(":")[0]
    if scheme not in schemes or not href.startswith(f"{scheme}://"):
        return None, "scheme"
    if scheme == "file" and not href.startswith("file:///"):
        return None, "host"
    bare = href.partition("#")[0]
    return (bare, None) if "/" in bare[len(scheme) + 3 :] else (f"{bare}/", None)


def _why_not(url: str) -> str:
    """Why ada refused a URL, in one of a few words."""
    text = url.strip(_STRIPPED).translate(_REMOVED)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return "not a URL"
    if scheme[1].lower() not in ("http", "https"):
        return "scheme"
    port = _PORT.match(text)
    if port and (not port["port"].isascii() or not port["port"].isdigit() or int(port["port"]) > 65535):
        return "port"
    return "host"


def parse_column(urls: pa.Array, schemes: tuple[str, ...] = WEB) -> tuple[pa.Array, pa.Array]:
    """`parse` of a column: hrefs and reasons. NULL in gives NULL and `not a URL`."""
    canonical = pc.and_(
        pc.match_substring_regex(urls, CANONICAL),
        pc.and_(pc.less_equal(pc.binary_length(urls), LONGEST), pc.invert(pc.match_substring_regex(urls, UNSURE))),
    ).fill_null(False)
    reasons = pa.nulls(len(urls), pa.string())
    fragment = pc.and_(canonical, pc.match_substring(urls, "#")).fill_null(False)
    if pc.any(fragment).as_py():
        urls = pc.replace_with_mask(urls, fragment, pc.replace_substring_regex(urls.filter(fragment), FRAGMENT, ""))
    if pc.all(canonical).as_py():
        return urls, reasons
    odd = pc.invert(canonical)
    parsed = [(None, "not a URL") if url is None else parse(url, schemes) for url in urls.filter(odd).to_pylist()]
    hrefs, why = (pa.array([pair[at] for pair in parsed], pa.string()) for at in (0, 1))
    return pc.replace_with_mask(urls, odd, hrefs), pc.replace_with_mask(reasons, odd, why)


def resolve(base: str, links: Iterable[str]) -> list[str | None]:
    """Each link as an absolute URL seen from `base`; None where that is not possible."""
    return [_join(base, link) for link in links]


def _join(base: str, link: str) -> str | None:
    try:
        return str(join_url(base, link))
    except ValueError:
        return None
