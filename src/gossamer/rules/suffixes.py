"""Suffix files in Nutch's syntax: one suffix a line, and a line with a sign that says what becomes of the other URLs.

`+` accepts all but these suffixes, `-` (the default) only these; `I` after the sign ignores case, `P` looks at the path alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from gossamer.rules.lines import Problem, rule_lines
from gossamer.urls.batch import UrlBatch

AROUND_PATH = r"^[^:/?#]+://[^/?#]*|[?#].*$"
TOGETHER = 500  # suffixes in one pattern


@dataclass(frozen=True)
class SuffixRule:
    """One line."""

    line: int
    suffix: str


@dataclass(frozen=True)
class SuffixFile:
    """The suffixes of one file and how they are meant."""

    name: str
    rules: tuple[SuffixRule, ...]
    accept_others: bool = False
    ignore_case: bool = False
    path_only: bool = False

    @cached_property
    def _patterns(self) -> list[str]:
        case = "(?i)" if self.ignore_case else ""
        spelled = [re.escape(rule.suffix) for rule in self.rules]
        pieces = [spelled[at : at + TOGETHER] for at in range(0, len(spelled), TOGETHER)]
        return [rf"{case}(?:{'|'.join(piece)})$" for piece in pieces]

    def _ends(self, batch: UrlBatch) -> pa.Array:
        """What the suffixes are compared with."""
        return pc.replace_substring_regex(batch.urls, AROUND_PATH, "") if self.path_only else batch.urls

    def _matches(self, ends: pa.Array) -> pa.Array:
        found = pa.repeat(pa.scalar(False), len(ends))
        for pattern in self._patterns:
            found = pc.or_(found, pc.match_substring_regex(ends, pattern))
        return found

    def reasons(self, batch: UrlBatch) -> pa.Array:
        """Why each URL is rejected, or NULL."""
        ends = self._ends(batch)
        found = self._matches(ends)
        if self.accept_others:
            return self._lines(ends, found)
        return pc.if_else(found, pa.scalar(None, pa.string()), f"{self.name}: no line matches")

    def acceptances(self, batch: UrlBatch) -> pa.Array:
        """The line that accepts each URL, or NULL."""
        ends = self._ends(batch)
        return pa.nulls(len(batch), pa.string()) if self.accept_others else self._lines(ends, self._matches(ends))

    def _lines(self, ends: pa.Array, found: pa.Array) -> pa.Array:
        """The line that each end under the mask matches."""
        words = pa.array([self._line_of(end) for end in ends.filter(found).to_pylist()], pa.string())
        return pc.replace_with_mask(pa.nulls(len(ends), pa.string()), found, words)

    def _line_of(self, end: str) -> str:
        if self.ignore_case:
            rule = next(r for r in self.rules if end.lower().endswith(r.suffix.lower()))
        else:
            rule = next(r for r in self.rules if end.endswith(r.suffix))
        return f"{self.name}:{rule.line} {rule.suffix}"


def parse_suffixes(name: str, text: str) -> tuple[SuffixFile, list[Problem]]:
    """The suffixes of a file, and the lines that were refused."""
    rules: list[SuffixRule] = []
    problems: list[Problem] = []
    sign, flags = "-", ""
    for number, line in ((number, line.strip()) for number, line in rule_lines(text)):
        if line[0] not in "+-":
            rules.append(SuffixRule(number, line))
        elif line[1:].strip("PI"):
            why = "a sign stands alone or before P and I, and says what becomes of all other URLs; a suffix has none"
            problems.append(Problem(name, number, line, why))
        else:
            sign, flags = line[0], flags + line[1:]
    return SuffixFile(name, tuple(rules), sign == "+", "I" in flags, "P" in flags), problems
