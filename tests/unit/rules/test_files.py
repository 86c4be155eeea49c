"""Prefix and suffix files, scope and limits."""

from __future__ import annotations

import random
import time

import pyarrow as pa
import pytest

from gossamer.rules import limits
from gossamer.rules.prefixes import Prefixes, parse_prefixes
from gossamer.rules.scope import Scope, entries, parse_scope
from gossamer.rules.suffixes import SuffixFile, parse_suffixes
from gossamer.urls.batch import UrlBatch


def batch(*urls: str, stage: str = "parse", depth: list[int | None] | None = None) -> UrlBatch:
    return UrlBatch(pa.array(urls, pa.string()), stage, None if depth is None else pa.array(depth, pa.int16()))


class TestPrefixes:
    def test_one_a_line_accepts(self):
        file = parse_prefixes("p.txt", "# comment\n\nhttp://\nhttps://\n")
        urls = ["http://example.org/", "https://example.org/", "ftp://example.org/", "example.org"]
        assert file.reasons(batch(*urls)).to_pylist() == [None, None, *["p.txt: no line matches"] * 2]

    def test_the_longest_decides(self):
        file = parse_prefixes("p.txt", "+http://a/\n-http://a/b\nhttp://a/b/c/ \r\n-http://a/b/c/d\n")
        urls = ["http://a/x", "http://a/bx", "http://a/b/c/x", "http://a/b/c/dx", "http://b/"]
        assert file.reasons(batch(*urls)).to_pylist() == [
            None,
            "p.txt:2 -http://a/b",
            None,
            "p.txt:4 -http://a/b/c/d",
            "p.txt: no line matches",
        ]
        assert file.acceptances(batch(*urls[:3])).to_pylist() == ["p.txt:1 +http://a/", None, "p.txt:3 +http://a/b/c/"]

    @pytest.mark.parametrize("text", ["+http://a/\n-http://a/", "-http://a/\n+http://a/"])
    def test_an_exclusion_wins_over_its_equal(self, text: str):
        (reason,) = parse_prefixes("p.txt", text).reasons(batch("http://a/b")).to_pylist()
        assert reason.endswith("-http://a/")

    def test_a_file_that_only_excludes_keeps_the_rest(self):
        assert parse_prefixes("p.txt", "-http://a/").reasons(batch("http://b/")).to_pylist() == [None]

    def test_the_longest_of_many(self):
        chance = random.Random(3)
        words = ["".join(chance.choice("abc") for _ in range(chance.randrange(1, 7))) for _ in range(300)]
        table = Prefixes(words)
        for _ in range(2_000):
            text = "".join(chance.choice("abcd") for _ in range(chance.randrange(9)))
            assert table.longest(text) == max((w for w in words if text.startswith(w)), key=len, default=None)


URLS = [
    *("http://a/x.gif", "http://a/x.GIF", "http://a/x.html", "http://a/x.html?q=y.gif", "http://a/x.gif?q=y.html"),
    "http://gif.example.gif",
]


class TestSuffixes:
    @pytest.mark.parametrize(
        ("mode", "rejected"),
        [
            ("+", [0, 3, 5]),
            ("+I", [0, 1, 3, 5]),
            ("+P", [0, 4]),
            ("+PI", [0, 1, 4]),
            ("-", [1, 2, 4]),
            ("", [1, 2, 4]),
            ("-I", [2, 4]),
            ("-P", [1, 2, 3, 5]),
        ],
    )
    def test_modes(self, mode: str, rejected: list[int]):
        file, problems = parse_suffixes("s.txt", f"# comment\n{mode}\n\n.gif\n.jpg\n")
        assert problems == []
        found = file.reasons(batch(*URLS)).to_pylist()
        assert [n for n, reason in enumerate(found) if reason] == rejected
        words = "s.txt:4 .gif" if mode.startswith("+") else "s.txt: no line matches"
        assert {reason for reason in found if reason} == {words}

    def test_what_accepts(self):
        file, _ = parse_suffixes("s.txt", "-\n.html\n.gif")
        assert file.acceptances(batch(*URLS[:3])).to_pylist() == ["s.txt:3 .gif", None, "s.txt:2 .html"]

    def test_a_suffix_with_a_sign_is_refused(self):
        file, problems = parse_suffixes("s.txt", "+I\n-.gif\n.jpg")
        assert [(p.line, p.text) for p in problems] == [(2, "-.gif")]
        assert file == SuffixFile("s.txt", file.rules, accept_others=True, ignore_case=True)
        assert [rule.suffix for rule in file.rules] == [".jpg"]

    def test_many_and_odd_ones(self):
        suffixes = [f".x{n}" for n in range(1_200)] + ["(a", "[b", "é"]
        file, _ = parse_suffixes("s.txt", "\n".join(["+", *suffixes]))
        urls = ["http://a/b.x7", "http://a/b.x1199", "http://a/(a", "http://a/[b", "http://a/é", "http://a/b"]
        assert [reason is not None for reason in file.reasons(batch(*urls)).to_pylist()] == [True] * 5 + [False]


