"""Queues that share an address: its limits, who waits there, and who goes on when."""

from __future__ import annotations

from gossamer.stages.fetch.politeness import Limits, Politeness, Queue

HERE, THERE = "192.0.2.1", "192.0.2.2"


def sharing(*sizes: int, **limits: float) -> Politeness:
    found, first = Politeness(Limits(**{"delay": 0.0} | limits)), 0  # type: ignore[arg-type]
    for n, size in enumerate(sizes):
        found.enter(found.add(f"q{n}", range(first, first + size)), 0.0)
        first += size
    return found


def attempt(found: Politeness, now: float, address: str = HERE) -> tuple[Queue, bool] | None:
    """Take a turn and try to begin it; what may not is held."""
    turn = found.take(now)
    if turn is None:
        return None
    began = found.begin(turn[0], address, now)
    if not began:
        assert found.hold(*turn, address, now)
    return turn[0], began


def begun(found: Politeness, now: float, address: str = HERE) -> list[str]:
    """Give turns until nobody is in line; who began."""
    keys = []
    while (turn := attempt(found, now, address)) is not None:
        keys += [turn[0].key] * turn[1]
    return keys


def test_an_address_has_so_many_connections_and_lets_in_who_waited_longest():
    found = sharing(2, 2, 2, 2, address_connections=2)
    assert begun(found, 0.0) == ["q0", "q1"]
    assert found.wake() is None  # q2 and q3 are held
    found.finish(found.queues["q1"], HERE, 1.0)
    assert begun(found, 1.0) == ["q2"]
    found.finish(found.queues["q0"], HERE, 2.0)
    found.finish(found.queues["q2"], HERE, 2.0)
    assert begun(found, 2.0) == ["q3", "q1"]


def test_another_address_is_free():
    found = sharing(1, 1, address_connections=1)
    assert attempt(found, 0.0, HERE) == (found.queues["q0"], True)
    assert attempt(found, 0.0, THERE) == (found.queues["q1"], True)


def test_an_address_without_a_known_name_is_not_limited():
    found = sharing(1, 1, address_connections=1)
    for _ in range(2):
        turn = found.take(0.0)
        assert turn is not None
        assert found.begin(turn[0], None, 0.0)


def test_an_address_has_its_delay_from_start_to_start():
    found = sharing(1, 1, 1, address_delay=2.0)
    assert begun(found, 0.0) == ["q0"]
    assert found.wake() == 2.0
    assert len(found._heap) == 1  # one alarm for all that are held
    assert begun(found, 1.9) == []
    assert begun(found, 2.0) == ["q1"]
    assert found.wake() == 4.0
    assert begun(found, 7.0) == ["q2"]


def test_a_newcomer_does_not_pass_those_who_wait():
    found = sharing(2, 1, address_connections=1)
    begun(found, 0.0)
    assert found.addresses[HERE].held
    found.finish(found.queues["q0"], HERE, 1.0)  # invites q1
    late = found.add("late", [9])
    late_turn = (late, 9)
    late.running += 1
    late.rows = ()
    assert not found.begin(late, HERE, 1.0)
    assert found.hold(*late_turn, HERE, 1.0)
    assert begun(found, 1.0) == ["q1"]


def test_a_newcomer_whose_name_was_found_just_now_does_not_pass_those_who_wait_for_a_delay():
    found = sharing(1, 1, address_delay=2.0)
    late = found.add("late", [9])
    found.enter(late, 0.0)
    assert attempt(found, 0.0) == (found.queues["q0"], True)
    assert attempt(found, 0.0) == (found.queues["q1"], False)
    turn = found.take(0.0)
    assert turn == (late, 9)
    assert not found.begin(late, HERE, 2.0)  # before anybody's turn comes
    found.hold(late, 9, HERE, 2.0)
    assert begun(found, 2.0) == ["q1"]
    assert begun(found, 4.0) == ["late"]


