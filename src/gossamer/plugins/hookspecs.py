"""Every hook, on one page. A plugin is a module or object with functions of these names marked by `@hookimpl`.

import pyarrow as pa

from gossamer.plugins import hookspecs
from gossamer.tables import Column, Merge


@hookspecs.hookimpl
def gossamer_columns():
    return [Column("price", pa.float64(), "Price found on the page.", Merge.NEWEST, pass_to=("index",))]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from gossamer.stages.fetch.protocols import FetchProtocol
    from gossamer.stages.generate.score import Scorer
    from gossamer.tables.spec import Column
    from gossamer.urls.steps import Filter, Normalizer

PROJECT = "gossamer"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def gossamer_columns() -> list[Column]:  # type: ignore[empty-body]
    """Columns to add to the crawldb, each with type, prose, merge rule and the tables it is passed on to."""


@hookspec
def gossamer_event(event: dict[str, Any]) -> None:
    """An event of a run (start, phase, done, failed), for monitoring; must be quick. If it raises, the run goes on and counts it."""


@hookspec
def gossamer_scorers() -> list[Scorer]:  # type: ignore[empty-body]
    """Scorers, each a name, the crawldb columns it needs and a module-level function that takes a batch of them, the previous value
    and the context, and gives the next value. They run where `score.chain` names them. If one raises, it is passed over, counted.
    """


@hookspec
def gossamer_normalizers() -> list[Normalizer]:  # type: ignore[empty-body]
    """Named functions that rewrite columns of URLs, run where `urls.normalizers` names them. If one raises, its URLs stay as they are, counted."""


@hookspec
def gossamer_filters() -> list[Filter]:  # type: ignore[empty-body]
    """Named functions that give reasons to reject URLs, run where `filters.chain` names them. If one raises, its URLs are kept, counted."""


@hookspec
def gossamer_protocols() -> list[FetchProtocol]:  # type: ignore[empty-body]
    """Protocols to fetch with, each a name, its schemes and a module-level function that makes it ready in a process. They are spoken where
    `fetch.protocols` names a scheme. If a request raises, that is an error of its URL, counted.
    """
