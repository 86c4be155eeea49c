"""Paths that repeat themselves, as endless sites make them: what back-references would find, in linear time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Lines of Nutch's stock regex-urlfilter.txt against loops; these are answered by `alternates`.
STOCK_LINES = frozenset({r".*(/[^/]+)/[^/]+\1/[^/]+\1/", r".*(/.+?)/.*?\1/.*?\1/"})


def alternates(url: str) -> bool:
    """Whether the same segment comes three times with one other between (`/a/x/a/y/a/`), as Nutch's stock line asks."""
    parts = url.split("/")[1:]
    for at in range(len(parts) - 5):
        name = parts[at]
        if name and name == parts[at + 2] == parts[at + 4] and parts[at + 1] and parts[at + 3]:
            return True
    return False


def recurs(url: str, times: int) -> bool:
    """Whether a directory comes this often in the path, other directories between."""
    path = url.partition("://")[2].partition("?")[0]
    last: dict[str, int] = {}
    count: dict[str, int] = {}
    for at, name in enumerate(path.split("/")[1:-1]):
        if name and at - last.get(name, -2) > 1:
            last[name] = at
            count[name] = count.get(name, 0) + 1
            if count[name] >= times:
                return True
    return False


def where_deep(urls: pa.Array, slashes: int, found: Callable[[str], bool]) -> np.ndarray:
    """Which URLs have this many slashes and pass a check; the check runs only on those."""
    mask = pc.greater_equal(pc.count_substring(urls, "/"), slashes).fill_null(False).to_numpy(zero_copy_only=False)
    result = np.zeros(len(urls), bool)
    if mask.any():
        result[mask] = [found(url) for url in urls.filter(pa.array(mask)).to_pylist()]
    return result


def where_alternating(urls: pa.Array) -> np.ndarray:
    """`alternates` of a column."""
    return where_deep(urls, 7, alternates)  # two of the scheme, five around and after the segments
