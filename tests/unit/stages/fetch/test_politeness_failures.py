"""Servers that fail or ask to be left alone: back-off, and when a queue is given up."""

from __future__ import annotations

import pytest

from gossamer.stages.fetch.politeness import Limits, Politeness, Queue


def one(size: int = 50, **limits: float) -> tuple[Politeness, Queue]:
    found = Politeness(Limits(**{"delay": 1.0} | limits))  # type: ignore[arg-type]
    queue = found.add("host.test", range(size))
    found.enter(queue, 0.0)
    return found, queue


def ask(found: Politeness, now: float, **ending: float) -> None:
    turn = found.take(now)
    assert turn is not None
    assert found.begin(turn[0], None, now)
    found.finish(turn[0], None, now, **ending)  # type: ignore[arg-type]


def test_a_wait_holds_and_is_no_failure():
    found, queue = one()
    ask(found, 0.0, wait=30.0)
    assert queue.failures == 0
    assert found.take(29.9) is None
    assert found.wake() == 30.0
    ask(found, 30.0)
    assert found.wake() == 31.0  # the delay again


def test_a_wait_shorter_than_the_delay_changes_nothing():
    found, _ = one(delay=10.0)
    ask(found, 0.0, wait=2.0)
    assert found.wake() == 10.0


def test_a_wait_neither_ends_nor_adds_to_a_row_of_failures():
    found, queue = one()
    ask(found, 0.0, failed=True)
    ask(found, queue.ready_at, wait=5.0)
    assert queue.failures == 1
    ask(found, queue.ready_at)
    assert queue.failures == 0


def test_the_longer_of_two_waits_counts():
    found, queue = one()
    queue.connections = 2
    for at in (0.0, 1.0):
        turn = found.take(at)
        assert turn is not None
        assert found.begin(queue, None, at)
    found.finish(queue, None, 2.0, wait=60.0)
    found.finish(queue, None, 3.0, wait=5.0)
    assert found.wake() == 62.0


def test_backoff_doubles_is_spread_and_is_the_same_in_every_run():
    waits = []
    for _ in range(2):
        found, queue = one(longest_wait=1e9)
        for failures in range(1, 12):
            queue.failures = failures
            waits.append(found.backoff(queue))
    assert waits[:11] == waits[11:]
    for failures, wait in enumerate(waits[:11], start=1):
        assert 0.5 <= wait / 2 ** (failures - 1) < 1.5
    assert len({wait / 2**n for n, wait in enumerate(waits[:11])}) == 11
    other = found.add("other.test", ())
    other.failures = 1
    assert found.backoff(other) != waits[0]


def test_a_failure_holds_the_queue_for_its_backoff():
    found, queue = one()
    ask(found, 0.0, failed=True)
    ask(found, queue.ready_at, failed=True)
    assert queue.failures == 2
    assert queue.ready_at - queue.last == pytest.approx(max(found.backoff(queue), 1.0))
    assert found.take(queue.ready_at - 0.001) is None


def test_backoff_without_a_delay_still_waits():
    found, _ = one(delay=0.0)
    ask(found, 0.0, failed=True)
    wake = found.wake()
    assert wake is not None
    assert wake >= 0.025


def test_backoff_is_never_longer_than_the_longest_wait_and_no_reason_to_give_up():
    nows = [n * 0.7 for n in range(1000)]
    assert any((now + 300.0) - now > 300.0 for now in nows)
    for now in nows:
        found, queue = one(longest_wait=300.0, failures=1 << 20)
        queue.failures = 15
        ask(found, now, failed=True)
        assert found.backoff(queue) == 300.0
        assert found.gives_up(queue, now) == 0.0


def test_backoff_of_endless_failures_is_a_number():
    found, queue = one(longest_wait=300.0)
    queue.failures = 32_767
    assert found.backoff(queue) == 300.0
    assert found.gives_up(queue, 0.0) < 1e9


def test_a_queue_is_given_up_after_so_many_failures_in_a_row():
    found, queue = one(failures=3, given_up=1000.0)
    for failures in (1, 2):
        ask(found, queue.ready_at if queue.requests else 0.0, failed=True)
        assert queue.failures == failures
        assert found.gives_up(queue, queue.last) == 0.0
    ask(found, queue.ready_at, failed=True)
    assert 500 <= found.gives_up(queue, queue.last) < 1500


def test_each_failure_more_doubles_the_time_a_queue_is_given_up_for():
    found, queue = one(failures=3, given_up=1000.0)
    for more in range(5):
        queue.failures = 3 + more
        assert 0.5 <= found.gives_up(queue, 0.0) / (1000.0 * 2**more) < 1.5


def test_a_success_ends_the_row():
    found, queue = one(failures=3)
    for _ in range(2):
        ask(found, max(queue.ready_at, 0.0), failed=True)
    ask(found, queue.ready_at)
    ask(found, queue.ready_at, failed=True)
    assert queue.failures == 1
    assert found.gives_up(queue, queue.last) == 0.0


@pytest.mark.parametrize(("wait", "left"), [(300.0, 0.0), (301.0, 301.0), (86_400.0, 86_400.0)])
def test_a_queue_that_has_to_wait_too_long_is_given_up(wait: float, left: float):
    found, queue = one()
    ask(found, 7.0, wait=wait)
    assert found.gives_up(queue, 7.0) == left


def test_a_delay_that_is_too_long_is_a_wait_too():
    found, queue = one()
    queue.delay = 1000.0
    ask(found, 0.0)
    assert found.gives_up(queue, 0.0) == 1000.0
    assert found.gives_up(queue, 900.0) == 0.0
