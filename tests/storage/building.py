"""Small crawls for tests: write a file set, publish it, and look whether everything that is named is there."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.storage import snapshots
from gossamer.storage.files import Files
from gossamer.storage.parquet import Target, write_part
from gossamer.storage.snapshots import Change, FileSet, Snapshot

AT = "2026-01-01T00:00:00.000Z"
SCHEMA = pa.schema([pa.field("url_fp", pa.int64(), nullable=False), pa.field("url", pa.string())])
SOURCE = Path(__file__).parents[2] / "src"


def rows(first: int = 0, count: int = 3) -> pa.RecordBatch:
    keys = range(first, first + count)
    return pa.RecordBatch.from_pylist([{"url_fp": k, "url": f"https://example.org/{k}"} for k in keys], SCHEMA)


def write_set(
    files: Files, table: str, run: str, *, first: int = 0, parts: int = 1, attempt: int = 1, segment: str | None = None
) -> FileSet:
    """A file set on the disk, named by its manifest and by nobody else yet."""
    folder = f"segments/{segment}/{table}/{run}" if segment else f"tables/{table}/{run}"
    target = Target(files, folder, SCHEMA, attempt=attempt)
    written = [write_part(target, [rows(first + 10 * part)], part, 0) for part in range(parts)]
    entries = [entry for entry in written if entry]
    snapshots.write_manifest(files, folder, entries, attempt)
    total, size = sum(e.rows for e in entries), sum(e.bytes for e in entries)
    return FileSet(folder, 1, total, size, len(entries), segment=segment, attempt=attempt)


def change(run: str, stage: str = "load", **what: Any) -> Change:
    return Change(run=run, stage=stage, at=AT, **what)


def append(files: Files, table: str, run: str, **options: Any) -> Snapshot:
    """Write a set and publish it on top of what is there."""
    parent = snapshots.latest(files)
    return snapshots.publish(files, change(run, append={table: (write_set(files, table, run, **options),)}), parent)


def replace(files: Files, table: str, run: str, **options: Any) -> Snapshot:
    """Write a set and publish it in the place of what was there."""
    parent = snapshots.latest(files)
    return snapshots.publish(files, change(run, replace={table: (write_set(files, table, run, **options),)}), parent)


def contents(files: Files, snapshot: Snapshot) -> dict[str, list[int]]:
    """The keys every table of a snapshot holds, read from its files."""
    return {
        table: sorted(key for file_set in sets for key in _keys(files, file_set))
        for table, sets in snapshot.tables.items()
    }


def _keys(files: Files, file_set: FileSet) -> list[int]:
    entries = snapshots.read_manifest(files, file_set)
    keys = [k for e in entries for k in pq.read_table(io.BytesIO(files.read(e.path)))["url_fp"].to_pylist()]
    assert len(keys) == file_set.rows
    return keys


def whole(files: Files) -> dict[int, dict[str, list[int]]]:
    """What every snapshot of the log holds; a missing or cut file is an error."""
    return {number: contents(files, snapshots.load(files, number)) for number in snapshots.numbers(files)}


def names(files: Files, folder: str) -> list[str]:
    return [path for path, _ in files.list(folder)]


def data_files(files: Files) -> list[str]:
    """Data files without their manifests."""
    return [path for path in names(files, "tables") + names(files, "segments") if "/_files-" not in path]


def descriptors() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A Python process of its own that can import Gossamer and these tests."""
    path = os.pathsep.join([str(SOURCE), str(SOURCE.parent)])
    command = [sys.executable, "-c", script, *arguments]
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def say(process: subprocess.Popen[str], line: str = "go") -> None:
    assert process.stdin
    process.stdin.write(line + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()
