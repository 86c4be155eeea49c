"""Lines of rule files, and those that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A line that was refused, and why; the other lines of the file work on."""

    file: str
    line: int
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text} is refused: {self.reason}"


def rule_lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is no comment and not blank; only real line ends part lines."""
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = line.removesuffix("\r")
        if line.strip() and not line.startswith("#"):
            yield number, line
