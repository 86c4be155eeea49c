"""Text of pages: a story and its version → paragraphs. Edits replace and add sentences; sites that tell one agency's story edit it a little."""

from __future__ import annotations

from gossamer.simweb.sites.draw import numbers
from gossamer.simweb.sites.site import MASK, WIRE, Item, Site
from gossamer.simweb.sites.text import Topic, sentences

# How many sentences paragraphs have one after the other; a text takes one of these rhythms.
SIZES = [[2 + number % 5 for number in numbers(rhythm, 200)] for rhythm in range(64)]

EDITS_KEPT = 6  # older edits have been undone by later ones


def paragraphs(site: Site, item: Item, version: int, span: tuple[int, int]) -> list[str]:
    """The main text of an item's page."""
    about = site.topic(item.topic)
    found = _told(about, item.story, span)
    if item.story & WIRE:
        _edit(about, found, item.key, max(1, len(found) // 12))
    for turn in range(max(1, version - EDITS_KEPT + 1), version + 1):
        _edit(about, found, item.key + turn & MASK, max(1, len(found) // 10))
    return _grouped(site, found, item.story)


def words(site: Site, about: Topic, key: int, span: tuple[int, int]) -> list[str]:
    """Paragraphs of a page that is not an item's."""
    return _grouped(site, _told(about, key, span), key)


def teaser(site: Site, item: Item) -> str:
    """The first sentence of an item as it was born."""
    return sentences(site.topic(item.topic), item.story, 1)[0]


def _told(about: Topic, key: int, span: tuple[int, int]) -> list[str]:
    low, high = span
    return sentences(about, key, 4 * (low + key % (high - low + 1)))


def _edit(about: Topic, text: list[str], key: int, count: int) -> None:
    """Replace `count` sentences and add one."""
    drawn = numbers(key, 2 * count + 1)
    for place, choice in zip(drawn[:count], drawn[count:], strict=False):
        text[place % len(text)] = about.sentences[choice >> 22]
    text.append(about.sentences[drawn[-1] >> 22])


def _grouped(site: Site, text: list[str], key: int) -> list[str]:
    """Sentences as paragraphs of two to six."""
    joiner, found, start = site.language.joiner, [], 0
    for size in SIZES[key % len(SIZES)]:
        found.append(joiner.join(text[start : start + size]))
        start += size
        if start >= len(text):
            break
    return found
