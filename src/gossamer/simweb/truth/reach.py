"""How many links each URL is from the seeds: truth's links and redirects → column `depth` of its URLs, and `depth_allowed` for the obedient.

Breadth first over numbered URLs in numpy: one pass over all links per level.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

FOLLOWED = ("a", "img", "canonical", "alternate")
FAR = -1

Numbers = npt.NDArray[np.int64]
Depths = npt.NDArray[np.int32]


def add_depths(folder: Path, seeds: Sequence[str], moment: int) -> None:
    """Write the two depths into the table of URLs, at the moment the truth begins."""
    parts = sorted((folder / "urls").glob("*.parquet"))
    tables = [pq.read_table(part) for part in parts]
    urls = pa.concat_tables(tables).select(["url", "allowed"]).combine_chunks()
    names = urls["url"].combine_chunks()
    src, dst = _edges(folder, names, moment)
    first = _places(pa.array(list(seeds), pa.string()), names)
    first = first[first != FAR]
    allowed = np.asarray(urls["allowed"].combine_chunks().to_numpy(zero_copy_only=False), bool)
    free = depths(len(names), src, dst, first, np.ones(len(names), bool))
    polite = depths(len(names), src, dst, first, allowed)
    start = 0
    for part, table in zip(parts, tables, strict=True):
        for name, found in (("depth", free), ("depth_allowed", polite)):
            piece = found[start : start + table.num_rows]
            table = table.append_column(name, pa.array(piece, mask=piece == FAR))
        start += table.num_rows
        pq.write_table(table, part)


def depths(count: int, src: Numbers, dst: Numbers, first: Numbers, open_: npt.NDArray[np.bool_]) -> Depths:
    """Levels from `first`; a URL that is not open is neither reached nor passed."""
    found = np.full(count, FAR, np.int32)
    level = np.zeros(count, bool)
    level[first] = True
    level &= open_
    depth = 0
    while level.any():
        found[level] = depth
        reached = np.zeros(count, bool)
        reached[dst[level[src]]] = True
        level = reached & open_ & (found == FAR)
        depth += 1
    return found


def _edges(folder: Path, names: pa.Array, moment: int) -> tuple[Numbers, Numbers]:
    """Links and redirects that hold at the moment, as places in `names`."""
    at = pa.scalar(moment, pa.timestamp("s", tz="UTC"))
    then = (ds.field("valid_from") <= at) & (ds.field("valid_to").is_null() | (ds.field("valid_to") > at))
    sources, targets = [], []
    links = ds.dataset(folder / "links")
    for batch in links.to_batches(columns=["src", "dst"], filter=then & ds.field("kind").isin(FOLLOWED)):
        sources.append(_places(batch["src"], names))
        targets.append(_places(batch["dst"], names))
    moved = ds.dataset(folder / "states").to_table(columns=["url", "target"], filter=then & (ds.field("target") != ""))
    sources.append(_places(moved["url"].combine_chunks(), names))
    targets.append(_places(moved["target"].combine_chunks(), names))
    src, dst = np.concatenate(sources), np.concatenate(targets)
    known = (src != FAR) & (dst != FAR)
    return src[known], dst[known]


def _places(urls: pa.Array, names: pa.Array) -> Numbers:
    return np.asarray(pc.fill_null(pc.index_in(urls, value_set=names), FAR).to_numpy(zero_copy_only=False), np.int64)
