"""Live progress: what the processes of a fetch write down, summed up and told once a second."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from gossamer.stages.fetch.ledger import Home

if TYPE_CHECKING:
    from gossamer.runner import Run

EVERY = 1.0
SMOOTH = 0.7  # of the rate before, in the rate that is told


class Progress:
    """A thread that looks at the reports of all processes."""

    def __init__(self, run: Run, home: Home, generation: int, total: int) -> None:
        self.run, self.home, self.total = run, home, total
        self._pattern = f"progress-*-g{generation:03d}.json"
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gossamer-progress", daemon=True)
        self._before: tuple[float, int, int] | None = None
        self._rates = [0.0, 0.0]
        self._done_at_first: int | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(EVERY):
            self._tell()
        self._tell()

    def _tell(self) -> None:
        reports = [report for path in sorted(self._folder.glob(self._pattern)) if (report := _read(path))]
        if reports:
            self.run.tell(self.summed(reports, time.monotonic()))

    @property
    def _folder(self) -> Path:
        return Path(self.home.spool.url(self.home.folder))

    def summed(self, reports: list[dict[str, Any]], now: float) -> dict[str, Any]:
        """One event of all reports."""
        counts: Counter[str] = Counter()
        for report in reports:
            counts.update(report["counts"])
        pages, size = counts["pages"], counts["bytes"]
        if self._before is not None and now > self._before[0]:
            seconds = now - self._before[0]
            rates = [(pages - self._before[1]) / seconds, (size - self._before[2]) / seconds]
            self._rates = [SMOOTH * old + (1 - SMOOTH) * new for old, new in zip(self._rates, rates, strict=True)]
        self._before = (now, pages, size)
        queued = sum(report["queued"] + report["running"] for report in reports)
        longest = max((report["longest_s"] for report in reports), default=0.0)
        rate = self._rates[0]
        return {
            "event": "progress",
            "phase": "fetch",
            "done": max(self.total - queued, 0),
            "total": self.total,
            "pages_per_s": round(rate, 1),
            "mb_per_s": round(self._rates[1] / 1e6, 2),
            "hosts": sum(report["hosts"] for report in reports),
            "queued": queued,
            "errors": {
                name.removeprefix("error "): n for name, n in sorted(counts.items()) if name.startswith("error ")
            },
            "eta_s": round(max(queued / rate, longest), 1) if rate > 0.01 else None,
        }


def _read(path: Path) -> dict[str, Any] | None:
    try:
        report: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return report
