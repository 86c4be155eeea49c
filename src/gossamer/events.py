"""What a run tells while it works: plain dictionaries, drawn on a terminal, printed as JSON lines, or dropped."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Protocol, TextIO

Event = dict[str, Any]


class Reporter(Protocol):
    """Someone who listens to a run."""

    def tell(self, event: Event) -> None:
        """Take one event; `event["event"]` says what happened."""


class Silent:
    """Listens to nothing."""

    def tell(self, event: Event) -> None:
        """Nothing."""


class JsonLines:
    """One JSON object per event, flushed at once, for programs."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out or sys.stdout

    def tell(self, event: Event) -> None:
        self.out.write(json.dumps(event, ensure_ascii=False) + "\n")
        self.out.flush()


class Terminal:
    """A spinner with the phase and its time on stderr, and one closing line per run."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._status: Any = None

    def tell(self, event: Event) -> None:
        kind = event["event"]
        if kind == "phase":
            self._show(f"{event['stage']}: {event['phase']}")
        elif kind == "progress":
            self._show(f"{event['stage']}: {event['phase']} {event['done']:,}/{event['total']:,}")
        elif kind in ("done", "failed"):
            self._stop()
            if kind == "done":
                counts = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in event["counters"].items())
                drops = ", ".join(f"{reason} {value:,}" for reason, value in event["drops"].items())
                self._console.print(
                    f"[green]✓[/] {event['stage']}: {counts or 'nothing to do'}"
                    + (f" [yellow](dropped: {drops})[/]" if drops else "")
                    + f" · {event['seconds']:.1f} s · snapshot {event['snapshot']}",
                    soft_wrap=True,
                )
        elif kind == "note":
            self._console.print(f"  {event['text']}", markup=False, soft_wrap=True)

    def _show(self, text: str) -> None:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        if self._status is None and self._console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            self._status = Progress(*columns, console=self._console, transient=True)
            self._status.start()
            self._status.add_task(text, total=None)
        elif self._status is not None:
            self._status.update(self._status.task_ids[0], description=text)

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


class Stopwatch:
    """Seconds per phase, for the run record."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._begun = time.monotonic()
        self._phase: str | None = None
        self._since = self._begun

    def phase(self, name: str | None) -> None:
        """End the current phase and begin another."""
        now = time.monotonic()
        if self._phase is not None:
            self.phases[self._phase] = round(self.phases.get(self._phase, 0.0) + now - self._since, 3)
        self._phase, self._since = name, now

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._begun
