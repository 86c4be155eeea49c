"""Registered domains."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gossamer.urls.domains import domain_of, domains, explain_domain, registered_domain

CASES = [
    ("example.com", "example.com"),
    ("a.b.example.com", "example.com"),
    ("com", None),
    ("www.example.co.uk", "example.co.uk"),
    ("co.uk", None),
    ("a.b.c.kobe.jp", "b.c.kobe.jp"),
    ("c.kobe.jp", None),
    ("www.city.kobe.jp", "city.kobe.jp"),
    ("www.ck", "www.ck"),
    ("a.www.ck", "www.ck"),
    ("someone.github.io", "someone.github.io"),  # the private section
    ("a.someone.github.io", "someone.github.io"),
    ("github.io", None),
    ("a.b.unlisted-tld", "b.unlisted-tld"),
    ("unlisted-tld", None),
    ("localhost", None),
    ("xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
    ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
    ("192.0.2.1", "192.0.2.1"),
    ("[2001:db8::1]", "[2001:db8::1]"),
]


@pytest.mark.parametrize(("host", "domain"), CASES)
def test_each(host: str, domain: str | None):
    assert registered_domain(host) == domain
    assert domain_of(host) == (domain or host)


def test_a_column():
    hosts = [None, *(host for host, _ in CASES), "example.com"]
    expected = [None, *(domain or host for host, domain in CASES), "example.com"]
    assert domains(pa.array(hosts, pa.string())).to_pylist() == expected
    assert domains(pa.array([], pa.string())).to_pylist() == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("WwW.Example.COM", ("example.com", "public suffix com")),
        ("https://user@www.example.co.uk:8443/a?b#c", ("example.co.uk", "public suffix co.uk")),
        ("www.食狮.公司.cn", ("xn--85x722f.xn--55qx5d.cn", "public suffix xn--55qx5d.cn")),
        ("example.com.", ("example.com", "public suffix com")),
        ("0x7f.1", ("127.0.0.1", "address")),
        ("[::1]", ("[::1]", "address")),
        ("com", (None, "public suffix")),
        (".com", (None, "not a host")),
        (".example.com", (None, "not a host")),
        ("", (None, "not a host")),
        ("a b.com", (None, "not a host")),
        ("example.com/a", (None, "not a host")),
        ("ftp://example.com/", (None, "scheme")),
        ("a..", (None, "public suffix")),
        ("http://[/", (None, "host")),
    ],
)
def test_explained(text: str, found: tuple[str | None, str]):
    assert explain_domain(text) == found
