"""Regex files in Nutch's syntax: `+pattern` or `-pattern` a line, the first that is found in the URL decides.

`> host` begins lines that hold for one host or domain only, `<` ends them. When no line is found, the URL is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.rules.java import Refused, to_re2
from gossamer.rules.lines import Problem, rule_lines
from gossamer.rules.segments import STOCK_LINES, where_alternating
from gossamer.urls.batch import UrlBatch


@dataclass(frozen=True)
class RegexRule:
    """One line: where it stands, how it is written, what RE2 is given ("" for Nutch's loop line), and for which host."""

    line: int
    accept: bool
    text: str
    pattern: str
    host: str | None = None

    def found(self, urls: pa.Array) -> np.ndarray:
        """Where the pattern is found."""
        return _found(urls, self.pattern) if self.pattern else where_alternating(urls)


@dataclass(frozen=True)
class RegexFile:
    """The rules of one file, in order."""

    name: str
    rules: tuple[RegexRule, ...]

    @cached_property
    def groups(self) -> list[tuple[str, list[int]]]:
        """Neighbours of one sign as one pattern, which is found as fast as a single one; what does not fit stays alone."""
        groups: list[tuple[str, list[int]]] = []
        for key, found in groupby(enumerate(self.rules), lambda pair: _kind(pair[1])):
            members = [number for number, _ in found]
            together = "|".join(f"(?:{self.rules[number].pattern})" for number in members)
            if len(members) > 1 and key[0] and _fits(together):
                groups.append((together, members))
            else:
                groups += [(self.rules[number].pattern, [number]) for number in members]
        return groups

    def decide(self, batch: UrlBatch, *, exact: bool = False) -> np.ndarray:
        """The number of the rule that decides about each URL, -1 for none; of accepting ones only `exact` tells which."""
        decided = np.full(len(batch), -1)
        rest, at = batch.urls, np.arange(len(batch))
        for pattern, members in self.groups:
            first = self.rules[members[0]]
            hit = _found(rest, pattern) if len(members) > 1 else first.found(rest)
            if first.host is not None:
                hit &= _on(batch, first.host)[at]
            if not hit.any():
                continue
            decided[at[hit]] = members[0]
            if len(members) > 1 and (exact or not first.accept):
                decided[at[hit]] = self._first_of(members, rest.filter(pa.array(hit)))
            rest, at = rest.filter(pa.array(~hit)), at[~hit]
            if not len(at):
                break
        return decided

    def _first_of(self, members: list[int], urls: pa.Array) -> np.ndarray:
        """Which of these rules is the first that is found in each URL."""
        hits = np.stack([self.rules[number].found(urls) for number in members])
        return np.array([members[at] for at in hits.argmax(axis=0)])

    def reasons(self, batch: UrlBatch) -> pa.Array:
        """Why each URL is rejected, or NULL."""
        words = [f"{self.name}: no line matches", *(None if r.accept else self._words(r) for r in self.rules)]
        return pa.array(words, pa.string()).take(pa.array(self.decide(batch) + 1))

    def acceptances(self, batch: UrlBatch) -> pa.Array:
        """The line that accepts each URL, or NULL."""
        words = [None, *(self._words(r) if r.accept else None for r in self.rules)]
        return pa.array(words, pa.string()).take(pa.array(self.decide(batch, exact=True) + 1))

    def _words(self, rule: RegexRule) -> str:
        return f"{self.name}:{rule.line} {rule.text}"


def parse_regexes(name: str, text: str) -> tuple[RegexFile, list[Problem]]:
    """The rules of a file, and the lines that were refused. A refused line never matches."""
    rules: list[RegexRule] = []
    problems: list[Problem] = []
    for number, line, host in _with_hosts(text):
        try:
            rules.append(_rule(number, line, host))
        except Refused as refused:
            problems.append(Problem(name, number, line, str(refused)))
    return RegexFile(name, tuple(rules)), problems


def _with_hosts(text: str) -> Iterator[tuple[int, str, str | None]]:
    """The lines with rules, each with the host or domain it is meant for."""
    host: str | None = None
    for number, line in rule_lines(text):
        if line[0] == ">":
            host = line[1:].strip().lower()
        elif line[0] == "<":
            host = None
        elif line[0] != " ":  # Nutch skips these
            yield number, line, host


def _rule(number: int, line: str, host: str | None) -> RegexRule:
    if line[0] not in "+-":
        raise Refused("a line begins with + (accept), - (exclude) or # (comment)")
    pattern = "" if line[1:] in STOCK_LINES else to_re2(line[1:]) or "(?:)"
    return RegexRule(number, line[0] == "+", line, pattern, host)


def _kind(rule: RegexRule) -> tuple[bool, bool, str | None, int]:
    """What rules must share to be looked for together; patterns for one host, or none, stay alone."""
    alone = not rule.pattern or rule.host is not None
    return not alone, rule.accept, rule.host, rule.line if alone else 0


def _fits(pattern: str) -> bool:
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        return False
    return True


def _found(urls: pa.Array, pattern: str) -> np.ndarray:
    return np.array(pc.match_substring_regex(urls, pattern).to_numpy(zero_copy_only=False))


def _on(batch: UrlBatch, name: str) -> np.ndarray:
    """Which URLs lie on this host or in this domain."""
    same = pc.or_(pc.equal(batch.hosts, name), pc.equal(batch.domains, name)).fill_null(False)
    return np.array(same.to_numpy(zero_copy_only=False))
