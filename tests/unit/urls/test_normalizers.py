"""What is normalised beyond the WHATWG standard, and that columns agree with single URLs."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from gossamer.rules.ruleset import rules_from
from gossamer.settings import load_settings
from gossamer.urls import rewrite
from gossamer.urls.chain import UrlChain
from gossamer.urls.parse import parse
from tests.unit.urls import nasty

ALL = "urls.normalizers=encoding,sessions,tracking,query,index,slashes,www"
WWW = 'urls.www={"example.org" = "with", "www.Example.co.uk" = "without"}'
EVERYTHING = UrlChain(rules_from(load_settings(environment={}, sets=[ALL, WWW]).settings))
DEFAULT = UrlChain(rules_from(load_settings(environment={}).settings))

ENCODING = [
    ("/%41%7a%30%2D%2e%5F%7e", "/Az0-._~"),
    ("/a%2fb%3f%c3%a9", "/a%2Fb%3F%C3%A9"),
    ("/%zz%4", "/%zz%4"),
    ("/%%34%31", "/%%341"),  # decoding all of it would make %41, which was not there
    ("/%4%31", "/%4%31"),
    ("/%2541", "/%2541"),
    ("/?q=%61%26b", "/?q=a%26b"),
]
SESSIONS = [
    ("/a;jsessionid=1E6F", "/a"),
    ("/a;JSESSIONID=1E6F!-7?b=1", "/a?b=1"),
    ("/a;jsessionid=1/b;v=2", "/a/b;v=2"),
    ("/..;sid=1/b", "/b"),
    ("/a?PHPSESSID=1", "/a"),
    ("/a?b=1&phpsessid=2&c=3", "/a?b=1&c=3"),
    ("/a?sid=1&sid=2&b=3", "/a?b=3"),
    ("/a?b=1;jsessionid=2", "/a?b=1"),
    ("/a?b=1;sid=2&c=3", "/a?b=1&c=3"),
    ("/a?ASPSESSIONIDQABC=1&b=2", "/a?b=2"),
    ("/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "/a.aspx"),
    ("/a?newsid=1&sids=2&x=sid", "/a?newsid=1&sids=2&x=sid"),
    ("/a?sid", "/a?sid"),
    ("/sid=1/a", "/sid=1/a"),
    ("/a?q=http://b/;sid=1", "/a?q=http://b/"),
]
TRACKING = [
    ("/?utm_source=a&utm_campaign=b", "/"),
    ("/a?id=1&UTM_Medium=x&gclid=2", "/a?id=1"),
    ("/a?fbclid=x&id=1", "/a?id=1"),
    ("/a?my_utm_source=1", "/a?my_utm_source=1"),
    ("/utm_source=1", "/utm_source=1"),
]
QUERY = [
    ("/a?&b=1", "/a?b=1"),
    ("/a?b=1&&&c=2&", "/a?b=1&c=2"),
    ("/a?&", "/a"),
    ("/a&&b?c", "/a&&b?c"),
    ("/a?b=&c", "/a?b=&c"),
]
INDEX = [
    ("/index.html", "/"),
    ("/a/Default.ASPX?b=1", "/a/?b=1"),
    ("/index.php5", "/"),
    ("/index.jsps", "/index.jsps"),
    ("/myindex.html", "/myindex.html"),
    ("/index.html/a", "/index.html/a"),
    ("/a?b=/index.html", "/a?b=/index.html"),
]
SLASHES = [("//a///b//", "/a/b/"), ("/a?b=//c", "/a?b=//c"), ("/a//?b", "/a/?b")]


def normal(chain: UrlChain, *urls: str) -> list[str | None]:
    return chain.normalize(pa.array(urls), "parse").url.to_pylist()


@pytest.mark.parametrize(("given", "expected"), [*ENCODING, *SESSIONS, *TRACKING, *QUERY])
def test_by_default(given: str, expected: str):
    assert normal(DEFAULT, f"http://example.com{given}") == [f"http://example.com{expected}"]


@pytest.mark.parametrize(("given", "expected"), [*INDEX, *SLASHES])
def test_if_wanted(given: str, expected: str):
    assert normal(EVERYTHING, f"http://example.com{given}") == [f"http://example.com{expected}"]
    assert normal(DEFAULT, f"http://example.com{given}") == [f"http://example.com{given}"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://example.org/a", "http://www.example.org/a"),
        ("http://example.org:8080/a", "http://www.example.org:8080/a"),
        ("http://www.example.org/", "http://www.example.org/"),
        ("https://www.example.co.uk/?b", "https://example.co.uk/?b"),
        ("https://shop.example.org/", "https://shop.example.org/"),
        ("https://example.net/example.org/", "https://example.net/example.org/"),
    ],
)
def test_www(given: str, expected: str):
    assert normal(EVERYTHING, given) == [expected]


def reference(url: str) -> str | None:
    """Every normaliser on one URL, whether it has something to do or not."""
    href = parse(url)[0]
    if href is None:
        return None
    rules = EVERYTHING.rules
    sessions = rewrite.parameters(rules.session_parameters, sessions=True)
    tracking = rewrite.parameters(rules.tracking_parameters)
    assert sessions
    assert tracking
    changes = [
        *(rewrite.decode_unreserved, sessions.strip, tracking.strip, rewrite.clean_query, rewrite.drop_index_page),
        *(rewrite.single_slashes, lambda url: rewrite.rename_host(url, rewrite.wrong_hosts(rules.www))),
    ]
    for change in changes:
        href = change(href)
    return parse(href)[0]


def test_columns_agree_with_single_urls():
    raw = nasty.urls(40_000, seed=4)
    found = normal(EVERYTHING, *raw)
    assert [(u, f, e) for u, f in zip(raw, found, strict=True) if f != (e := reference(u))] == []
    assert 10_000 < sum(url is not None for url in found) < 40_000


@pytest.mark.parametrize("chain", [DEFAULT, EVERYTHING], ids=["default", "everything"])
def test_what_is_normal_stays(chain: UrlChain):
    once = [url for url in normal(chain, *nasty.urls(40_000, seed=5)) if url]
    twice = normal(chain, *once)
    assert [(a, b) for a, b in zip(once, twice, strict=True) if a != b] == []


def test_names_are_taken_literally():
    chain = UrlChain(rules_from(load_settings(environment={}, sets=["urls.tracking_parameters=a.b,c[,(x)+,"]).settings))
    assert normal(chain, "http://example.com/?a.b=1&axb=2&c[=3&(x)+=4&=5") == ["http://example.com/?axb=2&=5"]


def test_no_names():
    sets = ["urls.tracking_parameters=[]", "urls.session_parameters=[]"]
    chain = UrlChain(rules_from(load_settings(environment={}, sets=sets).settings))
    assert normal(chain, "http://example.com/;sid=1?sid=1&utm_source=2") == [
        "http://example.com/;sid=1?sid=1&utm_source=2"
    ]


def test_hostile_urls_take_linear_time():
    start = time.perf_counter()
    size = 20_000
    hostile = [
        ";sid=" * size,
        "?" + "&" * size,
        "?" + "utm_" * size + "=",
        "/(S(" * size,
        "%" * size,
        "%41" * size,
        "/" * size,
    ]
    found = normal(EVERYTHING, *(f"http://example.com/{text[:60_000]}" for text in hostile))
    assert None not in found
    assert time.perf_counter() - start < 3
