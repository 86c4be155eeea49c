"""Bad lines as people read them: `file:line: reason: url`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from gossamer.errors import UsageError
from gossamer.events import harmless
from gossamer.stages.inject.rows import TOLD

if TYPE_CHECKING:
    from gossamer.stages.inject.rows import InjectTask
    from gossamer.storage.files import Files


def first_lines(tasks: Sequence[InjectTask], results: Sequence[dict[str, Any]]) -> list[str]:
    """The first bad lines of all, and how many more there are."""
    found = (
        _spelled(name, before, bad)
        for (name, before), result in zip(_places(tasks, results), results, strict=True)
        for bad in result["told"]
    )
    told = list(islice(found, TOLD))
    total = sum(count for result in results for kind in ("rejected", "filtered") for _, count in result[kind])
    more = f"… and {total - len(told):,} more bad lines; see all of them with --errors FILE"
    return told if total <= len(told) else [*told, more]


def write_all(path: str, tasks: Sequence[InjectTask], results: Sequence[dict[str, Any]], files: Files) -> None:
    """Write every bad line to a file."""
    try:
        with Path(path).open("w", encoding="utf-8") as out:
            for (name, before), result in zip(_places(tasks, results), results, strict=True):
                if result["bad_path"]:
                    out.writelines(f"{_spelled(name, before, bad)}\n" for bad in _rows(files, result["bad_path"]))
    except OSError as error:
        raise UsageError(f"--errors {path}: {error.strerror}; name a file that can be written") from error


def refuse_unwritable(path: str | None) -> None:
    """Raise now, rather than after all the work, if a file cannot be written."""
    if path is None:
        return
    try:
        Path(path).open("a", encoding="utf-8").close()
    except OSError as error:
        raise UsageError(f"--errors {path}: {error.strerror}; name a file that can be written") from error


def _places(tasks: Sequence[InjectTask], results: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    """For each part the name of its list, and how many lines of it come before."""
    seeds, before = None, 0
    for task, result in zip(tasks, results, strict=True):
        if task.part.start == 0 or task.part.seeds != seeds:
            seeds, before = task.part.seeds, 0
        yield task.part.seeds.name, before
        before += result["lines"]


def _spelled(name: str, before: int, bad: dict[str, Any]) -> str:
    return harmless(f"{name}:{before + bad['line']}: {bad['reason']}: {bad['url']}")


def _rows(files: Files, path: str) -> Iterator[dict[str, Any]]:
    with files.open(path) as stream, pq.ParquetFile(stream) as parquet:
        for batch in parquet.iter_batches():
            yield from batch.to_pylist()
