"""Prefix files: one prefix a line, as Nutch has them; `-prefix` excludes. The longest prefix of a URL decides."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from gossamer.rules.lines import rule_lines
from gossamer.urls.batch import UrlBatch


class Prefixes:
    """A sorted list of prefixes that finds the longest one of a text by one bisection."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._sorted = sorted(set(prefixes))
        self._shorter: list[int] = []  # of each prefix, the longest other one it begins with
        open_: list[int] = []
        for number, prefix in enumerate(self._sorted):
            while open_ and not prefix.startswith(self._sorted[open_[-1]]):
                open_.pop()
            self._shorter.append(open_[-1] if open_ else -1)
            open_.append(number)

    def longest(self, text: str) -> str | None:
        """The longest prefix of a text. Whatever begins it is the list's last one up to the text, or begins that one."""
        at = bisect_right(self._sorted, text) - 1
        while at >= 0:
            if text.startswith(self._sorted[at]):
                return self._sorted[at]
            at = self._shorter[at]
        return None


@dataclass(frozen=True)
class PrefixRule:
    """One line."""

    line: int
    accept: bool
    prefix: str


@dataclass(frozen=True)
class PrefixFile:
    """The prefixes of one file. Without a match a URL is rejected, unless the file only excludes."""

    name: str
    rules: tuple[PrefixRule, ...]

    @cached_property
    def _table(self) -> Prefixes:
        return Prefixes(rule.prefix for rule in self.rules)

    @cached_property
    def _by_prefix(self) -> Mapping[str, PrefixRule]:
        return {r.prefix: r for r in sorted(self.rules, key=lambda r: (not r.accept, -r.line))}  # an exclusion wins

    @cached_property
    def _unmatched(self) -> str | None:
        return f"{self.name}: no line matches" if any(rule.accept for rule in self.rules) else None

    def decide(self, batch: UrlBatch) -> list[PrefixRule | None]:
        """The line that decides about each URL."""
        found = map(self._table.longest, batch.urls.to_pylist())
        return [None if prefix is None else self._by_prefix[prefix] for prefix in found]

    def reasons(self, batch: UrlBatch) -> pa.Array:
        """Why each URL is rejected, or NULL."""
        words = [
            self._unmatched if rule is None else None if rule.accept else self._words(rule)
            for rule in self.decide(batch)
        ]
        return pa.array(words, pa.string())

    def acceptances(self, batch: UrlBatch) -> pa.Array:
        """The line that accepts each URL, or NULL."""
        return pa.array([self._words(r) if r and r.accept else None for r in self.decide(batch)], pa.string())

    def _words(self, rule: PrefixRule) -> str:
        return f"{self.name}:{rule.line} {'+' if rule.accept else '-'}{rule.prefix}"


def parse_prefixes(name: str, text: str) -> PrefixFile:
    """The prefixes of a file; every line is one."""
    rules = [
        PrefixRule(number, not line.startswith("-"), line[1:] if line[0] in "+-" else line)
        for number, line in ((number, line.strip()) for number, line in rule_lines(text))
    ]
    return PrefixFile(name, tuple(rule for rule in rules if rule.prefix))
