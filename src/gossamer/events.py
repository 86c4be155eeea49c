"""What a run tells while it works: plain dictionaries, drawn on a terminal, printed as JSON lines, or dropped."""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any, Protocol, TextIO

Event = dict[str, Any]
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """Text in which control characters and direction marks are spelled out, so a terminal does not obey them."""
    return CONTROL.sub(lambda found: _spelled(ord(found[0])), text)


def _spelled(code: int) -> str:
    """A character as its code; bytes that were no UTF-8 (kept as lone surrogates) as those bytes."""
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class Reporter(Protocol):
    """Someone who listens to a run."""

    def tell(self, event: Event) -> None:
        """Take one event; `event["event"]` says what happened."""


class Silent:
    """Listens to nothing."""

    def tell(self, event: Event) -> None:
        """Nothing."""


class JsonLines:
    """One JSON object per event, flushed at once, for programs; when the program leaves, the run goes on."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self._heard = True

    def tell(self, event: Event) -> None:
        if not self._heard:
            return
        try:
            self.out.write(json.dumps(event) + "\n")
            self.out.flush()
        except BrokenPipeError:
            self._heard = False


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
            self._show(_progress(event))
        elif kind in ("done", "failed", "planned"):
            self._stop()
            if kind == "done":
                self._console.print(_closing(event), soft_wrap=True)
        elif kind == "note":
            self._console.print(f"  {harmless(event['text'])}", markup=False, soft_wrap=True)

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


def _progress(event: Event) -> str:
    """How far a run is, in one line."""
    line = f"{event['stage']}: {event['phase']} {event['done']:,}/{event['total']:,}"
    if "pages_per_s" in event:
        line += f" · {event['pages_per_s']:,.0f} pages/s · {event['mb_per_s']:.1f} MB/s · {event['hosts']:,} hosts"
        line += f" · {sum(event['errors'].values()):,} errors" if event["errors"] else ""
        worst = sorted(event["errors"].items(), key=lambda item: -item[1])[:3]
        line += f" ({', '.join(f'{name} {number:,}' for name, number in worst)})" if worst else ""
        line += f" · {_duration(event['eta_s'])} left" if event["eta_s"] is not None else ""
    return line


def _duration(seconds: float) -> str:
    """Seconds as people say them."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _closing(event: Event) -> str:
    """The line that sums up a run, in rich's markup."""
    from rich.markup import escape

    counts = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in event["counters"].items())
    drops = ", ".join(f"{escape(harmless(reason))} {value:,}" for reason, value in event["drops"].items())
    dropped = f" [yellow](dropped: {drops})[/]" if drops else ""
    took = f"{event['seconds']:.1f} s · snapshot {event['snapshot']}"
    return f"[green]✓[/] {event['stage']}: {counts or 'nothing to do'}{dropped} · {took}"


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
