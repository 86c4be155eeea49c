"""The two kinds of steps URL chains are made of. Both work on whole columns and are pickled to workers by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from gossamer.rules.ruleset import RuleSet
    from gossamer.urls.batch import UrlBatch


@dataclass(frozen=True)
class Normalizer:
    """Rewrites URLs: (URLs, rules, stage) → URLs, NULL for those it rejects."""

    name: str
    run: Callable[[pa.Array, RuleSet, str], pa.Array]


@dataclass(frozen=True)
class Filter:
    """Rejects URLs: (batch, rules) → reasons, NULL for those it keeps; `accepts` tells what made it keep them."""

    name: str
    run: Callable[[UrlBatch, RuleSet], pa.Array]
    accepts: Callable[[UrlBatch, RuleSet], pa.Array] | None = None