class TestScope:
    URLS = ("http://www.example.org/a/b", "https://example.org/a/", "http://example.com/", "http://192.0.2.1/", "x:")

    @pytest.mark.parametrize(
        ("scope", "inside"),
        [
            (Scope(), [0, 1, 2, 3, 4]),
            (Scope("host", listed=("example.org",)), [1]),
            (Scope("domain", listed=("Example.ORG",)), [0, 1]),
            (Scope("domain", listed=("www.example.org", "192.0.2.1")), [0, 3]),
            (Scope("domain", listed=("org",)), [0, 1]),
            (Scope("domain", seeds=("www.example.org",)), [0, 1]),
            (Scope("host", seeds=("www.example.org",)), [0]),
            (Scope("seed", seeds=("http://www.example.org/a/",)), [0]),
            (Scope("seed", listed=("http://example.com/index.html", "example.org")), [1, 2]),
            (Scope("seed"), []),
            (Scope("host", listed=("a b", "")), []),
        ],
    )
    def test_each(self, scope: Scope, inside: list[int]):
        found = scope.reasons(batch(*self.URLS)).to_pylist()
        assert [n for n, reason in enumerate(found) if reason is None] == inside
        assert set(found) <= {None, "out of scope"}

    def test_what_is_injected_is_inside(self):
        assert Scope("host").reasons(batch("http://a/", stage="inject")).to_pylist() == [None]

    def test_files(self):
        assert parse_scope("# comment\nexample.org\n .example.com \n*.a.net\n") == [
            "example.org",
            "example.com",
            "a.net",
        ]

    def test_entries_of_seeds(self):
        seeds = ["http://Example.org:8080/a/b?c=/d", "http://example.org/a/", "nothing", "http://[::1]:80/"]
        assert entries("domain", seeds) == ["[::1]", "example.org"]
        assert entries("seed", seeds) == ["http://[::1]/", "http://example.org/a/", "http://example.org:8080/a/"]


class TestLimits:
    def test_length(self):
        assert limits.too_long(batch("http://a/é", "http://a/bcd"), 11).to_pylist() == [None, "too long"]

    def test_depth(self):
        some = batch("a", "b", "c", depth=[2, 3, None])
        assert limits.too_deep(some, 2).to_pylist() == [None, "too deep", None]
        assert limits.too_deep(some, -1).to_pylist() == [None] * 3
        assert limits.too_deep(batch("a"), 2).to_pylist() == [None]

    def test_segments(self):
        urls = ["http://a/", "http://a/1/2", "http://a/1/2/", "http://a//1//2", "http://a/1/2/3", "http://a/1?/2/3/4"]
        assert limits.too_many_segments(batch(*urls), 2).to_pylist() == [*[None] * 4, "too many segments", None]

    @pytest.mark.parametrize(
        ("path", "rejected"),
        [
            ("a/x/a/y/a/", True),
            ("a/b/c/a/b/c/a/b/c/", True),
            ("a/a/a/a/a/", True),
            ("a/a/a/a", False),
            ("a/x/a/y/a", False),
            ("a/x/a/y/b/", False),
            ("?a/x/a/y/a/", False),
            ("x//y//z//", False),
        ],
    )
    def test_repeats(self, path: str, rejected: bool):
        assert limits.repeated_segments(batch(f"http://h/{path}"), 2).to_pylist() == [
            "repeated segments" if rejected else None
        ]
        assert limits.repeated_segments(batch(f"http://h/{path}"), 0).to_pylist() == [None]

    def test_a_hundred_thousand_segments_take_linear_time(self):
        start = time.perf_counter()
        url = "http://a/" + "".join(f"{n}/" for n in range(100_000))
        for limit in (limits.repeated_segments, limits.too_many_segments):
            limit(batch(url, "http://a/" + "b/" * 100_000), 100_000)
        assert time.perf_counter() - start < 2
