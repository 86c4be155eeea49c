"""Keys of URLs: fingerprints, row keys, shards and the random order of a batch. Works on columns of normalised hrefs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_64_intdigest

# A user and password before the host are no part of the row key: they would scatter a domain's URLs.
PARTS = r"^(?P<scheme>[^:/?#]+)://(?:[^/?#]*@)?(?P<host>\[[^\]]*\]|[^:/?#\s]+)(?P<port>:[0-9]+)?(?P<rest>.*)$"


def fingerprint(text: str) -> int:
    """xxh3-64 of the UTF-8 text as a signed integer."""
    unsigned = xxh3_64_intdigest(text.encode())
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def fingerprints(texts: pa.Array) -> pa.Array:
    """`fingerprint` of a column; NULL stays NULL."""
    raw = texts.cast(pa.binary()).to_pylist()
    hashes = np.fromiter((xxh3_64_intdigest(value or b"") for value in raw), np.uint64, len(raw)).view(np.int64)
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
    return pc.struct_field(pc.extract_regex(hrefs, PARTS), "host")


def rowkeys(hrefs: pa.Array) -> pa.Array:
    """`http://nutch.apache.org:8080/path` as `org.apache.nutch:http:8080/path`: sorted, a domain's URLs lie together."""
    parts = pc.extract_regex(hrefs, PARTS)
    encoded = pc.struct_field(parts, "host").dictionary_encode()
    unique = [None if host is None else reverse_host(host) for host in encoded.dictionary.to_pylist()]
    reversed_hosts = pa.array(unique, pa.string()).take(encoded.indices)
    scheme, port, rest = (pc.struct_field(parts, name) for name in ("scheme", "port", "rest"))
    return pc.binary_join_element_wise(
        reversed_hosts, pc.binary_join_element_wise(scheme, pc.binary_join_element_wise(port, rest, ""), ""), ":"
    )


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
