"""Casting a column of a file to the type of a table's column; what `gossamer read` prints can be loaded again."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gossamer.tables.spec import TIMESTAMP


def cast(column: pa.Array, kind: pa.DataType, labels: type[IntEnum] | None = None) -> pa.Array:
    """The column with the type of the table; raises an ArrowException if a value does not fit."""
    if pa.types.is_string(column.type):
        if labels is not None:
            return _codes(column, labels).cast(kind)
        if kind == TIMESTAMP:
            return _floor(_moments(column))
        if pa.types.is_nested(kind):
            return pa.array([None if text is None else _items(_parsed(text)) for text in column.to_pylist()], kind)
    if pa.types.is_struct(column.type) and pa.types.is_map(kind):
        return pa.array([None if row is None else _items(row) for row in column.to_pylist()], kind)
    return (_floor(column) if pa.types.is_timestamp(column.type) else column).cast(kind)


def _floor(moments: pa.Array) -> pa.Array:
    """Times cut to milliseconds, as all stored ones are."""
    return pc.floor_temporal(moments, unit="millisecond")


def _moments(texts: pa.Array) -> pa.Array:
    """Times from ISO 8601; without an offset they are UTC."""
    zoned = pc.match_substring_regex(texts, r"(Z|[+-][0-9]{2}:?[0-9]{2})$")
    nothing = pa.scalar(None, pa.string())
    bare = pc.if_else(zoned, nothing, texts).cast(pa.timestamp("us"))
    return pc.coalesce(pc.if_else(zoned, texts, nothing).cast(TIMESTAMP), bare.cast(TIMESTAMP))


def _codes(texts: pa.Array, labels: type[IntEnum]) -> pa.Array:
    """The numbers behind names such as `fetched`; numbers may be given too."""
    numbers = {label.name.lower(): str(label.value) for label in labels}
    encoded = texts.dictionary_encode()
    spelled = [None if text is None else numbers.get(text.lower(), text) for text in encoded.dictionary.to_pylist()]
    return pa.array(spelled, pa.string()).cast(pa.int64()).take(encoded.indices)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise pa.ArrowInvalid(f"{text[:40]!r} is not JSON") from error


def _items(value: Any) -> Any:
    """The pairs of an object without those JSON readers fill in for other rows; lists as they are."""
    return [(key, item) for key, item in value.items() if item is not None] if isinstance(value, dict) else value
