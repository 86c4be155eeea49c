"""The range of row keys that begin with a prefix, in the order of code points (which is that of UTF-8 bytes)."""

from __future__ import annotations

import itertools

import pytest

from gossamer.urls.keys import prefix_range

ALPHABET = ["a", "b", "\x00", "~", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
WORDS = [""] + ["".join(letters) for length in (1, 2, 3) for letters in itertools.product(ALPHABET, repeat=length)]


def utf8_order(words: list[str]) -> list[str]:
    return sorted(words, key=str.encode)


def test_strings_compare_like_their_bytes():
    assert utf8_order(WORDS) == sorted(WORDS)


@pytest.mark.parametrize("prefix", [word for word in WORDS if len(word) < 3], ids=ascii)
def test_a_range_holds_exactly_what_begins_with_the_prefix(prefix: str):
    low, high = prefix_range(prefix)
    inside = [word for word in WORDS if low <= word and (high is None or word < high)]
    assert inside == [word for word in WORDS if word.startswith(prefix)]
    assert high is None or high.encode(), "the end must be text that can be stored"


def test_edges():
    assert prefix_range("org.apache") == ("org.apache", "org.apachf")
    assert prefix_range("a\ud7ff") == ("a\ud7ff", "a\ue000")
    assert prefix_range("a\U0010ffff") == ("a\U0010ffff", "b")
    assert prefix_range("\U0010ffff" * 2) == ("\U0010ffff" * 2, None)
    assert prefix_range("") == ("", None)
