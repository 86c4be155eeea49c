"""Limits that keep a crawl out of endless sites: length, link depth, number of segments, segments that come again."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from gossamer.rules.segments import recurs, where_deep
from gossamer.urls.batch import UrlBatch


def too_long(batch: UrlBatch, most: int) -> pa.Array:
    """Reasons for URLs of more bytes than that."""
    return _where(pc.greater(pc.binary_length(batch.urls), most), "too long")


def too_deep(batch: UrlBatch, most: int) -> pa.Array:
    """Reasons for URLs that are further from a seed than that; -1 is no limit, an unknown depth is fine."""
    if most < 0 or batch.depth is None:
        return pa.nulls(len(batch), pa.string())
    return _where(pc.greater(batch.depth, most).fill_null(False), "too deep")


def too_many_segments(batch: UrlBatch, most: int) -> pa.Array:
    """Reasons for URLs with more path segments than that."""
    return _where(pa.array(where_deep(batch.urls, most + 2, partial(_more_segments, most=most))), "too many segments")


def _more_segments(url: str, most: int) -> bool:
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    return sum(1 for name in path.split("/") if name) > most


def repeated_segments(batch: UrlBatch, most: int) -> pa.Array:
    """Reasons for URLs in which a directory comes more often than that, others between; 0 is no limit."""
    if most < 1:
        return pa.nulls(len(batch), pa.string())
    slashes = 2 * most + 4  # two of the scheme, one before each directory, one after the last
    return _where(pa.array(where_deep(batch.urls, slashes, partial(recurs, times=most + 1))), "repeated segments")


def _where(mask: pa.Array, reason: str) -> pa.Array:
    return pc.if_else(mask, reason, pa.scalar(None, pa.string()))
