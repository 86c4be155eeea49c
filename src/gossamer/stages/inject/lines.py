"""Lines of a seed list → seeds: columns of URL, score, interval, kind and metadata, with a reason where a line is bad.

Three kinds of line, told apart one by one: a URL; Nutch's `url<TAB>key=value<TAB>…`; and `host<TAB>url<TAB>url…`.
Plain lines, by far the most, are handled as columns; only lines with tabs are looked at singly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

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


@dataclass
class Seed:
    """One URL of a line with tabs, and what the line says about it."""

    line: int
    url: str
    cash: int | None = None
    interval_s: int | None = None
    kind: int | None = None
    meta: dict[str, str] = field(default_factory=dict)
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
    seeds = [seed for number, text in zip(numbers, texts, strict=True) for seed in parse_fields(number, text)]
    columns = {
        name: pa.array([getattr(seed, name) for seed in seeds], SEEDS.field(name).type)
        for name in SEEDS.names
        if name != "meta"
    }
    columns["url"] = with_scheme(columns["url"])
    columns["meta"] = pa.array([sorted(seed.meta.items()) or None for seed in seeds], META)
    return pa.RecordBatch.from_arrays([columns[name] for name in SEEDS.names], schema=SEEDS)


def parse_fields(number: int, text: str) -> Iterator[Seed]:
    """One line with tabs: the URLs of a host, or a URL with its metadata."""
    first, *others = (part for part in (part.strip() for part in text.split("\t")) if part)
    if others and LOOKS_LIKE_URL.match(others[0]):
        if "://" in first:
            yield Seed(number, first)  # no host but a URL: a seed like the others
        yield from (Seed(number, url) for url in others)
        return
    seed = Seed(number, first)
    try:
        for pair in others:
            _take(seed, pair)
    except BadLine as error:
        seed = Seed(number, first, reason=str(error))
    yield seed


def _take(seed: Seed, pair: str) -> None:
    """Put one `key=value` where it belongs."""
    key, equals, value = (part.strip() for part in pair.partition("="))
    if not equals or not key:
        raise BadLine("metadata is not key=value")
    if key in SCORE_KEYS:
        seed.cash = _cash(value)
    elif key in INTERVAL_KEYS:
        seed.interval_s = seed.interval_s if FIXED_INTERVAL in seed.meta else _interval(value)
    elif key == FIXED_INTERVAL:
        seed.interval_s, seed.meta[key] = _interval(value), value
    elif key == "kind":
        if value.upper() not in PageKind.__members__:
            raise BadLine(f"kind is not one of {', '.join(kind.name.lower() for kind in PageKind)}")
        seed.kind = PageKind[value.upper()].value
    else:
        seed.meta[key] = value


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
