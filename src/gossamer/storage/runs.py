"""`runs/<run>.json`: what ran, on which snapshot, at which clock, with which arguments and settings, and what came of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from gossamer.errors import CorruptError
from gossamer.storage.files import Files, Missing

FOLDER = "runs"
RUNNING, DONE, FAILED = "running", "done", "failed"


@dataclass
class RunRecord:
    """One run of a stage, from its first attempt to its end."""

    run: str
    stage: str
    segment: str | None
    arguments: dict[str, Any]
    parent: int
    now: str
    version: str
    settings: dict[str, Any] = field(default_factory=dict)  # those that are not at their default
    rules_version: int | None = None  # of the rule set that decided, where one did
    attempt: int = 1
    state: str = RUNNING
    started: str = ""
    ended: str = ""
    inputs: dict[str, list[str]] = field(default_factory=dict)  # table → folders of the file sets read
    counters: dict[str, int] = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)  # by reason
    phases: dict[str, float] = field(default_factory=dict)  # seconds
    published: int | None = None
    error: str = ""


def path_of(run: str) -> str:
    """Where a run's record lies."""
    return f"{FOLDER}/{run}.json"


def save(files: Files, record: RunRecord) -> None:
    """Store a record over its earlier state."""
    files.replace(path_of(record.run), json.dumps(asdict(record), indent=1).encode())


def load(files: Files, run: str) -> RunRecord | None:
    """The record of a run, if there is one."""
    try:
        data = files.read(path_of(run))
    except Missing:
        return None
    try:
        return RunRecord(**json.loads(data))
    except (ValueError, TypeError) as error:
        raise CorruptError(
            f"{files.url(path_of(run))}: damaged run record ({error}); delete it to forget that run"
        ) from error


def names(files: Files) -> list[str]:
    """All runs, oldest first."""
    found = (path.rsplit("/", 1)[-1] for path, _ in files.list(FOLDER))
    return sorted(name.removesuffix(".json") for name in found if name.endswith(".json"))
