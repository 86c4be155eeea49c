"""Time as a value."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from gossamer.clock import Clock, format_time, parse_time, truncate


def test_truncate_cuts_and_never_rounds():
    assert truncate(datetime(2026, 1, 1, 0, 0, 0, 999_999, UTC)).microsecond == 999_000


def test_truncate_goes_to_utc():
    there = timezone(timedelta(hours=5, minutes=30))
    assert truncate(datetime(2026, 1, 1, 1, 0, tzinfo=there)) == datetime(2025, 12, 31, 19, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05.678Z", datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)),
        ("2026-01-02T03:04:05.678999Z", datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)),
        ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
    ],
)
def test_parse_time(text: str, moment: datetime):
    assert parse_time(text) == moment
    assert parse_time(text).tzinfo is UTC


def test_format_time():
    there = timezone(timedelta(hours=2))
    assert format_time(datetime(2026, 1, 2, 3, 4, 5, 67_891, there)) == "2026-01-02T01:04:05.067Z"


def test_format_and_parse_are_inverse():
    now = Clock.system().now
    assert parse_time(format_time(now)) == now


def test_a_clock_stands_still():
    clock = Clock.at("2026-01-02T03:04:05Z")
    assert clock.now == clock.now == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_the_system_clock_is_utc_in_milliseconds():
    now = Clock.system().now
    assert now.tzinfo is UTC
    assert now.microsecond % 1000 == 0
