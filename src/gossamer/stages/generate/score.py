"""The scoring chain: each scorer gets the facts of many URLs and the previous value, and gives the next.

numpy on both engines, so scores are equal. The built-in scorers are in `plugins.builtin.scorers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from gossamer.settings import ScoreSettings

MOST = float(np.finfo(np.float32).max)


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
    """Scores of a batch; a scorer that raises, or where it gives nonsense, is passed over and told."""
    value = np.ones(facts.num_rows)
    if not len(value):
        return Scored(value, {scorer.name: value for scorer in scorers}, {})
    parts: dict[str, np.ndarray] = {}
    failed: dict[str, str] = {}
    for scorer in scorers:
        try:
            given = np.asarray(scorer.score(facts, value.copy(), context), np.float64)
            if given.shape != value.shape:
                raise ValueError(f"values of shape {given.shape} for {len(value)} URLs")
            odd = ~np.isfinite(given)
            if odd.any():
                failed[scorer.name] = f"{odd.sum():,} of {len(value):,} values are not finite"
            value = np.clip(np.where(odd, value, given), 0.0, MOST) + 0.0  # -0.0 would be the highest of all
        except Exception as error:  # noqa: BLE001  a plugin must not stop a round: it is told and counted
            failed[scorer.name] = f"{type(error).__name__}: {error}"
        value = value.astype(np.float32).astype(np.float64)  # what is compared is what is stored
        parts[scorer.name] = value
    return Scored(value, parts, failed)