def test_a_wide_queue_that_was_invited_and_closed_lets_the_next_in():
    found = Politeness(Limits(delay=0.0, address_connections=1))
    other, wide, last = found.add("other", [0]), found.add("wide", [1, 2, 3], connections=2), found.add("last", [4])
    for queue in (other, wide, last):
        found.enter(queue, 0.0)
    assert attempt(found, 0.0) == (other, True)
    assert attempt(found, 0.0, THERE) == (wide, True)
    assert attempt(found, 0.0) == (last, False)
    assert attempt(found, 0.0) == (wide, False)
    found.finish(other, HERE, 1.0)
    assert begun(found, 1.0) == ["last"]
    found.finish(last, HERE, 2.0)  # invites the wide one, which still has a request elsewhere
    found.close(wide)
    found.enter(found.add("newcomer", [5]), 2.0)
    assert begun(found, 2.0) == ["newcomer"]


def test_one_that_was_invited_and_is_closed_lets_the_next_in():
    found = sharing(1, 2, 1, address_connections=1)
    assert begun(found, 0.0) == ["q0"]
    found.finish(found.queues["q0"], HERE, 1.0)
    assert found.close(found.queues["q1"]) == [1, 2]
    assert begun(found, 1.0) == ["q2"]


def test_one_that_was_invited_and_needs_no_request_lets_the_next_in():
    found = sharing(1, 1, 1, address_connections=1)
    begun(found, 0.0)
    found.finish(found.queues["q0"], HERE, 1.0)
    turn = found.take(1.0)
    assert turn is not None
    assert turn[0].key == "q1"
    found.skip(turn[0], 1.0)
    assert begun(found, 1.0) == ["q2"]


def test_one_that_was_invited_and_is_put_back_lets_the_next_in():
    found = sharing(1, 1, 1, address_connections=1)
    begun(found, 0.0)
    found.finish(found.queues["q0"], HERE, 1.0)
    turn = found.take(1.0)
    assert turn is not None
    found.put_back(*turn)
    assert begun(found, 1.0) == ["q2"]


def test_one_that_was_invited_and_goes_elsewhere_lets_the_next_in():
    found = sharing(1, 1, 1, address_connections=1)
    begun(found, 0.0)
    found.finish(found.queues["q0"], HERE, 1.0)
    assert attempt(found, 1.0, THERE) == (found.queues["q1"], True)  # its name has another address now
    assert begun(found, 1.0) == ["q2"]


def test_one_that_was_invited_and_whose_name_is_gone_lets_the_next_in():
    found = sharing(1, 1, 1, address_connections=1)
    begun(found, 0.0)
    found.finish(found.queues["q0"], HERE, 1.0)
    turn = found.take(1.0)
    assert turn is not None
    found.finish(turn[0], None, 1.0, failed=True)
    assert begun(found, 1.0) == ["q2"]


def test_one_whose_pace_has_changed_while_it_was_held_lets_the_next_in():
    found = sharing(1, 1, 1, address_connections=1)
    begun(found, 0.0)
    found.queues["q1"].not_before = 50.0
    found.finish(found.queues["q0"], HERE, 1.0)
    assert begun(found, 1.0) == ["q2"]
    found.finish(found.queues["q2"], HERE, 2.0)
    assert found.wake() == 50.0
    assert begun(found, 50.0) == ["q1"]


def test_a_queue_is_held_only_once():
    """It waits in line with one connection when the other finds the address full."""
    found = Politeness(Limits(delay=0.0, connections=3, address_connections=1))
    queue = found.add("wide", range(9), connections=3)
    found.enter(queue, 0.0)
    assert attempt(found, 0.0) == (queue, True)
    waiting = found.take(0.0)
    assert waiting is not None
    found.finish(queue, HERE, 1.0)  # gets in line again
    assert found.begin(queue, HERE, 1.0)
    second = found.take(1.0)
    assert second is not None
    assert not found.begin(queue, HERE, 1.0)
    found.hold(*second, HERE, 1.0)
    assert attempt(found, 1.0) is None
    found.finish(queue, HERE, 2.0)
    assert begun(found, 2.0) == ["wide"]
    assert queue.running == 1
