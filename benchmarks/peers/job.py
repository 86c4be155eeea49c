"""What a peer is told, and what it tells. Runs without the project's own packages."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Job:
    scheme: str
    port: int
    connections: int
    hosts: list[list[str]]  # of each its name and the paths to ask for, one after the other
    ca: str = ""
    dns: int = 0
    pages: int = 0
    bytes: int = 0
    failed: int = 0
    _began: tuple[float, float] = field(default=(0.0, 0.0))

    def begin(self) -> Iterator[tuple[str, list[str]]]:
        """The hosts with their URLs; time runs from here."""
        self._began = time.perf_counter(), time.process_time()
        for name, paths in self.hosts:
            yield name, [f"{self.scheme}://{name}:{self.port}{path}" for path in paths]

    def got(self, size: int) -> None:
        self.pages += 1
        self.bytes += size

    def end(self) -> None:
        wall, cpu = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        told = {"pages": self.pages, "seconds": wall, "cpu": cpu, "bytes": self.bytes, "failed": self.failed}
        print(json.dumps(told), flush=True)


def read() -> Job:
    given: dict[str, Any] = json.load(sys.stdin)
    return Job(**given)
