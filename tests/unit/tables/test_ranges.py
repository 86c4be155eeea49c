"""Row-key ranges: all of a host or domain, and nothing that only looks like it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gossamer.tables.ranges import domain_ranges, host_ranges, prefix_ranges
from gossamer.tables.read import Keys
from gossamer.urls.keys import rowkeys

URLS = [
    "https://example.org/",
    "http://example.org:81/x",
    "https://www.example.org/",
    "https://example0.org/",
    "https://example-a.org/",
    "https://example.org.uk/",
    "https://org.example/",
    "https://192.0.2.1/",
    "https://192.0.2.10/",
    "https://[2001:db8::1]/",
]


def inside(ranges: Keys) -> list[str]:
    keys = rowkeys(pa.array(URLS)).to_pylist()
    return [
        url
        for url, key in zip(URLS, keys, strict=True)
        if any(low <= key and (high is None or key < high) for low, high in ranges)
    ]


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        (host_ranges("example.org"), URLS[:2]),
        (host_ranges("192.0.2.1"), URLS[7:8]),
        (host_ranges("[2001:db8::1]"), URLS[9:]),
        (domain_ranges("example.org"), URLS[:3]),
        (domain_ranges("org"), URLS[:5]),
        (domain_ranges("192.0.2.1"), URLS[7:8]),
        (prefix_ranges("org.example"), URLS[:5]),
        (prefix_ranges("https://example.org/"), URLS[:1]),
        (prefix_ranges("HTTP://EXAMPLE.org:81"), URLS[1:2]),
        (prefix_ranges("https://"), []),
    ],
)
def test_what_is_inside(ranges: Keys, expected: list[str]):
    assert inside(ranges) == expected
