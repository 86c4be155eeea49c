"""Chance without a generator: keys → numbers, by hashing alone.

Everything the simulated web decides comes from here, in integers only, so that equal seeds give equal bytes on every machine and Python:
floats may differ by a last bit between maths libraries, and the stream of `random` between versions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from xxhash import xxh3_64_intdigest, xxh3_128_digest

T = TypeVar("T")


def key_of(seed: int, *parts: int | str) -> int:
    """64 bits that stand for `parts` under `seed`."""
    return xxh3_64_intdigest("\x1f".join(map(str, parts)).encode(), seed)


def numbers(key: int, count: int) -> tuple[int, ...]:
    """`count` independent numbers of 32 bits."""
    data = key.to_bytes(8, "little")
    if count <= 4:
        return _FOUR(xxh3_128_digest(data))[:count]
    blocks = [xxh3_128_digest(data, block) for block in range(count + 3 >> 2)]
    return _unpacker(len(blocks))(b"".join(blocks))[:count]


@cache
def _unpacker(blocks: int) -> Callable[[bytes], tuple[int, ...]]:
    return struct.Struct(f">{4 * blocks}I").unpack


_FOUR = _unpacker(1)


def below(number: int, limit: int) -> int:
    """A number of 32 bits scaled to 0 … limit-1."""
    return number * limit >> 32


def millionths(share: float) -> int:
    """A share as parts in a million."""
    return round(share * 1_000_000)


def chance(number: int, share: int) -> bool:
    """True for `share` of a million of all numbers."""
    return number * 1_000_000 >> 32 < share


def pick(number: int, among: Sequence[T]) -> T:
    """One of `among`, all equally likely."""
    return among[number * len(among) >> 32]


def logarithmic(number: int, limit: int) -> int:
    """0 … limit-1, each size class (1, 2-3, 4-7, …) equally likely: small numbers often, as ranks and distances on the web are."""
    bits = limit.bit_length()
    while True:
        size = 1 << (number * bits >> 32)
        value = size - 1 + (number * 0x9E3779B97F4A7C15 >> 16 & 0xFFFFFFFF) % size
        if value < limit:
            return value
        number = number * 0x2545F4914F6CDD1D + 1 & 0xFFFFFFFF
