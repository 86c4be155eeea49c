"""What is remembered of hosts holds after a restart, whatever has become of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from gossamer.stages.fetch import memory
from gossamer.stages.fetch.memory import Memory, merged
from gossamer.stages.fetch.politeness import Limits, Politeness, Queue
from gossamer.tables.states import LONGEST_RETRY_AFTER
from gossamer.urls.keys import fingerprint

NOW = 5_000.0  # of the monotonic clock
TODAY = datetime(2026, 7, 1, 12, tzinfo=UTC)
WALL = TODAY.timestamp() - NOW  # time of day when the monotonic clock was 0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "time", SimpleNamespace(monotonic=lambda: NOW))


def queue_of(**known: object) -> Queue:
    """A new queue, reminded of what a host said."""
    queue = Politeness(Limits()).add("host.test", range(3))
    Memory({"host.test": known}).remind(queue, WALL)
    return queue


def journalled(ago: float, delay: float, own: float = 1.0) -> Queue:
    queue = Politeness(Limits(delay=own)).add("host.test", range(3))
    Memory(journal={fingerprint("host.test"): (TODAY.timestamp() - ago, delay)}).remind(queue, WALL)
    return queue


def test_a_stranger_may_be_asked_at_once():
    queue = Politeness(Limits()).add("host.test", range(3))
    Memory({"other.test": {"failures": 3}}, {fingerprint("other.test"): (TODAY.timestamp(), 9.0)}).remind(queue, WALL)
    assert queue.ready_at == float("-inf")
    assert queue.failures == 0


@pytest.mark.parametrize(
    ("ago", "noted", "own", "left"),
    [
        (0.0, 1.0, 1.0, 1.0),
        (0.4, 1.0, 1.0, 0.6),
        (0.4, 10.0, 1.0, 9.6),  # what robots.txt asked for then
        (0.4, 1.0, 5.0, 4.6),  # a setting that was raised meanwhile
        (50.0, 1.0, 1.0, -49.0),
        (-3600.0, 10.0, 1.0, 10.0),  # the clock was set back: no longer than the delay itself
        (-1e9, 1.0, 1.0, 1.0),
        (1e9, 1.0, 1.0, 1.0 - 1e9),  # … and forth
    ],
)
def test_a_delay_holds_after_a_restart(ago: float, noted: float, own: float, left: float):
    assert journalled(ago, noted, own).ready_at - NOW == pytest.approx(left)


def test_a_delay_holds_between_rounds():
    queue = queue_of(last_request_at=TODAY - timedelta(seconds=2), crawl_delay_ms=10_000)
    assert queue.ready_at == pytest.approx(NOW + 8)
    assert queue.delay == 1.0  # robots.txt is asked for again, and may say otherwise
    assert queue_of(last_request_at=TODAY - timedelta(seconds=0.25)).ready_at == pytest.approx(NOW + 0.75)
    assert queue_of(last_request_at=TODAY + timedelta(days=9)).ready_at == pytest.approx(NOW + 1)


@pytest.mark.parametrize("column", ["not_before", "given_up_until"])
def test_a_host_that_asked_for_it_or_was_given_up_is_left_alone(column: str):
    assert queue_of(**{column: TODAY + timedelta(hours=3)}).ready_at == pytest.approx(NOW + 3 * 3600)
    assert queue_of(**{column: TODAY - timedelta(hours=3)}).ready_at < NOW
    assert queue_of(**{column: TODAY + timedelta(days=3000)}).ready_at == NOW + LONGEST_RETRY_AFTER


def test_the_later_of_both_counts():
    sooner, later = TODAY + timedelta(hours=1), TODAY + timedelta(hours=2)
    assert queue_of(not_before=sooner, given_up_until=later).ready_at == pytest.approx(NOW + 7200)
    assert queue_of(not_before=later, given_up_until=sooner).ready_at == pytest.approx(NOW + 7200)


def test_failures_go_on_counting():
    assert queue_of(failures=4).failures == 4
    assert queue_of(failures=None, not_before=None, last_request_at=None, crawl_delay_ms=None).failures == 0


def test_the_journal_and_the_table_are_both_heeded():
    queue = Politeness(Limits()).add("host.test", range(3))
    known: dict[str, object] = {
        "not_before": TODAY + timedelta(seconds=30),
        "last_request_at": TODAY - timedelta(hours=1),
    }
    Memory({"host.test": known}, {fingerprint("host.test"): (TODAY.timestamp() - 1, 5.0)}).remind(queue, WALL)
    assert queue.last == pytest.approx(NOW - 1)
    assert queue.ready_at == pytest.approx(NOW + 30)


def test_the_later_of_two_requests_counts():
    queue = Politeness(Limits()).add("host.test", range(3))
    known: dict[str, object] = {"last_request_at": TODAY - timedelta(seconds=0.5)}
    Memory({"host.test": known}, {fingerprint("host.test"): (TODAY.timestamp() - 100, 1.0)}).remind(queue, WALL)
    assert queue.last == pytest.approx(NOW - 0.5)
    assert queue.ready_at == pytest.approx(NOW + 0.5)


def test_hosts_of_a_domain_are_as_strict_as_the_strictest():
    early, late = TODAY, TODAY + timedelta(hours=1)
    rows: list[dict[str, object]] = [
        {"host": "a.x.test", "domain": "x.test", "failures": 1, "crawl_delay_ms": None, "last_request_at": late},
        {"host": "b.x.test", "domain": "x.test", "failures": 7, "crawl_delay_ms": 500, "last_request_at": early},
        {"host": "c.x.test", "domain": "x.test", "failures": None, "not_before": early, "given_up_until": None},
        {"host": "y.test", "domain": "y.test", "failures": 2},
        {"host": "nobody", "domain": None, "failures": 9},
    ]
    found = merged(rows, "domain")
    assert set(found) == {"x.test", "y.test"}
    picked = [found["x.test"].get(name) for name in ("failures", "crawl_delay_ms", "last_request_at", "not_before")]
    assert picked == [7, 500, late, early]
    assert found["x.test"]["given_up_until"] is None
    assert found["y.test"]["failures"] == 2


def test_hosts_by_host_stay_as_they_are():
    rows: list[dict[str, object]] = [{"host": "a.test", "failures": 1}, {"host": "b.test", "failures": 2}]
    assert merged(rows, "host") == {"a.test": rows[0], "b.test": rows[1]}
