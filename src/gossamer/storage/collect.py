"""Retention and collection: old snapshots go first, then the files nobody names any more.

Spared are the newest snapshots, whatever a live lease or a pin (such as the index's) reads, and everything a running
job is writing. Killed half-way it leaves files without a snapshot, never a snapshot without files.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from gossamer.errors import CorruptError
from gossamer.storage import leases, snapshots
from gossamer.storage.files import Files, read_json
from gossamer.storage.local import HIDDEN

PINS = "pins"
NAMED = (snapshots.FOLDER, "runs", PINS)  # a dead writer may have left hidden files here
HOLDER_TRIES = 50
DATA = ("tables", "segments")
ARCHIVES = "warc"  # a folder of each segment whose files are never collected
SCRATCH = "scratch"
SCRATCH_S = 24 * 3600.0  # readers without a lease have files there too, under names of their own


@dataclass(frozen=True)
class Collection:
    """What a collection removed, or would remove."""

    snapshots: tuple[int, ...]
    files: int
    bytes: int


def pin(files: Files, name: str, snapshot: int) -> None:
    """Keep a snapshot's files for as long as the pin of this name points at it."""
    lease = leases.acquire(
        files, f"pin-{name}", {"run": None, "snapshot": snapshot}
    )  # no collection takes it meanwhile
    try:
        snapshots.load(files, snapshot)
        files.replace(f"{PINS}/{name}.json", json.dumps({"snapshot": snapshot}).encode())
    finally:
        lease.release()


def pinned(files: Files) -> set[int]:
    """Snapshots that pins name."""
    return {_pinned(files, path) for path, _ in files.list(PINS) if path.endswith(".json")}


def _pinned(files: Files, path: str) -> int:
    try:
        return int(read_json(files, path)["snapshot"])
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptError(f"{files.url(path)}: not a pin ({error}); delete it, or restore it from a copy") from error


def collect(files: Files, keep: int, *, dry_run: bool = False) -> Collection:
    """Drop all but the newest `keep` snapshots and every file no remaining snapshot names."""
    if dry_run:
        return _find(files, keep, leases.live(files))[0]
    lease = leases.acquire(files, leases.COLLECT, {})
    try:
        leases.fence(files)
        found, old, garbage = _find(files, keep, _settled_holders(files))
        files.delete(*(snapshots.path_of(number) for number in old))
        files.settle(snapshots.FOLDER)  # no file goes before it is certain that the snapshots naming it have gone
        lease.check()
        files.delete(*garbage)
    finally:
        lease.release()
    return found


def _settled_holders(files: Files) -> list[leases.Info]:
    """All holders of leases, once each has said what it reads and writes (or waits for us)."""
    for _ in range(HOLDER_TRIES):
        holders = [
            holder for holder in leases.live(files) if holder["name"] != leases.COLLECT and not holder.get("waiting")
        ]
        vague = [holder for holder in holders if "run" not in holder or "snapshot" not in holder]
        if not vague:
            return holders
        time.sleep(leases.PAUSE_S)
    raise leases.held_by(vague[0]["name"], vague[0])


def _find(files: Files, keep: int, holders: list[leases.Info]) -> tuple[Collection, list[int], list[str]]:
    """What can go: snapshots, and files nobody names."""
    # Nobody begins while we hold our lease: a file belongs to a run among `holders`, or has been published, or is dead.
    listed = [
        (path, size) for folder in DATA for path, size in files.list(folder) if ARCHIVES not in path.split("/")[2:3]
    ]
    ages = files.ages(SCRATCH)
    listed += [(path, size) for path, size in files.list(SCRATCH) if ages.get(path, 0.0) > SCRATCH_S]
    unfinished = [(path, size) for folder in NAMED for path, size in files.list(folder) if f"/{HIDDEN}" in path]
    running = {holder["run"] for holder in holders if holder.get("run")}
    spared = pinned(files) | {holder["snapshot"] for holder in holders if "snapshot" in holder}
    found = snapshots.numbers(files)
    old = [number for number in found[: max(0, len(found) - max(1, keep))] if number not in spared]
    named = _named(files, set(found) - set(old))
    garbage = [(path, size) for path, size in listed if path not in named and not running & set(path.split("/"))]
    garbage += unfinished if not holders else []
    sizes = sum(size for _, size in garbage)
    return Collection(tuple(old), len(garbage), sizes), old, [path for path, _ in garbage]


def _named(files: Files, remaining: set[int]) -> set[str]:
    """Every data file the remaining snapshots name (manifests included)."""
    kept = [snapshots.load(files, number) for number in remaining]
    sets = {s for snapshot in kept for of_table in snapshot.tables.values() for s in of_table}
    named = {file_set.manifest for file_set in sets}
    for file_set in sets:
        named |= {entry.path for entry in snapshots.read_manifest(files, file_set)}
    return named
