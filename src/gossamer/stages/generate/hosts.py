"""Hosts and limits inside a worker: what the limits of a URL go by, how many of it fit, which hosts are left alone.

A limit belongs to the whole group (host, domain or address): the slowest host known in it sets its pace. So it does not
depend on how the crawldb is cut into shards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.storage.files import Files
from gossamer.storage.parquet import FileEntry
from gossamer.tables.fold import read_columns
from gossamer.urls import keys

HOST_FACTS = pa.schema(
    [
        ("host_fp", pa.int64()),
        ("domain_fp", pa.int64()),
        ("delay_ms", pa.int64()),
        ("latency_ms", pa.int64()),
        ("away", pa.bool_()),
        ("address", pa.string()),
    ]
)
NO_LIMIT = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Limits:
    """How many of what, for each batch."""

    top: int
    per: str  # host, domain or ip
    max_per: int = 0  # 0: any number
    seconds: float = 0.0  # the round must end in so long; 0: whenever
    delay_ms: int = 1000
    batches: int = 1

    @property
    def limited(self) -> bool:
        """Whether a group has a limit at all."""
        return bool(self.max_per or self.seconds)

    @property
    def needed(self) -> int:
        """How many of the best within the limits of all batches contain every URL that any batch may take.

        Before a URL is taken, earlier batches took at most (batches - 1) · top better ones, and what remains of the
        better ones fills less than one batch within the limit of one, thus less than `batches` within that of all.
        """
        return self.top * (2 * self.batches - 1 if self.limited else self.batches)


@dataclass(frozen=True)
class HostFacts:
    """For each row of a group of shards its host, and what is known of that."""

    limits: Limits
    codes: np.ndarray  # which host, by row
    names: list[str]  # by host; empty: none
    groups: np.ndarray  # by host: what limits go by (0: the row's domain)
    addresses: list[str | None]
    away: np.ndarray
    paced: np.ndarray  # groups whose pace is known, in order
    paces: np.ndarray  # of them: milliseconds from one request to the next

    @classmethod
    def of(cls, limits: Limits, files: Files, entries: tuple[FileEntry, ...], column: pa.ChunkedArray) -> HostFacts:
        """Facts of the hosts in a column, from the rows `HOST_FACTS` in some files."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        encoded = column.unify_dictionaries().combine_chunks()
        names = [name or "" for name in encoded.dictionary.to_pylist()]
        codes = encoded.indices
        if codes.null_count:
            codes, names = codes.fill_null(len(names)), [*names, ""]
        fps = keys.fingerprints(pa.array(names, pa.string())).to_numpy(zero_copy_only=False)
        known = read_columns(files, entries, HOST_FACTS.names, HOST_FACTS)
        at = pc.index_in(pa.array(fps), known.column("host_fp").combine_chunks())
        addresses = known.column("address").take(at).to_pylist()
        away = known.column("away").take(at).fill_null(False).to_numpy()
        own = fps if limits.per == "host" else np.zeros_like(fps)
        own = _address_fps(addresses) if limits.per == "ip" else own
        paced, paces = _paces(limits, known)
        return cls(limits, codes.to_numpy(zero_copy_only=False), names, own, addresses, away, paced, paces)

    def groups_of(self, at: np.ndarray, domains: np.ndarray) -> np.ndarray:
        """What the limits of some rows go by: their host, address or (where that is unknown) registered domain."""
        groups = self.groups[self.codes[at]]
        return np.asarray(np.where(groups == 0, domains, groups))

    def limits_of(self, groups: np.ndarray) -> np.ndarray:
        """How many URLs of each group fit into a batch: the cap, and what can be fetched in time at its pace."""
        most = np.full(len(groups), min(self.limits.max_per or NO_LIMIT, NO_LIMIT), np.int64)
        if not self.limits.seconds:
            return most
        pace = np.full(len(groups), max(self.limits.delay_ms, 1), np.int64)
        if len(self.paced):
            at = np.minimum(np.searchsorted(self.paced, groups), len(self.paced) - 1)
            pace = np.where(self.paced[at] == groups, self.paces[at], pace)
        return np.asarray(np.minimum(most, min(int(self.limits.seconds * 1000), NO_LIMIT) // pace))

    def limits_of_all(self, groups: np.ndarray) -> np.ndarray:
        """The same for all batches together."""
        batches = self.limits.batches
        return np.asarray(np.minimum(self.limits_of(groups), NO_LIMIT // batches) * batches)


def _address_fps(addresses: list[str | None]) -> np.ndarray:
    return np.array([keys.fingerprint(address) if address else 0 for address in addresses], np.int64)


def _paces(limits: Limits, known: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Groups of known hosts in order, and the pace of the slowest host of each."""
    groups = known.column("host_fp").to_numpy()
    if limits.per != "host":
        groups = known.column("domain_fp").fill_null(0).to_numpy()
    if limits.per == "ip":
        own = _address_fps(known.column("address").to_pylist())
        groups = np.where(own == 0, groups, own)
    delay = np.maximum(known.column("delay_ms").fill_null(limits.delay_ms).to_numpy(), 0)
    pace = np.maximum(delay + np.maximum(known.column("latency_ms").fill_null(0).to_numpy(), 0), 1)
    order = np.lexsort((-pace, groups))
    paced, first = np.unique(groups[order], return_index=True)
    return paced, pace[order][first]
