"""Keys of URLs: fingerprints, row keys, shards and the random order of a batch. Works on columns of normalised hrefs."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_64_intdigest

# Files have no host. A user and password before the host are no part of the row key: they would scatter a domain's URLs.
PARTS = r"^(?P<scheme>[^:/?#]+)://(?:[^/?#]*@)?(?P<host>\[[^\]]*\]|[^:/?#\s]*)(?P<port>:[0-9]+)?(?P<rest>.*)$"
ROWKEY = r"^(?:\[[^\]]*\]|[^:]*):(?P<scheme>[a-z]+)(?P<port>:[0-9]+)?(?P<rest>.*)$"
ORIGIN = re.compile(PARTS, re.ASCII)
# What normalised hrefs look like: three slashes part them into scheme, host and the rest, which is far cheaper than PARTS.
PLAIN = r"^[^:/?#]+://[^/?#]+/.*$"


def fingerprint(text: str) -> int:
    """xxh3-64 of the UTF-8 text as a signed integer."""
    unsigned = xxh3_64_intdigest(text.encode())
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def fingerprints(texts: pa.Array) -> pa.Array:
    """`fingerprint` of a column; NULL stays NULL."""
    raw = texts.cast(pa.binary()).fill_null(b"").to_pylist()
    hashes = np.fromiter(map(xxh3_64_intdigest, raw), np.uint64, len(raw)).view(np.int64)
    return pa.array(hashes, mask=texts.is_null().to_numpy(zero_copy_only=False))


def positions(url_fps: pa.Array, segment: str) -> pa.Array:
    """The random but reproducible order of a batch: xxh3 of fingerprint and segment, not negative."""
    suffix = segment.encode()
    raw = url_fps.to_numpy().astype("<i8").tobytes()
    hashes = (xxh3_64_intdigest(raw[at : at + 8] + suffix) >> 1 for at in range(0, len(raw), 8))
    return pa.array(np.fromiter(hashes, np.int64, len(url_fps)))


def reverse_host(host: str) -> str:
    """`nutch.apache.org` as `org.apache.nutch`; addresses stay as they are."""
    if host.startswith("[") or host.replace(".", "").isdigit():
        return host
    return ".".join(reversed(host.split(".")))


def hosts(hrefs: pa.Array) -> pa.Array:
    """The host of each href."""
    return _taken_apart(hrefs)[0]


def rowkeys(hrefs: pa.Array) -> pa.Array:
    """`http://nutch.apache.org:8080/path` as `org.apache.nutch:http:8080/path`: sorted, a domain's URLs lie together."""
    return _taken_apart(hrefs)[1]


def url_columns(urls: pa.Array) -> dict[str, pa.Array]:
    """The columns that follow from normalised URLs: `domain_fp`, `url_fp`, `rowkey`, `url`, `host` and `domain`."""
    from gossamer.urls.domains import domains

    found, keys = _taken_apart(urls)
    domain = domains(found)
    encoded = domain.dictionary_encode()
    return {
        "domain_fp": fingerprints(encoded.dictionary).take(encoded.indices),
        "url_fp": fingerprints(urls),
        "rowkey": keys,
        "url": urls,
        "host": found,
        "domain": domain,
    }


def _taken_apart(hrefs: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Hosts and row keys; NULL for what has no host."""
    plain = pc.match_substring_regex(hrefs, PLAIN).fill_null(False)
    if pc.all(plain).as_py():
        return _plain_apart(hrefs)
    odd = pc.invert(plain)
    pairs = zip(_plain_apart(hrefs.filter(plain)), _odd_apart(hrefs.filter(odd)), strict=True)
    nothing = pa.nulls(len(hrefs), pa.string())
    host, key = (pc.replace_with_mask(pc.replace_with_mask(nothing, plain, a), odd, b) for a, b in pairs)
    return host, key


def _plain_apart(hrefs: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Split at the slashes; each distinct origin is looked at once."""
    parts = pc.split_pattern(hrefs, "/", max_splits=3).flatten()
    scheme, host, rest = (parts.take(pa.array(np.arange(at, len(parts), 4))) for at in (0, 2, 3))
    origins = pc.binary_join_element_wise(scheme, host, "//").dictionary_encode()
    known = [_origin(text) for text in origins.dictionary.to_pylist()]
    found, heads = (pa.array([pair[i] for pair in known], pa.string()).take(origins.indices) for i in (0, 1))
    return found, pc.binary_join_element_wise(heads, rest, "/")


def _origin(text: str) -> tuple[str | None, str | None]:
    """Host and beginning of the row key of `scheme://host:port`."""
    parts = ORIGIN.fullmatch(text)
    if parts is None:
        return None, None
    return parts["host"], f"{reverse_host(parts['host'])}:{parts['scheme']}{parts['port'] or ''}{parts['rest']}"


def _odd_apart(hrefs: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The same for whatever text, with the regular expression that says what a host is."""
    parts = pc.extract_regex(hrefs, PARTS)
    scheme, host, port, rest = (pc.struct_field(parts, name) for name in ("scheme", "host", "port", "rest"))
    reversed_hosts = pa.array([None if name is None else reverse_host(name) for name in host.to_pylist()], pa.string())
    tail = pc.binary_join_element_wise(scheme, pc.binary_join_element_wise(port, rest, ""), "")
    return host, pc.binary_join_element_wise(reversed_hosts, tail, ":")


def prefix_range(prefix: str) -> tuple[str, str | None]:
    """Lowest and first too high row key of all that begin with `prefix`."""
    for end in range(len(prefix), 0, -1):
        last = ord(prefix[end - 1])
        if last < 0x10FFFF:
            following = last + 1 if not 0xD800 <= last + 1 <= 0xDFFF else 0xE000
            return prefix, prefix[: end - 1] + chr(following)
    return prefix, None


def shard_of(fp: int, shards: int) -> int:
    """The shard of a fingerprint; `shards` is a power of two."""
    return fp & (shards - 1)


def hrefs(rowkeys: pa.Array, hosts: pa.Array) -> pa.Array:
    """The URLs behind row keys whose hosts are known: `rowkeys` the other way round, but for a user and password."""
    parts = pc.extract_regex(rowkeys, ROWKEY)
    scheme, port, rest = (pc.struct_field(parts, name) for name in ("scheme", "port", "rest"))
    return pc.binary_join_element_wise(scheme, "://", hosts, port, rest, "")
