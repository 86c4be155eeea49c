"""The built-in scorers: each maps a fact to [0, 1] and multiplies.

value = previous · (1 - weight + weight · factor), so weight 0 changes nothing and weight 1 lets the factor decide alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.plugins.hookspecs import hookimpl
from gossamer.stages.generate.score import Context, Scorer
from gossamer.tables.spec import TIMESTAMP

MANY_INLINKS = 10_000  # the factor is 1 from here on
TOP_RANK = 255  # the highest log step of a rank
UNKNOWN_DEPTH = 5
PENNILESS = 0.1  # the factor without cash
MICRO = 1e6


def _weighted(previous: np.ndarray, factor: np.ndarray, weight: float) -> np.ndarray:
    return previous * (1.0 - weight + weight * factor)


def _numbers(facts: pa.RecordBatch, name: str, instead: float) -> np.ndarray:
    column = facts.column(name)
    return np.asarray(pc.fill_null(column, pa.scalar(instead, column.type)).to_numpy(zero_copy_only=False))


def inlinks(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    """More links, more worth; a page nobody links to keeps a little."""
    links = np.maximum(_numbers(facts, "inlinks", 0), 0)
    factor = np.minimum(np.log1p(links + 1.0) / np.log1p(MANY_INLINKS), 1.0)
    return _weighted(previous, factor, context.weight("inlinks"))


def cash(facts: pa.RecordBatch, previous: np.ndarray, context: Context) -> np.ndarray:
    """OPIC: pages that have gathered cash since their last fetch come first; those without any keep a little."""
    owned = np.maximum(_numbers(facts, "cash", 0), 0) / MICRO
    return _weighted(previous, (owned + PENNILESS) / (owned + 1.0), context.weight("cash"))


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


SCORERS = (
    Scorer("inlinks", ("inlinks",), inlinks),
    Scorer("cash", ("cash",), cash),
    Scorer("depth", ("depth",), depth),
    Scorer("rank", ("rank",), rank),
    Scorer("freshness", ("next_fetch", "interval_s"), freshness),
    Scorer("useful", ("useful",), useful),
)


@hookimpl
def gossamer_scorers() -> list[Scorer]:
    """The scorers above."""
    return list(SCORERS)
