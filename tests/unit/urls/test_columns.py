"""All columns that follow from URLs, at once."""

from __future__ import annotations

import pyarrow as pa

from gossamer.urls.keys import fingerprint, hosts, rowkeys, url_columns
from gossamer.urls.parse import parse
from tests.unit.urls import nasty

URLS = [
    "https://www.example.co.uk/a",
    "http://192.0.2.1:81/",
    "https://github.io/",
    "http://[::1]/",
    "https://www.example.co.uk/b",
]


def test_columns():
    found = {name: column.to_pylist() for name, column in url_columns(pa.array(URLS)).items()}
    domains = ["example.co.uk", "192.0.2.1", "github.io", "[::1]", "example.co.uk"]
    assert found == {
        "domain_fp": [fingerprint(domain) for domain in domains],
        "url_fp": [fingerprint(url) for url in URLS],
        "rowkey": rowkeys(pa.array(URLS)).to_pylist(),
        "url": URLS,
        "host": hosts(pa.array(URLS)).to_pylist(),
        "domain": domains,
    }


def test_slices_and_no_rows():
    whole, part = url_columns(pa.array(URLS)), url_columns(pa.array(URLS).slice(1, 3))
    assert all(part[name].to_pylist() == column.slice(1, 3).to_pylist() for name, column in whole.items())
    assert all(len(column) == 0 for column in url_columns(pa.array([], pa.string())).values())


def test_plain_urls_and_others_agree():
    """An odd neighbour sends a URL another way, but not to another key."""
    urls = [href for href in (parse(url)[0] for url in nasty.urls(5_000, seed=7)) if href]
    alone = rowkeys(pa.array(urls)).to_pylist()
    mixed = rowkeys(pa.array([text for url in urls for text in (url, "no url")])).to_pylist()
    assert mixed == [key for found in alone for key in (found, None)]
    assert None not in alone
