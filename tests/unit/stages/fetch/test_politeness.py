"""Turns of queues: delays, connections, order, and what leaves a queue out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from gossamer.stages.fetch.politeness import SKIPS, Limits, Politeness, Queue


def politeness(*sizes: int, **limits: float) -> Politeness:
    """Queues q0, q1, … whose items are numbered through, all entered at 0."""
    found, first = Politeness(Limits(**{"delay": 1.0} | limits)), 0  # type: ignore[arg-type]
    for n, size in enumerate(sizes):
        found.enter(found.add(f"q{n}", np.arange(first, first + size, dtype=np.int32)), 0.0)
        first += size
    return found


def taken(found: Politeness, now: float) -> tuple[str, object] | None:
    turn = found.take(now)
    return None if turn is None else (turn[0].key, turn[1])


def asked(found: Politeness, now: float, address: str | None = None) -> Queue:
    """Take a turn and begin its request."""
    turn = found.take(now)
    assert turn is not None
    assert found.begin(turn[0], address, now)
    return turn[0]


def test_queues_take_turns_and_items_come_in_order():
    found = politeness(2, 2, 1, delay=0.0)
    order = []
    while (turn := found.take(0.0)) is not None:
        found.begin(turn[0], None, 0.0)
        found.finish(turn[0], None, 0.0)
        order.append((turn[0].key, turn[1]))
    assert order == [("q0", 0), ("q1", 2), ("q2", 4), ("q0", 1), ("q1", 3)]
    assert found.left == 0
    assert found.wake() is None


def test_with_one_connection_the_delay_runs_from_the_end_of_a_request():
    found = politeness(3)
    queue = asked(found, 0.0)
    assert found.take(100.0) is None  # the only connection is busy
    assert found.wake() is None
    found.finish(queue, None, 100.0)
    assert found.take(100.9) is None
    assert found.wake() == 101.0
    assert asked(found, 101.0) is queue


def test_with_several_connections_the_delay_runs_from_the_start():
    found = politeness(5, connections=2)
    queue = asked(found, 0.0)
    assert found.take(0.9) is None
    assert asked(found, 1.0) is queue
    assert found.take(5.0) is None  # both are busy
    found.finish(queue, None, 5.0)
    assert asked(found, 5.0) is queue  # long after the start of the last
    found.finish(queue, None, 5.1)
    assert found.take(5.9) is None
    assert found.wake() == 6.0


def test_a_request_whose_name_was_looked_up_while_another_began_waits_for_its_delay():
    found = politeness(5, connections=3)
    queue = asked(found, 0.0)
    first, second = found.take(1.0), None
    assert first is not None
    found.finish(queue, None, 1.0)  # lets the queue take part again, though nothing has begun since
    second = found.take(1.0)
    assert second is not None
    assert found.begin(queue, None, 1.5)
    assert not found.begin(queue, None, 1.5)
    assert found.hold(queue, second[1], "", 1.5)
    assert found.take(2.4) is None
    assert taken(found, 2.5) == ("q0", second[1])


def test_a_wait_that_a_server_asked_for_meanwhile_holds_for_those_on_their_way():
    found = politeness(3, connections=2, delay=0.0)
    queue = asked(found, 0.0)
    turn = found.take(0.0)
    assert turn is not None
    found.finish(queue, None, 1.0, wait=30.0)
    assert not found.begin(queue, None, 2.0)
    found.hold(queue, turn[1], "", 2.0)
    assert found.wake() == 31.0


def test_a_queue_has_its_own_delay_and_connections():
    found = Politeness(Limits(delay=5.0))
    queue = found.add("own", range(3), delay=0.5, connections=2)
    found.enter(queue, 0.0)
    asked(found, 0.0)
    assert found.wake() == 0.5
    assert found.add("common", range(1)).delay == 5.0
    assert found.add("zero", range(1), delay=0.0).delay == 0.0


def test_a_delay_that_grows_holds_for_a_queue_that_is_in_line():
    found = politeness(2)
    queue = asked(found, 0.0)
    found.finish(queue, None, 0.0)
    queue.delay = 10.0  # robots.txt of another origin says so
    assert found.take(1.0) is None
    assert found.wake() == 10.0
    assert asked(found, 10.0) is queue


def test_a_small_host_is_not_behind_a_large_one():
    found = politeness(100_000, *[10] * 100, delay=0.0)
    ended: dict[str, int] = {}
    for turn in range(2_000):
        queue = asked(found, 0.0)
        found.finish(queue, None, 0.0)
        if not len(queue):
            ended[queue.key] = turn
    assert len(ended) == 100
    assert max(ended.values()) < 1_100


def test_a_large_host_that_needs_no_requests_lets_others_have_their_turn():
    found = politeness(10_000, 1)
    skipped = 0
    while (turn := found.take(0.0)) is not None and turn[0].key == "q0":
        found.skip(turn[0], 0.0)
        skipped += 1
    assert turn == (found.queues["q1"], 10_000)
    assert skipped == SKIPS


def test_what_is_skipped_costs_no_delay_and_no_turn():
    found = politeness(3, 1)
    assert taken(found, 0.0) == ("q0", 0)
    found.skip(found.queues["q0"], 0.0)
    assert taken(found, 0.0) == ("q0", 1)


def test_a_skip_beside_an_exclusive_request_lets_nobody_in():
    found = politeness(5, connections=3, delay=0.0)
    queue = found.queues["q0"]
    asked(found, 0.0)
    assert found.take(0.0) is not None  # its name is looked up
    assert found.take(0.0) is None  # one at a time between `take` and `begin`, unless another ends
    found.finish(queue, None, 0.0)
    assert found.take(0.0) is not None
    assert found.begin(queue, None, 0.0, exclusive=True)
    found.skip(queue, 0.0)
    assert found.take(1.0) is None
    found.finish(queue, None, 2.0)
    assert found.take(2.0) is not None


def test_a_request_on_its_way_waits_for_one_that_must_be_alone():
    found = politeness(5, connections=3, delay=0.0)
    queue = asked(found, 0.0)
    waiting = found.take(0.0)
    assert waiting is not None
    found.finish(queue, None, 0.0)
    assert found.take(0.0) is not None
    assert found.begin(queue, None, 0.0, exclusive=True)
    assert not found.begin(queue, None, 0.0)
    assert found.hold(*waiting, "", 0.0)
    assert found.take(5.0) is None
    found.finish(queue, None, 5.0)
    assert found.take(5.0) == waiting


def test_an_exclusive_request_is_alone():
    found = politeness(3, connections=3, delay=0.0)
    turn = found.take(0.0)
    assert turn is not None
    assert found.begin(turn[0], None, 0.0, exclusive=True)
    assert found.take(9.0) is None
    found.finish(turn[0], None, 9.0)
    assert asked(found, 9.0) is turn[0]
    assert asked(found, 9.0) is turn[0]


def test_a_queue_that_stays_out_comes_back_with_resume():
    found = politeness(3)
    queue = asked(found, 0.0)
    found.finish(queue, None, 0.0, stay_out=True)
    found.enter(queue, 5.0)
    assert found.take(5.0) is None
    assert found.wake() is None
    found.resume(queue, 6.0)
    assert asked(found, 6.0) is queue


def test_what_is_urgent_has_its_turn_in_a_queue_that_stays_out():
    """Two hosts whose robots.txt each lead to the other: both stay out, and each has the other's request."""
    found = politeness(2, 2)
    first, second = asked(found, 0.0), asked(found, 0.0)
    for queue, other in ((first, second), (second, first)):
        found.finish(queue, None, 1.0, stay_out=True)
        found.push(other, f"robots.txt of {queue.key}", 1.0, urgent=True)
    turns = [taken(found, 2.0), taken(found, 2.0)]
    assert sorted(map(str, turns)) == ["('q0', 'robots.txt of q1')", "('q1', 'robots.txt of q0')"]
    for queue in (first, second):
        assert found.begin(queue, None, 2.0, exclusive=True)
        found.finish(queue, None, 2.0)
    assert found.take(9.0) is None  # what is not urgent still waits
    found.resume(first, 9.0)
    assert taken(found, 9.0) == ("q0", 1)
    assert found.take(9.0) is None


