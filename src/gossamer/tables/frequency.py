"""Frequency classes: pages that are fetched equally often lie in the same files of the crawldb's base.

A round over hot pages then reads only their files. A page changes its class when the crawldb is compacted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DAY = 86_400
NEW, HOT, WARM, COLD = CLASSES = ("new", "hot", "warm", "cold")  # not fetched yet; daily, weekly, more rarely
LONGEST = {HOT: DAY, WARM: 7 * DAY}  # interval


def classes(rows: pa.RecordBatch | pa.Table) -> np.ndarray:
    """The number of each crawldb row's class."""
    interval = pc.fill_null(rows.column("interval_s"), 30 * DAY).to_numpy(zero_copy_only=False)
    number = np.full(rows.num_rows, CLASSES.index(COLD), np.int8)
    number[interval <= LONGEST[WARM]] = CLASSES.index(WARM)
    number[interval <= LONGEST[HOT]] = CLASSES.index(HOT)
    number[pc.is_null(rows.column("fetched_at")).to_numpy(zero_copy_only=False)] = CLASSES.index(NEW)
    return number
