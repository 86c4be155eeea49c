"""Java's regular expressions in RE2."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gossamer.rules.java import LONGEST, Refused, to_re2


def found(pattern: str, text: str) -> bool:
    answer: bool = pc.match_substring_regex(pa.array([text]), to_re2(pattern))[0].as_py()
    return answer


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"\.(?:gif|jpg)$", "a.gif", "a.gifs"),
        (r"(?i)\.gif$", "A.GIF", "A.GIFT"),
        (r"[?*!@=]", "a?b", "ab"),
        (r"^https?://(?:[a-z0-9]*\.)*example\.org/", "http://a.b.example.org/", "http://example.com/"),
        (r"\Qa.b*\E+c", "a.b***c", "axbc"),
        (r"\Qa.b", "a.b", "axb"),
        (r"x[\Q-]\E]y", "x]y", "xay"),
        (r"\u0041b", "Ab", "ab"),
        (r"[\u0041-\u0043]$", "xB", "xD"),
        (r"^\p{Lower}+$", "abc", "aBc"),
        (r"^[\p{Upper}\p{Digit}]+$", "A1", "a1"),
        (r"^\P{Digit}+$", "ab", "a1"),
        (r"^\p{IsAlphabetic}+$", "é", "1"),
        (r"^\p{IsGreek}$", "α", "a"),
        (r"a\Z", "ba", "ab"),
        (r"(?<year>\d{4})/", "2024/", "24/"),
        (r"[]a]b", "]b", "cb"),
        (r"[^]]b", "ab", "]b"),
        (r"[(?=]x", "=x", "ax"),
        (r"[*+]x", "+x", "ax"),
        (r"a\++b", "a++b", "aab"),
        (r"[\[&]x", "[x", "ax"),
        (r"", "anything", None),
        (r".*?a+?b", "aab", "b"),
    ],
)
def test_patterns(pattern: str, matching: str, other: str | None):
    assert found(pattern, matching)
    if other is not None:
        assert not found(pattern, other)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(a)\1", "back-reference"),
        (r"(?<n>a)\k<n>", "back-reference"),
        (r"a(?=b)", "look-around"),
        (r"a(?!b)", "look-around"),
        (r"(?<=a)b", "look-around"),
        (r"(?<!a)b", "look-around"),
        (r"(?>a)", "atomic group"),
        (r"a++", "possessive"),
        (r"a{2}+", "possessive"),
        (r"[a-z&&[^b]]", "intersection|inside another"),
        (r"[a[bc]]", "inside another"),
        (r"[[:alpha:]]", "inside another"),
        (r"a{1001}", "too large"),
        (r"(?:a{1000}){1000}", "too large"),
        (r"((.{100}){100}){100}", "too large"),
        ("a" * (LONGEST + 1), "too large"),
        (r"(a", "missing"),
        (r"[a", "missing"),
        (r"*a", "repetition"),
        (r"a\g", "escape"),
    ],
)
def test_refused(pattern: str, why: str):
    with pytest.raises(Refused, match=why):
        to_re2(pattern)
