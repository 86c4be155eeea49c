"""Casting a file's columns to a table's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from gossamer.stages.load.values import cast
from gossamer.tables.spec import META, TIMESTAMP
from gossamer.tables.statuses import Status


def moment(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-02T03:04:05Z", moment(2026, 1, 2, 3, 4, 5)),
        ("2026-01-02T03:04:05.678901Z", moment(2026, 1, 2, 3, 4, 5, 678_000)),
        ("2026-01-02 03:04:05", moment(2026, 1, 2, 3, 4, 5)),
        ("2026-01-02", moment(2026, 1, 2)),
        ("2026-01-02T03:04:05+02:00", moment(2026, 1, 2, 1, 4, 5)),
        ("2026-01-02T03:04:05-0530", moment(2026, 1, 2, 8, 34, 5)),
        (None, None),
    ],
)
def test_times_are_utc_in_milliseconds(text: str | None, expected: datetime | None):
    assert cast(pa.array([text], pa.string()), TIMESTAMP).to_pylist() == [expected]


def test_times_of_other_units():
    assert cast(pa.array([1_500_000_999], pa.timestamp("ns")), TIMESTAMP).to_pylist() == [
        moment(1970, 1, 1, 0, 0, 1, 500_000)
    ]


def test_codes_by_name_or_number():
    found = cast(pa.array(["fetched", "GONE", "7", None, "fetched"]), pa.int8(), Status)
    assert found.type == pa.int8()
    assert found.to_pylist() == [2, 3, 7, None, 2]
    assert cast(pa.array([2, None], pa.int64()), pa.int8(), Status).to_pylist() == [2, None]


@pytest.mark.parametrize("given", [pa.array(['{"a": "b"}', "{}", None]), pa.array([{"a": "b"}, {"a": None}, None])])
def test_maps_from_json_text_and_objects(given: pa.Array):
    assert cast(given, META).to_pylist() == [[("a", "b")], [], None]


def test_lists_from_json_text():
    assert cast(pa.array(['["a", "b"]', "[]", None]), pa.list_(pa.string())).to_pylist() == [["a", "b"], [], None]


@pytest.mark.parametrize(
    ("given", "kind", "labels"),
    [
        (["soon"], TIMESTAMP, None),
        (["2026-13-01"], TIMESTAMP, None),
        (["fetch"], pa.int8(), Status),
        (["300"], pa.int8(), Status),
        ([300], pa.int8(), None),
        (["x"], META, None),
        (["[1, 2]"], META, None),
        (['{"a": 1}'], META, None),
        ([1.5], pa.int32(), None),
    ],
)
def test_what_does_not_fit(given: list[Any], kind: pa.DataType, labels: Any):
    with pytest.raises(pa.ArrowException):
        cast(pa.array(given), kind, labels)
