"""Text of pages: a story and its version → paragraphs.

A paragraph is a few sentences that stand together in the topic's bank: one number says where it starts and how long it is. Edits replace some
numbers and add one; sites that tell one agency's story edit it a little.
"""

from __future__ import annotations

from gossamer.simweb.sites.draw import numbers
from gossamer.simweb.sites.site import MASK, WIRE, Item, Site
from gossamer.simweb.sites.text import Topic

EDITS_KEPT = 6  # older edits have been undone by later ones


def paragraphs(site: Site, item: Item, version: int, span: tuple[int, int]) -> list[str]:
    """The main text of an item's page."""
    found = _told(item.story, span)
    if item.story & WIRE:
        _edit(found, item.key)
    for turn in range(max(1, version - EDITS_KEPT + 1), version + 1):
        _edit(found, item.key + turn & MASK)
    return _spelled(site, site.topic(item.topic), found)


def words(site: Site, about: Topic, key: int, span: tuple[int, int]) -> list[str]:
    """Paragraphs of a page that is not an item's."""
    return _spelled(site, about, _told(key, span))


def teaser(site: Site, item: Item) -> str:
    """The first sentence of an item as it was born."""
    return site.topic(item.topic).sentences[numbers(item.story, 1)[0] >> 22]


def _told(key: int, span: tuple[int, int]) -> list[int]:
    low, high = span
    return list(numbers(key, low + key % (high - low + 1)))


def _edit(text: list[int], key: int) -> None:
    """Replace one paragraph in twelve and add one."""
    drawn = numbers(key, 2 * (len(text) // 12) + 1)
    for place, choice in zip(drawn[::2], drawn[1::2], strict=False):
        text[place % len(text)] = choice
    text.append(drawn[-1])


def _spelled(site: Site, about: Topic, text: list[int]) -> list[str]:
    """Numbers as paragraphs of two to six sentences."""
    join, bank = site.language.joiner.join, about.sentences
    return [join(bank[n >> 22 : (n >> 22) + 2 + n % 5]) for n in text]
