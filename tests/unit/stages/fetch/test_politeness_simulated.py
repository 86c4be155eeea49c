"""Thousands of random events: limits hold at every request, every item is decided once, and everything drains."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from gossamer.stages.fetch.politeness import Item, Limits, Queue
from tests.unit.stages.fetch.simulated import Simulation, Web

LIMITS = {
    "one connection": Limits(delay=1.0),
    "no delay": Limits(delay=0.0),
    "several connections": Limits(delay=0.2, connections=3),
    "few to an address": Limits(delay=0.5, address_connections=2),
    "one to an address": Limits(delay=0.0, connections=2, address_connections=1),
    "slow addresses": Limits(delay=0.1, address_delay=0.3),
    "slow and narrow addresses": Limits(delay=0.1, connections=2, address_delay=0.05, address_connections=2),
}
WEBS = {
    "plain": Web(),
    "one address": Web(addresses=1),
    "many skipped": Web(skipped=0.7),
    "moving": Web(moving=0.5),
    "closing": Web(closing=0.02, looked_up=0.8),
    "unknown names": Web(unknown=0.5, looked_up=0.9),
    "few slots": Web(slots=3),
}


@pytest.mark.parametrize("web", WEBS)
@pytest.mark.parametrize("limits", LIMITS)
def test_limits_hold_and_everything_drains(limits: str, web: str):
    for seed in range(3):
        random = Random(f"{limits} {web} {seed}")
        queues = [(random.choice((1, 3, 10, 60)), random.choice((0, 0, 1, 4))) for _ in range(40)]
        simulation = Simulation(seed, replace(LIMITS[limits], failures=1 << 30), WEBS[web], queues)
        simulation.run()
        assert len(simulation.fate) == simulation.total
        assert set(simulation.fate.values()) == {1}
        assert all(not queue.running and not len(queue) for queue in simulation.politeness.queues.values())
        for place in simulation.politeness.addresses.values():
            assert (place.running, place.invited, bool(place.held)) == (0, 0, False)


@pytest.mark.parametrize("limits", [Limits(delay=0.0, address_connections=1), Limits(delay=0.0, address_delay=0.1)])
def test_queues_of_a_full_address_have_their_turns_one_after_the_other(limits: Limits):
    calm = Web(addresses=1, skipped=0, looked_up=0, unknown=0, failing=0, asking=0, exclusive=0, slots=1000)
    simulation = Simulation(1, limits, calm, [(20, 1)] * 50)
    simulation.run()
    for end in range(50, 1000, 50):
        turns = Counter(simulation.order[:end])
        assert len(turns) == 50
        assert max(turns.values()) - min(turns.values()) <= 4  # some requests take longer than others


@pytest.mark.parametrize("connections", [0, 4])
def test_an_address_with_many_queues_costs_no_turn_of_each_for_every_request(connections: int):
    """A thousand hosts at one slow address: asking all of them each time would take a million turns."""
    calm = Web(addresses=1, skipped=0, looked_up=0, unknown=0, failing=0, asking=0, exclusive=0, slots=5000)
    simulation = Simulation(
        1, Limits(delay=0.0, address_delay=0.1, address_connections=connections), calm, [(5, 1)] * 1000
    )
    turns, take = 0, simulation.politeness.take

    def counted(now: float) -> tuple[Queue, Item] | None:
        nonlocal turns
        turns += 1
        return take(now)

    simulation.politeness.take = counted  # type: ignore[method-assign]
    simulation.run()
    assert turns < 25_000
