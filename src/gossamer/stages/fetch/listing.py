"""What one process has to fetch: its part of a fetchlist, without what was fetched before it was interrupted.

Rows stay in Arrow and are named by their numbers, so a million URLs take little more than their text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from gossamer.storage.files import Files
from gossamer.storage.parquet import FileEntry
from gossamer.tables.states import HAD_CONTENT
from gossamer.tables.statuses import Outcome

COLUMNS = (
    "domain_fp", "url_fp", "url", "partition", "queue", "position", "status", "modified_at", "etag", "last_modified",
    "payload_digest",
)  # fmt: skip
KEPT = [name for name in COLUMNS if name not in ("url_fp", "domain_fp", "partition", "position")]
BATCH = 32_768  # rows read at a time
REDIRECTS = (Outcome.REDIRECT_PERMANENT, Outcome.REDIRECT_TEMPORARY)


@dataclass(frozen=True)
class Listing:
    """Rows to fetch, in the random order of the list."""

    rows: pa.Table
    urls: pa.Array
    had_content: np.ndarray  # whether a row's page was fetched before
    fps: np.ndarray  # of all URLs of the list, fetched or not, in order
    domains: np.ndarray  # of the list, in order
    partitions: np.ndarray  # of these domains

    def queues(self) -> Iterator[tuple[str, np.ndarray]]:
        """Each queue with the numbers of its rows."""
        if not self.rows.num_rows:
            return
        encoded = self.rows.column("queue").combine_chunks().fill_null("").dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable").astype(np.int32)
        edges = np.flatnonzero(np.diff(codes[order])) + 1
        for rows in np.split(order, edges):
            yield encoded.dictionary[int(codes[rows[0]])].as_py(), rows

    def listed(self, fp: int) -> bool:
        """Whether a URL is in the list."""
        at = int(np.searchsorted(self.fps, fp))
        return at < len(self.fps) and int(self.fps[at]) == fp

    def partition_of(self, domain_fp: int) -> int | None:
        """The partition of a domain that is in the list."""
        at = int(np.searchsorted(self.domains, domain_fp))
        if at < len(self.domains) and int(self.domains[at]) == domain_fp:
            return int(self.partitions[at])
        return None


def read_listing(files: Files, entries: Sequence[FileEntry], partitions: Sequence[int], done: pa.Table) -> Listing:
    """The rows of some partitions that are not `done` yet; read in batches, so that no more than those is ever in memory."""
    known = done.column("url_fp").combine_chunks()
    order = ["partition", "position"] if len(entries) > 1 else []
    parts, listed = [], [np.empty((3, 0), np.int64)]
    for entry in entries:
        with files.open(entry.path) as stream:
            for batch in _batches(stream, partitions):
                listed.append(
                    np.stack([batch.column(name).to_numpy() for name in ("url_fp", "domain_fp", "partition")])
                )
                left = batch.filter(pc.invert(pc.is_in(batch.column("url_fp"), known)))
                parts.append(left.select([*KEPT, *order]))
    fps, domains, numbers = np.concatenate(listed, axis=1)
    del listed
    rows = pa.Table.from_batches(parts, parts[0].schema) if parts else _nothing(files, entries)
    del parts
    if order:
        rows = rows.sort_by([(name, "ascending") for name in order])
    rows = rows.select(KEPT).combine_chunks()
    pa.default_memory_pool().release_unused()
    had = pc.is_in(rows.column("status"), pa.array([int(s) for s in HAD_CONTENT], pa.int8())).to_numpy()
    urls = rows.column("url").chunk(0) if rows.num_rows else pa.array([], pa.string())
    of_list, first = np.unique(domains, return_index=True)
    return Listing(rows, urls, had, np.sort(fps), of_list, numbers[first])


def _batches(stream: Any, partitions: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Rows of some partitions; groups of rows that have none are not read."""
    fragment = ds.ParquetFileFormat(pre_buffer=False).make_fragment(stream)
    wanted = pc.field("partition").isin(list(partitions))
    yield from fragment.scanner(
        columns=list(COLUMNS),
        filter=wanted,
        batch_size=BATCH,
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
    ).to_batches()


def _nothing(files: Files, entries: Sequence[FileEntry]) -> pa.Table:
    with files.open(entries[0].path) as stream:
        return pq.read_schema(stream).empty_table()


def read_done(files: Files, parts: Sequence[str]) -> pa.Table:
    """What published parts say was fetched."""
    names = ["domain_fp", "url_fp", "url", "via", "outcome", "redirect_to"]
    tables = []
    for path in parts:
        with files.open(path) as stream:
            tables.append(pq.read_table(stream, columns=names).replace_schema_metadata(None))
    if tables:
        return pa.concat_tables(tables)
    schema = [("domain_fp", pa.int64()), ("url_fp", pa.int64()), ("url", pa.string()), ("via", pa.string())]
    return pa.schema([*schema, ("outcome", pa.int8()), ("redirect_to", pa.string())]).empty_table()


def unfollowed(done: pa.Table) -> list[tuple[str, tuple[str, ...], int]]:
    """Redirects of an interrupted run whose targets were not fetched: target, the URLs that led to it, and the domain they began in."""
    redirects = done.filter(
        pc.and_(
            pc.is_in(done.column("outcome"), pa.array([int(o) for o in REDIRECTS], pa.int8())),
            done.column("redirect_to").is_valid(),
        )
    )
    known = done.column("url")
    open_ends = redirects.filter(pc.invert(pc.is_in(redirects.column("redirect_to"), known.combine_chunks())))
    if not open_ends.num_rows:
        return []
    via = dict(zip(redirects.column("url").to_pylist(), redirects.column("via").to_pylist(), strict=True))
    found = []
    for url, target, domain in zip(
        *(open_ends.column(n).to_pylist() for n in ("url", "redirect_to", "domain_fp")), strict=True
    ):
        chain = [url]
        while (before := via.get(chain[0])) and before not in chain:
            chain.insert(0, before)
        found.append((target, tuple(chain), domain))
    return sorted(found)
