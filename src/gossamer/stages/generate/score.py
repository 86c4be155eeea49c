"""The scoring chain: each scorer gets the facts of many URLs and the previous value, and gives the next.

Built-in scorers map a fact to [0, 1] and multiply: value = previous · (1 - weight + weight · factor), so weight 0 changes
nothing and weight 1 lets the factor decide alone. numpy on both engines, so scores are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.settings import ScoreSettings
from gossamer.tables.spec import TIMESTAMP

MANY_INLINKS = 10_000  # the factor is 1 from here on
TOP_RANK = 255  # the highest log step of a rank
UNKNOWN_DEPTH = 5
MICRO = 1e6


@dataclass(frozen=True)
class Context:
    """What a scorer may know besides the facts."""

    now: datetime
    settings: ScoreSettings

    def weight(self, name: str) -> float:
        """How much a scorer counts, 0 to 1."""
        return self.settings.weights.get(name, 1.0)


@dataclass(frozen=True)
class Scorer:
    """One link of the chain: `score(facts, previous, context)` for the columns it names; a module-level function."""

    name: str
    columns: tuple[str, ...]
    score: Callable[[pa.RecordBatch, np.ndarray, Context], np.ndarray]


@dataclass(frozen=True)
class Scored:
    """The chain's result: the last value, the value after each scorer, and the scorers that failed."""

    score: np.ndarray
    parts: Mapping[str, np.ndarray]
    failed: Mapping[str, str]


def run_chain(scorers: Sequence[Scorer], facts: pa.RecordBatch, context: Context) -> Scored:
    """Scores of a batch; a scorer that raises or gives nonsense is passed over, and told."""
    value = np.ones(facts.num_rows)
    parts: dict[str, np.ndarray] = {}
    failed: dict[str, str] = {}
    for scorer in scorers:
        try:
            given = np.asarray(scorer.score(facts, value, context), np.float64)
            if given.shape != value.shape:
                raise ValueError(f"{given.shape} values for {value.shape} URLs")
            value = np.clip(np.nan_to_num(given, nan=0.0, posinf=np.finfo(np.float32).max), 0, np.finfo(np.float32).max)
        except Exception as error:  # noqa: BLE001  a plugin must not stop a round: it is told and counted
            failed[scorer.name] = f"{type(error).__name__}: {error}"
        value = value.astype(np.float32).astype(np.float64)  # what is compared is what is stored
        parts[scorer.name] = value
    return Scored(value, parts, failed)


def _weighted(previous: np.ndarray, factor: np.ndarray, weight: float) -> np.ndarray:
    return previous * (1.0 - weight + weight * factor)


def _numbers(facts: pa.RecordBatch, name: str, instead: float) -> np.ndarray:
    column = facts.column(name)
    return pc.fill_null(column, pa.scalar(instead, column.type)).to_numpy(zero_copy_only=False)


def inlinks(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    """More links, more worth; a page nobody links to keeps a little."""
    links = np.maximum(_numbers(facts, "inlinks", 0), 0)
    factor = np.minimum(np.log1p(links + 1.0) / np.log1p(MANY_INLINKS), 1.0)
    return _weighted(previous, factor, context.weight("inlinks"))


def cash(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    """OPIC: pages that have gathered cash since their last fetch come first."""
    owned = np.maximum(_numbers(facts, "cash", 0), 0) / MICRO
    return _weighted(previous, owned / (owned + 1.0), context.weight("cash"))


def depth(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    """Closer to a seed, earlier."""
    steps = np.maximum(_numbers(facts, "depth", UNKNOWN_DEPTH), 0)
    return _weighted(previous, 1.0 / (1.0 + steps), context.weight("depth"))


def useful(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    """Useful URLs are multiplied by one constant, the others by another."""
    constants = context.settings
    yes = facts.column("useful").fill_null(False).to_numpy(zero_copy_only=False)
    return previous * np.where(yes, constants.useful_yes, constants.useful_no)


def rank(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    """PageRank in log steps; a page without one counts as middling."""
    step = np.clip(_numbers(facts, "rank", TOP_RANK // 2), 0, TOP_RANK)
    return _weighted(previous, step / TOP_RANK, context.weight("rank"))


def freshness(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    """The longer overdue in terms of its own interval, the earlier."""
    now = pa.scalar(context.now, TIMESTAMP).value
    due = facts.column("next_fetch").cast(pa.int64())
    waited = np.maximum(now - pc.fill_null(due, now).to_numpy(zero_copy_only=False), 0) / MICRO
    interval = np.maximum(_numbers(facts, "interval_s", 1), 1)
    return _weighted(previous, 0.5 + 0.5 * np.minimum(waited / interval, 1.0), context.weight("freshness"))


BUILT_IN = (
    Scorer("inlinks", ("inlinks",), inlinks),
    Scorer("cash", ("cash",), cash),
    Scorer("depth", ("depth",), depth),
    Scorer("rank", ("rank",), rank),
    Scorer("freshness", ("next_fetch", "interval_s"), freshness),
    Scorer("useful", ("useful",), useful),
)
