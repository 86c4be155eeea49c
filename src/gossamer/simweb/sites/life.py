"""What happens to an item: key + kind → when it is born, edited, moved and deleted. Seconds since 1970, integers only."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from gossamer.simweb.config import Kind
from gossamer.simweb.sites.draw import below, chance, numbers

DAY = 86_400
NEVER = 1 << 40


class Fates(NamedTuple):
    """Shares of items, in a million."""

    edited: int
    moved: int
    deleted: int


class Life(NamedTuple):
    """The times that matter; `pace` is the period of an item that is edited for ever, else 0."""

    born: int
    edits: tuple[int, ...]
    pace: int
    moved: int
    deleted: int

    def version(self, moment: int) -> int:
        """How often it was edited by then."""
        if self.pace:
            return max(0, min(moment, self.deleted) - self.born) // self.pace
        return bisect_right(self.edits, moment)

    def changed(self, moment: int) -> int:
        """When it last changed before or at `moment`."""
        times = [self.born]
        if self.pace:
            times.append(self.born + self.version(moment) * self.pace)
        times += [time for time in (*self.edits, self.moved) if time <= moment]
        return max(times)

    def changes(self, after: int, until: int) -> list[int]:
        """The times in (after, until) at which its page changes, comes or goes."""
        times = [self.born, *self.edits, self.moved, self.deleted]
        if self.pace:
            first = max(1, (after - self.born) // self.pace)
            last = (min(until, self.deleted) - self.born) // self.pace
            times += [self.born + n * self.pace for n in range(first, last + 1)]
        return sorted({time for time in times if after < time < until})


def life(kind: Kind, key: int, born: int, shares: Fates) -> Life:
    """The life of the item `key`."""
    fate = numbers(key ^ 0x6C696665, 6)
    move = end = NEVER
    lot = _lot(key)
    if lot < shares.moved:
        move = born + _lag(fate[0], fate[1], 13)
    elif lot < shares.moved + shares.deleted:
        end = born + _lag(fate[0], fate[1], 14)
    edits: tuple[int, ...] = ()
    pace = 0
    if chance(fate[2], shares.edited):
        if kind.steady:
            pace = (DAY << below(fate[3], 9)) + below(fate[4], DAY)
        else:
            times = {born + _lag(fate[3 + n], fate[2 + n], 11) for n in range(1 + below(fate[5], 3))}
            edits = tuple(time for time in sorted(times) if time < end)
    return Life(born, edits, pace, move, end)


def restless(key: int, shares: Fates) -> bool:
    """Whether the item moves or is deleted some day: a look at it that costs little."""
    return _lot(key) < shares.moved + shares.deleted


def _lot(key: int) -> int:
    return ((key * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 44) * 1_000_000 >> 20


def _lag(number: int, other: int, steps: int) -> int:
    """Between ten minutes and 600·2^steps seconds, each doubling equally likely."""
    size = 600 << below(number, steps)
    return size + below(other, size)
