"""Row keys: reversed host, scheme, port, path."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gossamer.urls.keys import hosts, hrefs, reverse_host, rowkeys

CASES = [
    # href, row key, host
    ("http://nutch.apache.org:8080/path", "org.apache.nutch:http:8080/path", "nutch.apache.org"),
    ("https://example.org/", "org.example:https/", "example.org"),
    ("https://example.org/a/b?c=d&e=http://x.y/", "org.example:https/a/b?c=d&e=http://x.y/", "example.org"),
    ("https://example.org/?q", "org.example:https/?q", "example.org"),
    ("https://localhost/", "localhost:https/", "localhost"),
    ("https://xn--bcher-kva.example/", "example.xn--bcher-kva:https/", "xn--bcher-kva.example"),
    ("https://www.example.co.uk/a:b@c", "uk.co.example.www:https/a:b@c", "www.example.co.uk"),
    ("http://192.0.2.1/", "192.0.2.1:http/", "192.0.2.1"),
    ("http://192.0.2.1:81/x", "192.0.2.1:http:81/x", "192.0.2.1"),
    ("http://[2001:db8::1]/x", "[2001:db8::1]:http/x", "[2001:db8::1]"),
    ("http://[2001:db8::1]:8080/x", "[2001:db8::1]:http:8080/x", "[2001:db8::1]"),
    ("https://user:secret@www.example.org:8443/x", "org.example.www:https:8443/x", "www.example.org"),
    ("https://user@example.org/@", "org.example:https/@", "example.org"),
    ("https://example.org/𝄞/é", "org.example:https/𝄞/é", "example.org"),
    ("https://1and1.example/", "example.1and1:https/", "1and1.example"),
]


@pytest.mark.parametrize(("href", "rowkey", "host"), CASES)
def test_each(href: str, rowkey: str, host: str):
    assert rowkeys(pa.array([href])).to_pylist() == [rowkey]
    assert hosts(pa.array([href])).to_pylist() == [host]


def test_all_at_once_with_nulls():
    hrefs = [case[0] for case in CASES]
    assert rowkeys(pa.array([None, *hrefs])).to_pylist() == [None, *(case[1] for case in CASES)]
    assert hosts(pa.array([None, *hrefs])).to_pylist() == [None, *(case[2] for case in CASES)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.org",
        "mailto:a@example.org",
        "data:text/plain,x",
        "http://a\nb/",
        "http://a/\n",
        "//x/y",
    ],
)
def test_what_has_no_host_has_no_row_key(text: str):
    assert rowkeys(pa.array([text])).to_pylist() == [None]
    assert hosts(pa.array([text])).to_pylist() == [None]


def test_no_rows():
    assert rowkeys(pa.array([], pa.string())).to_pylist() == []


def test_reverse_host():
    assert reverse_host("www.example.org") == "org.example.www"
    assert reverse_host(reverse_host("www.example.org")) == "www.example.org"
    assert reverse_host("192.0.2.1") == "192.0.2.1"
    assert reverse_host("[::1]") == "[::1]"


def test_a_host_and_a_domain_lie_together():
    """Hosts of a domain lie together, and so do the pages of a host, whatever the neighbours are called."""
    names = [
        "example.org",
        "www.example.org",
        "a.b.example.org",
        "example-shop.org",
        "exampl.org",
        "example.com",
        "zexample.org",
    ]
    hrefs = [f"{scheme}://{name}/{path}" for name in names for scheme in ("http", "https") for path in ("", "~z", "A")]
    found = sorted(rowkeys(pa.array(hrefs)).to_pylist())
    for inside in ("org.example:", "org.example.", "org.example.www:"):
        mine = [number for number, key in enumerate(found) if key.startswith(inside)]
        assert mine == list(range(mine[0], mine[0] + len(mine))), inside
    domain = [number for number, key in enumerate(found) if key.startswith(("org.example:", "org.example."))]
    assert len(domain) == 18
    assert domain == list(range(domain[0], domain[0] + 18))


def test_files_have_no_host_but_a_row_key():
    urls = pa.array(["file:///etc/hosts"])
    assert hosts(urls).to_pylist() == [""]
    assert rowkeys(urls).to_pylist() == [":file/etc/hosts"]
    assert hrefs(rowkeys(urls), hosts(urls)).equals(urls)
