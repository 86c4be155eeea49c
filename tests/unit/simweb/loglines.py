"""Access logs for tests, line by line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from gossamer.simweb.serving.accesslog import CLOSE, AccessLog, Entry
from gossamer.simweb.serving.judge import Report, Rules, judge

BEGIN = 1_767_225_600.0
HOST = "a.test"


def request(at: float, target: str = "/", *, took: float = 0.1, **other: Any) -> Entry:
    """A request to the host, so many seconds after the beginning."""
    start = BEGIN + at
    page = "robots" if target == "/robots.txt" else "item"
    usual = Entry(
        start, start + took, 1, "127.0.0.1", "127.0.0.1", "http", HOST, "GET", target, 200, 500, page, True, 0, 0, "bot/1"
    )  # fmt: skip
    return usual._replace(**other)


def close(at: float, connection: int = 1) -> Entry:
    return request(at, "-", took=0, connection=connection, method=CLOSE, status=0, page="-")


def robots(at: float = 0, **other: Any) -> Entry:
    return request(at, "/robots.txt", **other)


def broken(report: Report) -> dict[str, int]:
    """The rules that were broken, and how often."""
    return {rule: verdict.violations for rule, verdict in report.verdicts.items() if verdict.violations}


def judged(*entries: Entry, **rules: Any) -> dict[str, int]:
    return broken(judge(sorted(entries), Rules(**rules)))


def written(path: Path, entries: list[Entry]) -> Path:
    """A log with these lines, in this order."""
    file = io.StringIO()
    log = AccessLog(file)
    for entry in entries:
        log.add(entry)
    log.flush()
    path.write_text(file.getvalue(), encoding="utf-8")
    return path
