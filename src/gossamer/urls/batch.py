"""What filters see: a column of URLs with what is known about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from gossamer.urls.domains import domains
from gossamer.urls.keys import hosts


@dataclass(frozen=True)
class UrlBatch:
    """URLs (never NULL) at a stage, with their link depth where it is known; hosts and domains are found on first use."""

    urls: pa.Array
    stage: str
    depth: pa.Array | None = None

    @cached_property
    def hosts(self) -> pa.Array:
        """The host of each URL."""
        return hosts(self.urls)

    @cached_property
    def domains(self) -> pa.Array:
        """The registered domain of each URL."""
        return domains(self.hosts)

    def __len__(self) -> int:
        return len(self.urls)

    def part(self, start: int, length: int) -> UrlBatch:
        """Some of the URLs."""
        depth = None if self.depth is None else self.depth.slice(start, length)
        return UrlBatch(self.urls.slice(start, length), self.stage, depth)