def test_what_was_urgent_still_is_when_it_comes_back_from_a_full_address():
    found = politeness(1, 2, delay=0.0, address_connections=1)
    other, queue = asked(found, 0.0, "192.0.2.1"), found.queues["q1"]
    assert taken(found, 0.0) == ("q1", 1)
    found.put_back(queue, 1)
    queue.out = True
    found.push(queue, "urgent", 0.0, urgent=True)
    assert taken(found, 0.0) == ("q1", "urgent")
    assert not found.begin(queue, "192.0.2.1", 0.0)
    assert found.hold(queue, "urgent", "192.0.2.1", 0.0)
    assert found.take(0.0) is None
    found.finish(other, "192.0.2.1", 1.0)
    assert taken(found, 1.0) == ("q1", "urgent")
    assert found.begin(queue, "192.0.2.1", 1.0)
    found.finish(queue, "192.0.2.1", 1.0)
    assert found.take(1.0) is None


def test_pushed_items_come_first_and_are_counted():
    found = politeness(1, delay=0.0)
    found.push(found.queues["q0"], "redirect", 0.0)
    assert found.left == 2
    queue = found.queues["q0"]
    assert [found.take(0.0), found.left] == [(queue, "redirect"), 1]
    found.skip(queue, 0.0)
    assert found.take(0.0) == (queue, 0)


