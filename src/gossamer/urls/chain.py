"""The URL chain: columns of raw URLs → normalised URLs, or the reason why one is rejected. Order is kept, nothing vanishes.

First WHATWG parsing, then the normalisers of the stage, then parsing again for what they changed, then the filters. Steps
of plugins may fail: their URLs go on unchanged, and `failures` counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from gossamer.errors import PluginError, SettingsError
from gossamer.rules.ruleset import RuleSet, Steps, load_rules, stage_named
from gossamer.urls.batch import UrlBatch
from gossamer.urls.parse import WEB, parse_column
from gossamer.urls.steps import Filter, Normalizer

if TYPE_CHECKING:
    import pluggy

    from gossamer.crawl import Crawl

PARSE = "whatwg"
TRUSTED = ("inject", "update", "generate")  # where URLs come from us: no page leads to a file of this machine
TRIES = 64  # calls of a failing step per batch, spent on finding the URLs it fails on


def _builtin_normalizers() -> tuple[Normalizer, ...]:
    from gossamer.plugins.builtin.normalizers import NORMALIZERS

    return NORMALIZERS


def _builtin_filters() -> tuple[Filter, ...]:
    from gossamer.plugins.builtin.filters import FILTERS

    return FILTERS


@dataclass(frozen=True)
class Checked:
    """What became of a column of URLs."""

    url: pa.Array  # normalised, NULL where rejected
    reason: pa.Array  # why rejected, NULL where kept


@dataclass(frozen=True)
class UrlChain:
    """Normalisers and filters with their rules; goes to workers by pickling."""

    rules: RuleSet
    normalizers: tuple[Normalizer, ...] = field(default_factory=_builtin_normalizers)
    filters: tuple[Filter, ...] = field(default_factory=_builtin_filters)
    failures: Counter[str] = field(default_factory=Counter, compare=False)  # URLs that steps of plugins failed on

    def normalize(self, urls: pa.Array, stage: str) -> Checked:
        """Normalised URLs, or why they are none."""
        *_, (_, checked) = self.normalizing(urls, stage)
        return checked

    def filter(self, urls: pa.Array, stage: str, depth: pa.Array | None = None) -> pa.Array:
        """Why normalised URLs are rejected; NULL for those that are kept, and for NULL."""
        reasons = pa.nulls(len(urls), pa.string())
        for _, found in self.filtering(urls, stage, depth):
            reasons = pc.coalesce(reasons, found)
        return reasons

    def check(self, urls: pa.Array, stage: str, depth: pa.Array | None = None) -> Checked:
        """Normalise, then filter."""
        normal = self.normalize(urls, stage)
        reason = pc.coalesce(normal.reason, self.filter(normal.url, stage, depth))
        return Checked(pc.if_else(reason.is_null(), normal.url, pa.scalar(None, pa.string())), reason)

    def normalizing(self, urls: pa.Array, stage: str) -> Iterator[tuple[str, Checked]]:
        """The state after each step of normalisation, with the step's name."""
        schemes = self.rules.schemes if stage_named(stage) in TRUSTED else WEB
        hrefs, reasons = parse_column(_strings(urls), schemes)
        yield PARSE, Checked(hrefs, reasons)
        parsed = hrefs
        for step in _chosen(self.normalizers, self.rules.normalizers, stage):
            changed = self._normalized(step, hrefs, stage)
            gone = pc.and_(hrefs.is_valid(), changed.is_null())
            if pc.any(gone).as_py():
                reasons = pc.if_else(gone, f"normalizer {step.name}", reasons)
            hrefs = changed
            yield step.name, Checked(hrefs, reasons)
        touched = pc.not_equal(hrefs, parsed).fill_null(False)
        if pc.any(touched).as_py():  # `/..;sid=1/` has become a dot segment
            again, why = parse_column(hrefs.filter(touched), schemes)
            hrefs, reasons = pc.replace_with_mask(hrefs, touched, again), pc.replace_with_mask(reasons, touched, why)
            yield PARSE, Checked(hrefs, reasons)

    def filtering(
        self, urls: pa.Array, stage: str, depth: pa.Array | None = None, *, accepted: bool = False
    ) -> Iterator[tuple[str, pa.Array]]:
        """What each filter says, with its name: reasons to reject, or what it `accepted` URLs for."""
        urls = _strings(urls)
        valid = urls.is_valid()
        whole = urls.null_count == 0
        batch = UrlBatch(urls, stage_named(stage), depth)
        if not whole:
            batch = UrlBatch(urls.filter(valid), batch.stage, None if depth is None else depth.filter(valid))
        for step in _chosen(self.filters, self.rules.filters, stage):
            run = step.accepts if accepted else step.run
            if run is not None:
                said = self._said(step.name, run, batch)
                yield step.name, said if whole else pc.replace_with_mask(pa.nulls(len(urls), pa.string()), valid, said)

    def _normalized(self, step: Normalizer, urls: pa.Array, stage: str) -> pa.Array:
        """The URLs after one normaliser; where it fails, as they were."""
        guard = _Guard(f"normalizer {step.name}", self.failures)
        return guard.run(
            len(urls), lambda at, size: step.run(urls.slice(at, size), self.rules, stage_named(stage)), urls.slice
        )

    def _said(self, name: str, run: Callable[[UrlBatch, RuleSet], pa.Array], batch: UrlBatch) -> pa.Array:
        """What one filter says; where it fails, nothing."""
        guard = _Guard(f"filter {name}", self.failures)
        return guard.run(
            len(batch),
            lambda at, size: run(batch if size == len(batch) else batch.part(at, size), self.rules),
            lambda _, size: pa.nulls(size, pa.string()),
        )


