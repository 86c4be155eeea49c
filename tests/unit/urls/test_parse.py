"""URLs by the WHATWG standard, one at a time and in columns."""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gossamer.urls.parse import CANONICAL, LONGEST, parse, parse_column, resolve
from tests.unit.urls import nasty

CASES = [
    ("http://example.org", "http://example.org/"),
    ("  HTTPS://EXAMPLE.org:443/A \n", "https://example.org/A"),
    ("http://example.org:80/", "http://example.org/"),
    ("https://example.org:80/", "https://example.org:80/"),
    ("http://example.org:/", "http://example.org/"),
    ("http:\\\\example.org\\a\\b", "http://example.org/a/b"),
    ("http://example.org/a/./b/../c", "http://example.org/a/c"),
    ("http://example.org/../../a", "http://example.org/a"),
    ("http://example.org/a/%2e%2E/b", "http://example.org/b"),
    ("http://example.org/a//b/", "http://example.org/a//b/"),
    ("http://exa\tmple.org/a\nb", "http://example.org/ab"),
    ("http://example.org/a b?c d", "http://example.org/a%20b?c%20d"),
    ("http://example.org/é?é", "http://example.org/%C3%A9?%C3%A9"),
    ("http://bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
    ("http://example。org/", "http://example.org/"),
    ("http://user:secret@example.org/a@b", "http://example.org/a@b"),
    ("http://user@example.org", "http://example.org/"),
    ("http://example.org/#fragment", "http://example.org/"),
    ("http://example.org/a?#", "http://example.org/a"),
    ("http://example.org/?", "http://example.org/"),
    ("http://example.org/??", "http://example.org/??"),
    ("http://example.org./", "http://example.org/"),
    ("http://example.org.:8080/a", "http://example.org:8080/a"),
    ("http://example.org..", "http://example.org/"),
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://0177.0.0.01./", "http://127.0.0.1/"),
    ("http://0x7f.1../", "http://127.0.0.1/"),
    ("http://[2001:DB8:0:0::1]:80/", "http://[2001:db8::1]/"),
    ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
    ("http:example.org", "http://example.org/"),
    ("http://example.org/a^b", "http://example.org/a%5Eb"),
    ("http://example.org/\x00\x1fa", "http://example.org/%00%1Fa"),
]
REFUSED = [
    ("", "not a URL"),
    ("example.org/a", "not a URL"),
    ("//example.org/a", "not a URL"),
    ("/a/b", "not a URL"),
    ("?a", "not a URL"),
    ("\x00\x00", "not a URL"),
    ("ftp://example.org/", "scheme"),
    ("mailto:a@example.org", "scheme"),
    ("javascript:alert(1)", "scheme"),
    ("data:text/html,x", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("ws://example.org/", "scheme"),
    ("gopher://a b/", "scheme"),
    ("http:", "host"),
    ("http://", "host"),
    ("http:///", "host"),
    ("http://?a", "host"),
    ("http://a b/", "host"),
    ("http://a<b/", "host"),
    ("http://[::1/", "host"),
    ("http://[1.2.3.4]/", "host"),
    ("http://256.256.256.256/", "host"),
    ("http://1.2.3.4.5/", "host"),
    ("http://./", "host"),
    ("http://..:80/", "host"),
    ("http://%00/", "host"),
    ("http://\u00ad/", "host"),
    ("http://example.org:65536/", "port"),
    ("http://example.org:http/", "port"),
    ("http://u:p@example.org:1x/", "port"),
    ("http://example.org:²/", "port"),
    ("http://example.org/" + "a" * LONGEST, "too long"),
]


@pytest.mark.parametrize(("raw", "href"), CASES)
def test_accepted(raw: str, href: str):
    assert parse(raw) == (href, None)
    assert parse(href) == (href, None)


@pytest.mark.parametrize(("raw", "reason"), REFUSED, ids=[f"{n}" for n, _ in enumerate(REFUSED)])
def test_refused(raw: str, reason: str):
    assert parse(raw) == (None, reason)


def test_a_column_with_everything():
    raw = [None, *(case[0] for case in CASES + REFUSED)]
    hrefs, reasons = parse_column(pa.array(raw, pa.string()))
    assert hrefs.to_pylist() == [None, *(case[1] for case in CASES), *[None] * len(REFUSED)]
    assert reasons.to_pylist() == ["not a URL", *[None] * len(CASES), *(case[1] for case in REFUSED)]


@pytest.mark.parametrize("raw", [[], [None], ["http://example.org/"], ["x"]])
def test_small_columns(raw: list[str | None]):
    hrefs, reasons = parse_column(pa.array(raw, pa.string()))
    assert hrefs.type == reasons.type == pa.string()
    assert hrefs.to_pylist() == [parse(url)[0] if url else None for url in raw]


def test_columns_agree_with_single_urls():
    raw = nasty.urls(30_000, seed=1)
    hrefs, reasons = parse_column(pa.array(raw))
    expected = [parse(url) for url in raw]
    wrong = [(r, e, h) for r, e, h in zip(raw, expected, hrefs.to_pylist(), strict=True) if e[0] != h]
    assert wrong == []
    assert reasons.to_pylist() == [reason for _, reason in expected]


def test_the_fast_path_is_taken_and_means_that_nothing_changes():
    raw = nasty.urls(30_000, seed=2)
    canonical = pc.match_substring_regex(pa.array(raw), CANONICAL)
    assert 3_000 < pc.sum(canonical).as_py() < 27_000


@pytest.mark.parametrize(
    ("url", "href"),
    [
        ("https://www.example.org/", None),
        ("https://xn--bcher-kva.example/", None),
        ("https://xn--a.xn--.example/", None),
        ("http://a.b-c.example.co.uk/path/to/page.html?id=7&lang=en", None),
        ("https://example.org/a%20b;v=1,2/(x)!$&'*+~:@[]|%?q=%C3%a9[]{}|/?:@%zz", None),
        ("https://example.org/a#b \n?#c", "https://example.org/a"),
    ],
)
def test_canonical_urls_need_no_parser(url: str, href: str | None):
    assert pc.match_substring_regex(pa.array([url]), CANONICAL).to_pylist() == [True]
    assert parse(url) == (href or url, None)
    assert parse_column(pa.array([url]))[0].to_pylist() == [href or url]


def test_what_is_parsed_stays():
    hrefs = [href for href in (parse(url)[0] for url in nasty.urls(20_000, seed=3)) if href]
    assert len(hrefs) > 5_000
    assert [(href, again) for href in hrefs if (again := parse(href)[0]) != href] == []


def test_huge_urls_take_linear_time():
    start = time.perf_counter()
    huge = [
        "http://example.org/" + "a/" * 500_000,
        "x" * 1_000_000,
        "http://" + "a." * 500_000,
        "http://example.org/?" + "%41" * 300_000,
    ]
    assert set(parse_column(pa.array(huge))[1].to_pylist()) == {"too long"}
    assert parse("http://" + "a." * 30_000 + "example/")[1] in (None, "host")
    assert parse("http://example.org" + "/.." * 20_000 + "/a") == ("http://example.org/a", None)
    assert time.perf_counter() - start < 2


def test_resolve():
    links = [
        "b",
        "/c",
        "//other.example/d",
        "?q",
        "#f",
        "",
        "https://example.org",
        "http://[",
        "mailto:x",
        "../../e",
        " f ",
    ]
    assert resolve("http://example.org/a/b/", links) == [
        "http://example.org/a/b/b",
        "http://example.org/c",
        "http://other.example/d",
        "http://example.org/a/b/?q",
        "http://example.org/a/b/#f",
        "http://example.org/a/b/",
        "https://example.org/",
        None,
        "mailto:x",
        "http://example.org/e",
        "http://example.org/a/b/f",
    ]
