"""Lines of seed lists: three kinds of line, what they may say, and what is wrong with the others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from gossamer.stages.inject.inputs import MAX_LINE
from gossamer.stages.inject.lines import LEAST_INTERVAL, seeds_of, with_scheme
from gossamer.tables.statuses import PageKind


def seeds(text: str | bytes, first: int = 1) -> list[dict[str, Any]]:
    batch, _ = seeds_of(text.encode() if isinstance(text, str) else text, first)
    return [{k: v for k, v in row.items() if v is not None} for row in batch.to_pylist(maps_as_pydicts="strict")]


def only(text: str | bytes) -> dict[str, Any]:
    (seed,) = seeds(text)
    return seed


def test_comments_and_blank_lines_are_no_seeds_but_lines():
    text = "# seeds\n\n  \t \nhttp://a.example/\n   # indented\nhttp://b.example/#not-a-comment"
    assert seeds(text, first=11) == [
        {"line": 14, "url": "http://a.example/"},
        {"line": 16, "url": "http://b.example/#not-a-comment"},
    ]
    assert seeds_of(text.encode(), 1)[1] == 6


@pytest.mark.parametrize(
    "text", ["http://a.example/x\r", "  http://a.example/x  ", "\thttp://a.example/x\t\t", "\u00a0http://a.example/x"]
)
def test_what_surrounds_a_url(text: str):
    assert only(text) == {"line": 1, "url": "http://a.example/x"}


def test_nutch_metadata():
    line = "http://a.example/\tnutch.score=2.5\tnutch.fetchInterval=3600\tlang=de\tquery=a=b&c=d\tempty="
    assert only(line) == {
        "line": 1,
        "url": "http://a.example/",
        "cash": 2_500_000,
        "interval_s": 3600,
        "meta": {"empty": "", "lang": "de", "query": "a=b&c=d"},
    }


def test_short_names_and_kinds():
    line = "http://a.example/\tscore=0\tinterval=86400.0\tkind=Sitemap"
    assert only(line) == {
        "line": 1,
        "url": "http://a.example/",
        "cash": 0,
        "interval_s": 86400,
        "kind": PageKind.SITEMAP,
    }
    assert only("http://a.example/\tkind=feed")["kind"] == PageKind.FEED


@pytest.mark.parametrize("order", [1, -1])
def test_a_fixed_interval_wins_and_stays_visible(order: int):
    pairs = ["nutch.fetchInterval.fixed=7200", "nutch.fetchInterval=3600"][::order]
    assert only("\t".join(["http://a.example/", *pairs])) == {
        "line": 1,
        "url": "http://a.example/",
        "interval_s": 7200,
        "meta": {"nutch.fetchInterval.fixed": "7200"},
    }


def test_a_key_given_twice_is_one_key():
    assert only("http://a.example/\tk=1\tk=2")["meta"] == {"k": "2"}


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("novalue", "metadata is not key=value"),
        ("=x", "metadata is not key=value"),
        ("score=-1", "score is not a number from 0 to 1,000,000"),
        ("score=nan", "score is not a number"),
        ("score=inf", "score is not a number"),
        ("nutch.score=much", "score is not a number"),
        (f"interval={LEAST_INTERVAL - 1}", "interval is not a number of seconds, 60 at least"),
        ("interval=1e20", "interval is not"),
        ("interval=nan", "interval is not"),
        ("nutch.fetchInterval.fixed=soon", "interval is not"),
        ("kind=movie", "kind is not one of page, feed, sitemap"),
    ],
)
def test_metadata_that_says_nothing(pair: str, said: str):
    seed = only(f"http://a.example/\tlang=de\t{pair}")
    assert seed.pop("reason").startswith(said)
    assert seed == {"line": 1, "url": "http://a.example/"}


def test_the_urls_of_a_host():
    line = "www.a.example\thttp://www.a.example/1\thttps://www.a.example/2?k=v\twww.a.example/3"
    assert [seed["url"] for seed in seeds(line)] == [
        "http://www.a.example/1",
        "https://www.a.example/2?k=v",
        "http://www.a.example/3",
    ]
    assert {seed["line"] for seed in seeds(line)} == {1}


def test_urls_behind_a_url_are_all_seeds():
    urls = ["http://a.example/", "http://b.example/?x=http://c.example/"]
    assert [seed["url"] for seed in seeds("\t".join(urls))] == urls


def test_a_url_as_a_value_is_no_url_of_a_host():
    seed = only("http://a.example/\treferrer=http://b.example/")
    assert seed["meta"] == {"referrer": "http://b.example/"}


def test_lines_keep_their_order():
    text = "http://a.example/1\nh.example\thttp://h.example/2\thttp://h.example/3\nhttp://a.example/4\thttp://a.example/5\nb.example/6"
    assert [seed["url"][-1] for seed in seeds(text)] == list("123456")
    assert [seed["line"] for seed in seeds(text)] == [1, 2, 2, 3, 3, 4]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.org", "http://example.org"),
        ("example.org/path?a=b c", "example.org/path?a=b c"),  # a space: not what a bare host looks like
        ("example.org:8080/x", "http://example.org:8080/x"),
        ("bücher.example/x", "http://bücher.example/x"),
        ("192.0.2.1/x", "http://192.0.2.1/x"),
        ("localhost", "localhost"),
        ("mailto:a@example.org", "mailto:a@example.org"),
        ("some words. and more", "some words. and more"),
        ("a@example.org", "a@example.org"),
        ("/etc/passwd.txt", "/etc/passwd.txt"),
        ("ftp://example.org", "ftp://example.org"),
        ("a..b", "a..b"),
    ],
)
def test_bare_hosts_get_a_scheme(text: str, expected: str):
    assert with_scheme(pa.array([text, "https://x.example/"])).to_pylist() == [expected, "https://x.example/"]


def test_lines_that_are_no_text():
    found = seeds(b"http://a.example/\nhttp://b.example/\xff\xfe\nhttp://c.example/\0x\nhttp://d.example/\xc3\xa4")
    assert [seed.get("reason") for seed in found] == [None, "not UTF-8", "NUL in the line", None]
    assert found[1]["url"] == "http://b.example/\\xff\\xfe"
    assert found[3]["url"] == "http://d.example/ä"


def test_bad_lines_with_tabs_are_not_parsed():
    assert only(b"http://a.example/\tk=\xff") == {"line": 1, "url": "http://a.example/\tk=\\xff", "reason": "not UTF-8"}


def test_a_line_that_is_too_long():
    longest = b"http://a.example/" + b"x" * (MAX_LINE - 17)
    found = seeds(longest + b"\n" + longest + b"x\nhttp://b.example/")
    assert [seed.get("reason") for seed in found] == [None, "line longer than 1,024 KiB, break it up", None]
    assert len(found[1]["url"]) == 300
