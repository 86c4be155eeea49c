"""The filters Gossamer brings: limits, scope, and files of prefixes, suffixes and regular expressions."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from gossamer.plugins.hookspecs import hookimpl
from gossamer.rules import limits
from gossamer.rules.ruleset import RuleSet
from gossamer.urls.batch import UrlBatch
from gossamer.urls.steps import Filter


def length(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """Not longer than `filters.max_length`."""
    return limits.too_long(batch, rules.max_length)


def depth(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """Not deeper than `filters.max_depth`."""
    return limits.too_deep(batch, rules.max_depth)


def segments(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """Not more segments than `filters.max_segments`."""
    return limits.too_many_segments(batch, rules.max_segments)


def repeats(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """No directory more often than `filters.max_repeats`."""
    return limits.repeated_segments(batch, rules.max_repeats)


def scope(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """Inside `filters.scope`."""
    return rules.scope.reasons(batch)


def prefix(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """Accepted by every prefix file."""
    return _first(batch, (file.reasons(batch) for file in rules.prefixes))


def suffix(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """Accepted by every suffix file."""
    return _first(batch, (file.reasons(batch) for file in rules.suffixes))


def regex(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """Accepted by every regex file."""
    return _first(batch, (file.reasons(batch) for file in rules.regexes))


def accepting_prefix(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """The lines of prefix files that accept."""
    return _first(batch, (file.acceptances(batch) for file in rules.prefixes))


def accepting_suffix(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """The lines of suffix files that accept."""
    return _first(batch, (file.acceptances(batch) for file in rules.suffixes))


def accepting_regex(batch: UrlBatch, rules: RuleSet) -> pa.Array:
    """The lines of regex files that accept."""
    return _first(batch, (file.acceptances(batch) for file in rules.regexes))


def _first(batch: UrlBatch, columns: Iterable[pa.Array]) -> pa.Array:
    """Of several columns the first that says something."""
    found = pa.nulls(len(batch), pa.string())
    for column in columns:
        found = pc.coalesce(found, column)
    return found


FILTERS = (
    *(Filter(run.__name__, run) for run in (length, depth, segments, repeats, scope)),
    Filter("prefix", prefix, accepting_prefix),
    Filter("suffix", suffix, accepting_suffix),
    Filter("regex", regex, accepting_regex),
)


@hookimpl
def gossamer_filters() -> list[Filter]:
    """All of them."""
    return list(FILTERS)
