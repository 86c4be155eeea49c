"""Regex files in Nutch's syntax."""

from __future__ import annotations

import pickle
import random
import re
import time

import pyarrow as pa
import pytest

from gossamer.rules.regexes import RegexFile, parse_regexes
from gossamer.rules.segments import alternates
from gossamer.urls.batch import UrlBatch

FILE = r"""# comment

-^(?:file|ftp|mailto):
-(?i)\.(?:gif|jpg)$
-[?*!@=]
+^https?://([a-z0-9-]+\.)*example\.org/
+/keep/
-.
"""


def file(text: str) -> RegexFile:
    made, problems = parse_regexes("rules.txt", text)
    assert problems == []
    return made


def reasons(made: RegexFile, *urls: str) -> list[str | None]:
    return made.reasons(UrlBatch(pa.array(urls, pa.string()), "parse")).to_pylist()


@pytest.mark.parametrize(
    ("url", "reason", "accepted"),
    [
        ("ftp://example.org/", r"rules.txt:3 -^(?:file|ftp|mailto):", None),
        ("http://example.org/a.GIF", r"rules.txt:4 -(?i)\.(?:gif|jpg)$", None),
        ("http://example.org/a.gif?b", "rules.txt:5 -[?*!@=]", None),
        ("http://www.example.org/", None, r"rules.txt:6 +^https?://([a-z0-9-]+\.)*example\.org/"),
        ("http://example.com/keep/", None, "rules.txt:7 +/keep/"),
        ("http://example.com/", "rules.txt:8 -.", None),
    ],
)
def test_the_first_line_that_is_found_decides(url: str, reason: str | None, accepted: str | None):
    made = file(FILE)
    assert reasons(made, url) == [reason]
    assert made.acceptances(UrlBatch(pa.array([url]), "parse")).to_pylist() == [accepted]


def test_without_a_match_a_url_is_rejected():
    assert reasons(file("+a"), "b", "a") == ["rules.txt: no line matches", None]


def test_lines_for_one_host_or_domain():
    made = file("> www.example.org\n-skip\n<\n> EXAMPLE.com \n+skip\n<\n-.\n")
    urls = ["http://www.example.org/skip", "http://a.example.com/skip", "http://a.example.com/b", "http://x.org/skip"]
    assert reasons(made, *urls) == ["rules.txt:2 -skip", None, "rules.txt:7 -.", "rules.txt:7 -."]


def test_refused_lines_are_told_and_the_others_work():
    text = "\ufeff-(a)\\1\r\n+(?=x)\nnothing\n \n  indented\n-b\r\n+."
    made, problems = parse_regexes("rules.txt", text)
    assert [(p.line, p.text) for p in problems] == [(1, "-(a)\\1"), (2, "+(?=x)"), (3, "nothing")]
    assert str(problems[0]) == "rules.txt:1: -(a)\\1 is refused: a back-reference is not possible in linear time"
    assert reasons(made, "aa", "b") == [None, "rules.txt:6 -b"]


def test_a_file_with_nothing_but_refused_lines_rejects():
    made, problems = parse_regexes("rules.txt", "+(?=x)")
    assert problems
    assert reasons(made, "x") == ["rules.txt: no line matches"]


@pytest.mark.parametrize("line", [r"-.*(/[^/]+)/[^/]+\1/[^/]+\1/", r"-.*(/.+?)/.*?\1/.*?\1/"])
def test_the_stock_line_against_loops(line: str):
    made = file(f"{line}\n+.")
    looping = "http://example.org/a/b/a/c/a/"
    assert reasons(made, looping, "http://example.org/a/b/a/c/a") == [f"rules.txt:1 {line}", None]


def test_the_stock_line_means_what_java_means():
    pattern, chance = re.compile(r".*(/[^/]+)/[^/]+\1/[^/]+\1/"), random.Random(1)
    urls = [
        f"http://{chance.choice('ab')}/"
        + "".join(chance.choice(["a/", "b/", "/", "ab/", "?", "c"]) for _ in range(chance.randrange(14)))
        for _ in range(5_000)
    ]
    assert [url for url in urls if alternates(url) != bool(pattern.search(url))] == []
    assert 50 < sum(map(alternates, urls)) < 4_800
    got = reasons(file(pattern.pattern.join(("-", "\n+."))), *urls)
    assert [reason is not None for reason in got] == list(map(alternates, urls))


def test_many_lines_decide_as_one_by_one():
    chance = random.Random(2)
    lines = [
        chance.choice("+-") + chance.choice(["a", "b", "ab", "^c", "d$", r"(?i)E", "[fg]", r"\d\d", r"\Qx.y"])
        for _ in range(40)
    ]
    urls = ["".join(chance.choice("abcdefgEFG01x.y") for _ in range(chance.randrange(1, 6))) for _ in range(3_000)]
    made = file("\n".join(lines))
    assert len(made.groups) < len(made.rules)
    alone = [next((n for n, rule in enumerate(made.rules) if rule.found(pa.array([url]))[0]), -1) for url in urls[:300]]
    batch = UrlBatch(pa.array(urls), "parse")
    assert made.decide(batch, exact=True)[:300].tolist() == alone
    told = made.reasons(batch).to_pylist()
    for url, number, reason in zip(urls, alone, told, strict=False):
        expected = "rules.txt: no line matches" if number < 0 else f"rules.txt:{number + 1} {lines[number]}"
        assert reason == (None if number >= 0 and made.rules[number].accept else expected), url


def test_patterns_too_large_together_work_alone():
    lines = [f"-{chance}(?:[a-z]{{1,9}}[0-9]{{1,9}}){{1,90}}$" for chance in range(60)]
    made = file("\n".join([*lines, "+."]))
    assert reasons(made, "7abc1", "x") == [f"rules.txt:8 {lines[7]}", None]


def test_hostile_patterns_take_linear_time():
    start = time.perf_counter()
    made = file("-(a+)+$\n-(.*)(.*)(.*)(.*)x$\n-(a|aa)+b$\n+.")
    assert reasons(made, "a" * 30_000 + "!") == [None]
    assert time.perf_counter() - start < 2


def test_it_goes_to_workers():
    made = file(FILE)
    assert reasons(made, "http://example.com/") == reasons(pickle.loads(pickle.dumps(made)), "http://example.com/")
