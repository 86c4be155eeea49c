"""Which items have which section, tag or author, in closed form.

The assignment repeats after SPAN items, so the n-th item of a section among millions, and how many came before, are each one division: no
index is kept and no item is looked at in vain.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from gossamer.simweb.sites.draw import below, key_of, logarithmic, numbers

SPAN = 64


@lru_cache(maxsize=4096)
def pattern(variant: int, count: int, each: int = 1) -> Pattern:
    """One of 16 patterns of a shape, which sites share: making one takes 300 µs."""
    return Pattern(key_of(0, "pattern", variant % 16, count, each), count, each)


class Pattern:
    """Items → values 0 … count-1, small values often."""

    __slots__ = ("places", "values")

    def __init__(self, key: int, count: int, each: int = 1) -> None:
        drawn = numbers(key, SPAN * (each + 1))
        values: list[tuple[int, ...]] = []
        for place in range(SPAN):
            amount = 1 + below(drawn[place], each)
            chosen = {logarithmic(n, count) for n in drawn[SPAN + place * each : SPAN + place * each + amount]}
            values.append(tuple(sorted(chosen)))
        for value in range(min(count, SPAN)):  # every value occurs
            values[value] = tuple(sorted({value, *values[value][:-1]}))
        self.values = values
        self.places: list[list[int]] = [[] for _ in range(count)]
        for place, chosen_here in enumerate(values):
            for value in chosen_here:
                self.places[value].append(place)

    def of(self, item: int) -> tuple[int, ...]:
        """The values of an item."""
        return self.values[item % SPAN]

    def count(self, value: int, items: int) -> int:
        """How many of the first `items` have `value`."""
        places = self.places[value]
        rounds, rest = divmod(items, SPAN)
        return rounds * len(places) + bisect_left(places, rest)

    def nth(self, value: int, position: int) -> int:
        """The item at `position` among those that have `value`."""
        places = self.places[value]
        rounds, rest = divmod(position, len(places))
        return rounds * SPAN + places[rest]
