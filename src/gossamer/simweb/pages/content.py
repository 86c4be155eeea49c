"""Blocks of text: headlines, paragraphs, lists with their first sentences, comments, tables, code."""

from __future__ import annotations

from gossamer.simweb.config import Span
from gossamer.simweb.pages import body
from gossamer.simweb.pages.ranges import RANGES
from gossamer.simweb.pages.view import Block, View, item_link, listing_link, title
from gossamer.simweb.sites.banks import people
from gossamer.simweb.sites.draw import key_of, numbers


def headline(here: View, span: Span | None) -> Block:
    """What the page is about."""
    return Block("headline", title(here))


def byline(here: View, span: Span | None) -> Block | None:
    """Who wrote it, and when."""
    if here.item is None:
        return None
    value = here.site.by_author.of(here.item.number)[0]
    text = here.site.authors[value][0]
    link = listing_link(here, "author", value, text)
    when = f"{here.ui('published')} {here.item.year}-{here.item.month}-{here.item.day}"
    return Block("byline", here.ui("author") if link else text, [link] if link else [], [when])


def text(here: View, span: Span | None) -> Block:
    """Paragraphs: the item's, or some of the site's own."""
    span = span or here.site.kind.paragraphs
    if here.item is not None:
        version = here.site.life(here.item.number).version(here.moment)
        return Block("text", "", (), body.paragraphs(here.site, here.item, version, span))
    key = key_of(here.site.key, here.page.name, *map(str, here.found.args[:1]))
    return Block("text", "", (), body.words(here.site, here.site.topic(here.site.main_topic), key, span))


def listing(here: View, span: Span | None) -> Block:
    """The items this page lists, each with its first sentence."""
    chosen = RANGES[here.page.over].items(here.site, here.page, here.found.args, here.moment)
    links, texts = [], []
    for number in chosen:
        link = item_link(here.site, number, here.moment)
        if link is not None:
            links.append(link)
            texts.append(body.teaser(here.site, here.site.item(number)))
    return Block("list", "", links, texts)


def comments(here: View, span: Span | None) -> Block | None:
    """What readers wrote."""
    if here.item is None:
        return None
    low, high = span or (3, 12)
    part = RANGES[here.page.over].part(here.found.args)
    key = key_of(here.item.key, "comments", part)
    count = low + key % (high - low + 1)
    about = here.site.topic(here.item.topic)
    bank, known, join = about.sentences, people(here.site.code), here.site.language.joiner.join
    said = [f"{known[n % len(known)][0]}: {join(bank[n >> 22 : (n >> 22) + 1 + n % 3])}" for n in numbers(key, count)]
    return Block("comments", here.ui("comments"), (), said)


def table(here: View, span: Span | None) -> Block | None:
    """What a thing is made of, and its price."""
    if here.item is None:
        return None
    words = here.site.topic(here.item.topic).words
    rows = [f"{words[n % len(words)]}\t{value % 1000}" for n, value in enumerate(numbers(here.item.key ^ 7, 8))]
    version = here.site.life(here.item.number).version(here.moment)
    return Block(
        "table", here.ui("price"), (), [f"{here.ui('price')}\t{(here.item.key + version * 7) % 900 + 10}.90", *rows]
    )


def code(here: View, span: Span | None) -> Block | None:
    """An example in a programming language."""
    if here.item is None:
        return None
    lines = [
        f"def step_{n % 97}(value):\n    return value * {n % 13} + {n % 31}\n"
        for n in numbers(here.item.key ^ 11, (span or (6, 6))[0])
    ]
    return Block("code", "", (), lines)