@dataclass
class _Guard:
    """Runs a step on a batch; if it fails, on halves, so that only what it cannot bear goes without it."""

    name: str
    failures: Counter[str]
    tries: int = TRIES

    def run(self, size: int, step: Callable[[int, int], pa.Array], without: Callable[[int, int], pa.Array]) -> pa.Array:
        """The column the step makes; `without` gives its parts where the step fails."""
        pieces = list(self._pieces(0, size, step, without))
        return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)

    def _pieces(
        self, at: int, size: int, step: Callable[[int, int], pa.Array], without: Callable[[int, int], pa.Array]
    ) -> Iterator[pa.Array]:
        try:
            yield _fitting(step(at, size), size)
            return
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever it is, it is told and counted
            self.tries -= 1
            if size <= 1 or self.tries < 0:
                self.failures[self._told(error)] += size
                yield without(at, size)
                return
        half = size // 2
        yield from self._pieces(at, half, step, without)
        yield from self._pieces(at + half, size - half, step, without)

    def _told(self, error: BaseException) -> str:
        kind = f"{self.name} failed: {type(error).__name__}"
        full = f"{kind}: {str(error)[:80]}"
        return full if full in self.failures or len(self.failures) < 20 else kind


def _fitting(column: object, size: int) -> pa.Array:
    """The column a step gave, if it is one of strings and of the right length."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array) or len(column) != size:
        raise PluginError(f"it must give an Arrow array of {size} strings")
    return _strings(column)


def _strings(column: pa.Array) -> pa.Array:
    return column if column.type == pa.string() else column.cast(pa.string())


Step = TypeVar("Step", Normalizer, Filter)


def _chosen(known: Sequence[Step], names: Steps, stage: str) -> list[Step]:
    """The steps that run at a stage, in order."""
    by_name = {step.name: step for step in known}
    return [by_name[name] for name in dict(names).get(stage_named(stage), ())]


def _refuse_unknown(key: str, known: Sequence[Step], names: Steps) -> None:
    there = [step.name for step in known]
    for name in (name for _, chosen in names for name in chosen):
        if name not in there:
            raise SettingsError(f"{key}: there is no {name}; choose from {', '.join(there)}")


def make_chain(rules: RuleSet, manager: pluggy.PluginManager) -> UrlChain:
    """The chain of a rule set, with the steps of these plugins."""
    from gossamer.plugins.manager import url_filters, url_normalizers

    chain = UrlChain(rules, url_normalizers(manager), url_filters(manager))
    _refuse_unknown("urls.normalizers", chain.normalizers, rules.normalizers)
    _refuse_unknown("filters.chain", chain.filters, rules.filters)
    return chain


def url_chain(crawl: Crawl, seeds: Iterable[str] = ()) -> UrlChain:
    """The chain of a crawl, by the rules in force; `seeds` are in scope from now on."""
    return make_chain(load_rules(crawl, seeds), crawl.plugins)
