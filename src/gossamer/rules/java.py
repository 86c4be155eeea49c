"""Regular expressions as Nutch users write them (Java's syntax) → RE2, which takes linear time whatever it is given.

What RE2 lacks, or would silently read otherwise, is refused with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

LONGEST = 10_000  # characters of a pattern

POSIX = frozenset(
    (
        "Lower",
        "Upper",
        "ASCII",
        "Alpha",
        "Digit",
        "Alnum",
        "Punct",
        "Graph",
        "Print",
        "Blank",
        "Cntrl",
        "XDigit",
        "Space",
    )
)
ESCAPES = {"Z": r"\z", "e": r"\x1b", "h": r"[ \t]", "R": r"(?:\r\n|[\n\r])"}
GROUPS = {
    "(?=": "look-around",
    "(?!": "look-around",
    "(?<=": "look-around",
    "(?<!": "look-around",
    "(?>": "an atomic group",
}
_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\u[0-9A-Fa-f]{4}|\\[pP]\{[^}]*\}|\\.|\(\?<?[=!>]|&&|(?:[*+?]|\{\d+(?:,\d*)?\})\+|.", re.DOTALL
)


class Refused(ValueError):
    """A pattern that cannot be used; the text says why."""


def to_re2(pattern: str) -> str:
    """A Java pattern in RE2's syntax; raises Refused."""
    if len(pattern) > LONGEST:
        raise Refused(f"the pattern is too large: {len(pattern):,} characters, {LONGEST:,} are possible")
    translated = "".join(_translated(pattern))
    try:
        pc.match_substring_regex(pa.array([""]), translated)
    except pa.ArrowInvalid as error:
        raise Refused(_reason(str(error))) from error
    return translated


def _translated(pattern: str) -> Iterator[str]:
    """The tokens of a pattern in RE2's spelling."""
    inside = ""  # what was seen of the character class we are in
    for token in _TOKEN.findall(pattern):
        if token.startswith("\\"):
            yield _escape(token, bool(inside))
            inside = inside and inside + "x"
        elif inside:
            inside = _in_class(token, inside)
            yield token
        else:
            if token in GROUPS:
                raise Refused(f"{GROUPS[token]} is not possible in linear time")
            if len(token) > 1 and token.endswith("+"):
                raise Refused("a possessive quantifier is not possible; leave out its +")
            inside = token if token == "[" else ""
            yield token


def _in_class(token: str, inside: str) -> str:
    """What was seen of a character class after one more token; empty when it ends."""
    if token == "[":
        raise Refused("a character class inside another is not possible; write it as one")
    if token == "&&":
        raise Refused("an intersection of character classes is not possible; write it as one class")
    first = inside in ("[", "[^")
    return "" if "]" in token and not first else inside + token


def _escape(token: str, in_class: bool) -> str:
    """An escape sequence in RE2's spelling."""
    kind = token[1]
    if kind == "Q":
        literal = re.escape(token[2:].removesuffix("\\E"))
        return literal.replace("-", r"\-") if in_class else literal
    if kind in "123456789" or kind == "k":
        if not in_class:
            raise Refused("a back-reference is not possible in linear time")
        return token
    if kind == "u":
        return rf"\x{{{token[2:]}}}" if len(token) == 6 else token
    if kind in "pP" and len(token) > 2:
        name = token[3:-1]
        if name in POSIX:
            named = f"[:{'^' if kind == 'P' else ''}{name.lower()}:]"
            return named if in_class else f"[{named}]"
        return rf"\{kind}{{{'L' if name == 'IsAlphabetic' else name.removeprefix('Is')}}}"
    return token if in_class else ESCAPES.get(kind, token)


def _reason(message: str) -> str:
    """RE2's complaint without Arrow's words around it."""
    text = message.partition("Invalid regular expression: ")[2] or message
    if "repetition size" in text or "too large" in text:
        return f"the pattern is too large ({text})"
    return text
