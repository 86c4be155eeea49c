"""Lines of a seed list → seeds: columns of URL, score, interval, kind and metadata, with a reason where a line is bad.

Three kinds of line, told apart one by one: a URL; Nutch's `url<TAB>key=value<TAB>…`; and `host<TAB>url<TAB>url…`.
Plain lines, by far the most, are handled as columns; only lines with tabs are looked at singly, equal ends once.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.stages.inject.changes import MICRO
from gossamer.stages.inject.inputs import MAX_LINE
from gossamer.tables.spec import META
from gossamer.tables.statuses import PageKind

SHOWN = 300  # bytes of a bad line that are told
MAX_SCORE = 1e6
LEAST_INTERVAL, MOST_INTERVAL = 60, (1 << 31) - 1
SCORE_KEYS, INTERVAL_KEYS = ("nutch.score", "score"), ("nutch.fetchInterval", "interval")
KIND_KEY = "kind"
FIXED_INTERVAL = "nutch.fetchInterval.fixed"  # sets the interval and stays in the metadata, for the schedule to see
SCHEME = r"^[A-Za-z][A-Za-z0-9+.\-]*://"
BARE = r"^[\pL\pM\pN_\-]+(?:\.[\pL\pM\pN_\-]+)+\.?(?::[0-9]+)?(?:[/?#]\S*)?$"  # a host with a dot, no spaces
LOOKS_LIKE_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://|[^\s/?#=]+\.[^\s/?#=]+(?:[/?#]|$)")
SEEDS = pa.schema(
    [
        ("line", pa.int64()),
        ("url", pa.string()),  # as written, with a scheme; of a bad line its beginning
        ("cash", pa.int64()),
        ("interval_s", pa.int32()),
        ("kind", pa.int8()),
        ("meta", META),
        ("reason", pa.string()),  # why the line is bad
    ]
)


@dataclass(frozen=True)
class Told:
    """What stands behind the first field of a line: more URLs, or what is said about that one."""

    urls: tuple[str, ...] = ()
    cash: int | None = None
    interval_s: int | None = None
    kind: int | None = None
    meta: tuple[tuple[str, str], ...] | None = None
    reason: str | None = None


class BadLine(ValueError):
    """A line cannot be understood; the message is the reason."""


def seeds_of(block: bytes, first: int) -> tuple[pa.RecordBatch, int]:
    """The seeds of a block whose first line has this number, in order, and how many lines it has."""
    lines = block.split(b"\n")
    texts, reasons = _texts(pa.array(lines, pa.binary()))
    numbers = pa.array(np.arange(first, first + len(lines)))
    told = pc.and_(pc.not_equal(texts, ""), pc.invert(pc.starts_with(texts, "#")))
    texts, reasons, numbers = texts.filter(told), reasons.filter(told), numbers.filter(told)
    tabbed = pc.and_(pc.match_substring(texts, "\t"), reasons.is_null())
    plain = pc.invert(tabbed)
    seeds = _plain(numbers.filter(plain), texts.filter(plain), reasons.filter(plain))
    if tabbed.true_count:
        found = _tabbed(numbers.filter(tabbed).to_pylist(), texts.filter(tabbed).to_pylist())
        both = pa.Table.from_batches([seeds, found]).combine_chunks().to_batches()[0]
        seeds = both.take(pc.sort_indices(both.column("line")))  # stable: the URLs of a line stay in order
    return seeds, len(lines)


def _texts(lines: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Trimmed lines as text, and what is wrong with those that are none."""
    long = pc.greater(pc.binary_length(lines), MAX_LINE)
    reasons = pa.nulls(len(lines), pa.string())
    if long.true_count:
        reasons = pc.if_else(long, f"line longer than {MAX_LINE >> 10:,} KiB, break it up", reasons)
        lines = pc.if_else(long, pc.binary_slice(lines, 0, SHOWN), lines)
    try:
        texts = lines.cast(pa.string())
    except pa.ArrowInvalid:
        strange = pa.array([not _is_utf8(line) for line in lines.to_pylist()])
        texts = pa.array([line.decode("utf-8", "backslashreplace") for line in lines.to_pylist()])
        reasons = pc.coalesce(reasons, pc.if_else(strange, "not UTF-8", pa.scalar(None, pa.string())))
    nul = pc.match_substring(texts, "\0")
    if nul.true_count:
        reasons = pc.coalesce(reasons, pc.if_else(nul, "NUL in the line", pa.scalar(None, pa.string())))
    return pc.utf8_trim_whitespace(texts), reasons


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _plain(numbers: pa.Array, texts: pa.Array, reasons: pa.Array) -> pa.RecordBatch:
    """Lines that are one URL each, and bad ones."""
    nothing = [pa.nulls(len(texts), SEEDS.field(name).type) for name in ("cash", "interval_s", "kind", "meta")]
    return pa.RecordBatch.from_arrays([numbers, with_scheme(texts), *nothing, reasons], schema=SEEDS)


