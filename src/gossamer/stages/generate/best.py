"""Which places hold the best: the highest order keys, perhaps with a limit to each group. numpy only."""

from __future__ import annotations

import numpy as np


def best(order_key: np.ndarray, top: int) -> np.ndarray:
    """Places of the `top` highest keys, highest first."""
    some = np.arange(len(order_key))
    if top < len(order_key):
        some = np.argpartition(order_key, len(order_key) - top)[len(order_key) - top :]
    return some[np.argsort(order_key[some], kind="stable")[::-1]]


def best_within(
    order_key: np.ndarray, groups: np.ndarray, limits: np.ndarray, top: int
) -> tuple[np.ndarray, np.ndarray]:
    """Places of the `top` highest keys with at most `limits` of a group, highest first; and those over their limit."""
    looked = min(len(order_key), max(2 * top, 1024))
    while True:
        some = best(order_key, looked)
        fits = nth_of_group(groups[some]) < limits[some]
        if fits.sum() >= top or looked == len(order_key):
            return some[fits][:top], some[~fits]
        looked = min(len(order_key), looked * 4)


def nth_of_group(groups: np.ndarray) -> np.ndarray:
    """For each place, how many places before it have the same group."""
    order = np.argsort(groups, kind="stable")
    ranked = groups[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]])) if len(ranked) else np.empty(0, int)
    lengths = np.diff(np.append(starts, len(ranked)))
    nth = np.empty(len(groups), np.int64)
    nth[order] = np.arange(len(groups)) - np.repeat(starts, lengths)
    return nth


def order_key_of(score: np.ndarray, tie: np.ndarray) -> np.ndarray:
    """One number to order by: the score (exact in 32 bits), then the random order of equals."""
    bits = score.astype(np.float32).view(np.uint32).astype(np.uint64)
    return (bits << np.uint64(32)) | tie.astype(np.uint64)


def tie_of(url_fps: np.ndarray, seed: int) -> np.ndarray:
    """A random but reproducible 32-bit number per URL and batch (the finaliser of splitmix64)."""
    x = url_fps.view(np.uint64) ^ np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) >> np.uint64(32)