def test_a_push_wakes_an_empty_queue():
    found = politeness()
    queue = found.add("new", ())
    found.enter(queue, 0.0)
    assert found.wake() is None
    found.push(queue, "target", 0.0)
    assert found.wake() == float("-inf")
    assert found.take(0.0) == (queue, "target")


def test_what_is_put_back_stays_until_its_queue_is_entered():
    found = politeness(2)
    turn = found.take(0.0)
    assert turn is not None
    found.put_back(*turn)
    assert found.left == 2
    assert found.take(9.0) is None
    found.enter(turn[0], 9.0)
    assert found.take(9.0) == turn


def test_close_returns_what_is_left_and_nothing_more_is_taken():
    found = politeness(4, 1)
    found.push(found.queues["q0"], "redirect", 0.0)
    assert taken(found, 0.0) == ("q0", "redirect")
    queue = found.queues["q0"]
    assert found.close(queue) == [0, 1, 2, 3]
    assert found.close(queue) == []
    assert found.left == 1
    found.finish(queue, None, 1.0)
    assert taken(found, 9.0) == ("q1", 4)
    assert found.take(9.0) is None


@pytest.mark.parametrize("closed", [True, False])
def test_an_item_held_after_its_queue_was_closed_is_its_callers(closed: bool):
    found = politeness(1, 3, address_connections=1)
    asked(found, 0.0, "192.0.2.1")
    turn = found.take(0.0)
    assert turn is not None
    if closed:
        assert len(found.close(turn[0])) == 2
    assert not found.begin(turn[0], "192.0.2.1", 0.0)
    assert found.hold(*turn, "192.0.2.1", 0.0) is not closed
    assert found.left == (0 if closed else 3)
    assert turn[0].running == 0


def test_active_counts_queues_with_something_to_do():
    found = politeness(1, 2, 1)
    queue = asked(found, 0.0)
    assert found.active() == 3
    found.close(found.queues["q2"])
    assert found.active() == 2
    found.finish(queue, None, 0.0)
    assert found.active() == 1


def test_every_item_is_taken_once():
    found = politeness(*range(1, 60), delay=0.0)
    items: Counter[int] = Counter()
    while (turn := found.take(0.0)) is not None:
        items[turn[1]] += 1
        found.begin(turn[0], None, 0.0)
        found.finish(turn[0], None, 0.0)
    assert sorted(items.elements()) == list(range(sum(range(1, 60))))