def with_scheme(texts: pa.Array) -> pa.Array:
    """`example.org/path` as `http://example.org/path`; what is no bare host with a dot stays as it is."""
    if pc.all(pc.match_substring_regex(texts, SCHEME), min_count=0).as_py():
        return texts
    bare = pc.match_substring_regex(texts, BARE)
    return pc.if_else(bare, pc.binary_join_element_wise("http://", texts, ""), texts)


def _tabbed(numbers: list[int], texts: list[str]) -> pa.RecordBatch:
    """The seeds of lines with tabs."""
    lines: list[int] = []
    urls: list[str] = []
    told: list[Told] = []
    for number, text in zip(numbers, texts, strict=True):
        first, _, rest = text.partition("\t")
        about = _often(rest) if len(rest) <= SHOWN else tell(rest)
        hosted = about.urls if "://" not in first else (first, *about.urls)  # a URL in a host's place is a seed too
        found = hosted if about.urls else (first,)
        lines += [number] * len(found)
        urls += found
        told += [about] * len(found)
    columns = {
        name: pa.array([getattr(about, name) for about in told], SEEDS.field(name).type)
        for name in ("cash", "interval_s", "kind", "meta", "reason")
    }
    columns |= {"line": pa.array(lines, pa.int64()), "url": with_scheme(pc.utf8_trim_whitespace(pa.array(urls)))}
    return pa.RecordBatch.from_arrays([columns[name] for name in SEEDS.names], schema=SEEDS)


def tell(rest: str) -> Told:
    """What stands behind the first tab of a line: the URLs of a host, or metadata of a URL."""
    fields = [part for part in map(str.strip, rest.split("\t")) if part]
    if fields and LOOKS_LIKE_URL.match(fields[0]):
        return Told(tuple(fields))
    pairs: dict[str, str] = {}
    for part in fields:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            return Told(reason="metadata is not key=value")
        pairs[key.strip()] = value.strip()
    try:
        return _sorted_out(pairs)
    except BadLine as error:
        return Told(reason=str(error))


_often = lru_cache(4096)(tell)  # lines of one list often end alike


def _sorted_out(pairs: dict[str, str]) -> Told:
    """Metadata put where it belongs; what has no column of its own goes into the map."""
    known = {*SCORE_KEYS, *INTERVAL_KEYS, KIND_KEY}
    meta = tuple(sorted((key, value) for key, value in pairs.items() if key not in known))
    scores = [_cash(pairs[key]) for key in SCORE_KEYS if key in pairs]
    intervals = [_interval(pairs[key]) for key in (FIXED_INTERVAL, *INTERVAL_KEYS) if key in pairs]
    kind = pairs.get(KIND_KEY, "").upper()
    if kind not in {"", *PageKind.__members__}:
        raise BadLine(f"kind is not one of {', '.join(kind.name.lower() for kind in PageKind)}")
    return Told(
        cash=scores[0] if scores else None,
        interval_s=intervals[0] if intervals else None,
        kind=PageKind[kind].value if kind else None,
        meta=meta or None,
    )


def _cash(value: str) -> int:
    """A score in millionths."""
    try:
        score = float(value)
    except ValueError:
        score = math.nan
    if not 0 <= score <= MAX_SCORE:
        raise BadLine(f"score is not a number from 0 to {MAX_SCORE:,.0f}")
    return round(score * MICRO)


def _interval(value: str) -> int:
    """Seconds between fetches; Nutch writes them as decimals too."""
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not LEAST_INTERVAL <= seconds <= MOST_INTERVAL:
        raise BadLine(f"interval is not a number of seconds, {LEAST_INTERVAL} at least")
    return round(seconds)
