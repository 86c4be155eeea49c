"""What every command shares: which crawl, which settings, how to report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from gossamer.crawl import Crawl
    from gossamer.events import Reporter


@dataclass(frozen=True)
class Options:
    """The options in front of the command."""

    crawl: str = "."
    sets: tuple[str, ...] = ()
    json: bool = False
    quiet: bool = False

    def reporter(self) -> Reporter:
        """Who listens to runs: a program, nobody, or a person."""
        from gossamer import events

        if self.json:
            return events.JsonLines()
        return events.Silent() if self.quiet else events.Terminal()

    @contextmanager
    def open(self, *, answers: bool = False) -> Iterator[Crawl]:
        """The crawl the command is about; a program that asks for an answer gets no events between its lines."""
        from gossamer.crawl import Crawl

        reporter = None if answers and self.json else self.reporter()
        with Crawl(self.crawl, sets=self.sets, reporter=reporter) as crawl:
            yield crawl


def options(context: typer.Context) -> Options:
    """The options of this call."""
    found = context.find_object(Options)
    return found if found is not None else Options()
