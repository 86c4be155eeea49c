"""Headlines, rare words and labels made once per language and topic: a link's text and slug are then two look-ups."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

from gossamer.simweb.sites.draw import key_of
from gossamer.simweb.sites.text import language, person, rare, slug, title, topic

TOPICS = 16  # that sites write about; every topic held in memory is some 300 KB
HEADLINES = 512
RARES = 2048
PEOPLE = 512

Worded = tuple[str, str]  # a text and its path segment


def worded(code: str, text: str) -> Worded:
    """A text with its path segment, as browsers would send it."""
    return text, quote(slug(language(code), text))


@lru_cache(maxsize=TOPICS * 22)
def headlines(code: str, number: int) -> tuple[Worded, ...]:
    """The headlines of a topic."""
    about = topic(code, number)
    return tuple(worded(code, title(about, key_of(number, "headline", code, n))) for n in range(HEADLINES))


@lru_cache(maxsize=22)
def rares(code: str) -> tuple[Worded, ...]:
    """Rare words, one of which makes a headline its own."""
    speech = language(code)
    return tuple(worded(code, rare(speech, key_of(0, "rare", code, n))) for n in range(RARES))


@lru_cache(maxsize=TOPICS * 22)
def tags(code: str, number: int) -> tuple[Worded, ...]:
    """The words of a topic, as tags bear them."""
    return tuple(worded(code, word) for word in topic(code, number).words)


@lru_cache(maxsize=22)
def people(code: str) -> tuple[Worded, ...]:
    """People of a language, all with different path segments."""
    names = (worded(code, person(language(code), key_of(0, "person", code, n))) for n in range(PEOPLE))
    return tuple({slug: (name, slug) for name, slug in names}.values())


@lru_cache(maxsize=TOPICS * 22)
def label(code: str, number: int) -> Worded:
    """The name of a topic, as sections bear it."""
    return worded(code, topic(code, number).label)


@lru_cache(maxsize=1 << 16)
def day(number: int) -> tuple[str, str, str]:
    """Year, month and day of a day counted from 1970."""
    # The civil calendar of days, after the eras of 400 years that repeat exactly.
    shifted = number + 719468
    era, rest = divmod(shifted, 146097)
    year = (rest - rest // 1460 + rest // 36524 - rest // 146096) // 365
    days = rest - (365 * year + year // 4 - year // 100)
    month = (5 * days + 2) // 153
    date = days - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return f"{year + era * 400 + (month <= 2):04d}", f"{month:02d}", f"{date:02d}"
