"""Everything that goes wrong is one clear line that names the cure, with its own exit code, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Gossamer, intact, page, state, write_lines

HOLD = """
import sys, time
from gossamer.storage import leases
from gossamer.storage.local import LocalFiles
lease = leases.acquire(LocalFiles(sys.argv[1]), sys.argv[2], {"run": None, "snapshot": 2})
print("held", flush=True)
sys.stdin.read()
lease.release()
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "rows.jsonl", *map(page, range(10, 15)))


def parts(crawl: Path) -> list[Path]:
    return sorted(crawl.glob("tables/crawldb/*/part-*.parquet"))


def change_snapshot(crawl: Path, **columns: Any) -> None:
    """Edit the latest snapshot by hand."""
    path = max((crawl / "snapshots").iterdir())
    path.write_text(json.dumps(json.loads(path.read_text()) | columns))


def test_an_unknown_settings_key(filled: Path, rows: Path, process: Gossamer):
    (filled / "gossamer.toml").write_text("[engine]\nworker = 3\n")
    before = state(filled)
    error = process("load", "crawldb", rows, code=3).error
    assert error == f"{filled}/gossamer.toml: unknown setting engine.worker; did you mean engine.workers?"
    assert state(filled) == before


def test_broken_toml(filled: Path, process: Gossamer):
    (filled / "gossamer.toml").write_text("[engine\n")
    assert "not valid TOML" in process("status", code=3).error


def test_a_missing_crawl(tmp_path: Path, rows: Path, process: Gossamer, gossamer: Gossamer):
    said = f"{tmp_path}/crawl: no crawl here; make one with `gossamer init {tmp_path}/crawl`"
    assert process("load", "crawldb", rows, code=4).error == said
    for command in (
        ["status"],
        ["compact"],
        ["read", "crawldb"],
        ["runs"],
        ["snapshots", "rollback", "1"],
        ["config", "show"],
    ):
        assert gossamer(*command, code=4).error == said
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize(("stage", "command"), [("load", ["load", "crawldb"]), ("compact", ["compact"])])
def test_two_writers(filled: Path, rows: Path, process: Gossamer, gossamer: Gossamer, stage: str, command: list[Any]):
    arguments = [*command, *([rows] if stage == "load" else [])]
    before = state(filled)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(filled), stage], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        error = process(*arguments, code=5).error
        assert error.startswith(f"{stage} is already running (process {other.pid} on ")
        assert error.endswith("wait for it or stop that process, then try again")
        assert state(filled) == before
        assert f"running: {stage} (process {other.pid} " in gossamer("status").out
        other.kill()
    gossamer(*arguments)


def test_damage_and_newer_versions_as_a_user_meets_them(filled: Path, process: Gossamer):
    """What the tests below try in this process, once each in one of its own."""
    tables = json.loads((filled / "snapshots/00000002.json").read_text())["tables"]
    newer = {"crawldb": [file_set | {"version": 99} for file_set in tables["crawldb"]]}
    change_snapshot(filled, tables=newer)
    assert "upgrade with" in process("read", "crawldb", code=7).error
    change_snapshot(filled, tables=tables)
    truncated(parts(filled)[0])
    assert "damaged Parquet file" in process("read", "crawldb", code=6).error
    parts(filled)[0].unlink()
    assert "file is missing" in process("read", "crawldb", code=6).error
    change_snapshot(filled, format=99)
    assert "upgrade with" in process("read", "crawldb", code=7).error


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def garbage(path: Path) -> None:
    path.write_bytes(b"\x00garbage\xff" * 100)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def damaged_page(path: Path) -> None:
    """The footer is whole; the bytes of the first column are not."""
    column = pq.read_metadata(path).row_group(0).column(3)
    data = bytearray(path.read_bytes())
    start = column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xee" * column.total_compressed_size
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [truncated, garbage, empty, damaged_page])
@pytest.mark.parametrize(
    "command", [["read", "crawldb", "--format", "csv"], ["compact", "crawldb"], ["reshard", "2"]], ids=lambda c: c[0]
)
def test_a_corrupt_parquet_file(filled: Path, gossamer: Gossamer, damage: Callable[[Path], None], command: list[str]):
    victim = parts(filled)[0]
    damage(victim)
    before = state(filled)
    error = gossamer(*command, code=6).error
    assert error.startswith(f"{victim}: damaged Parquet file (")
    assert error.endswith("restore it from a copy, or go back with `gossamer snapshots rollback`")
    assert intact(before, filled)


@pytest.mark.parametrize("command", [["read", "crawldb"], ["compact", "crawldb"]], ids=lambda c: c[0])
def test_a_missing_parquet_file(filled: Path, gossamer: Gossamer, command: list[str]):
    victim = parts(filled)[-1]
    victim.unlink()
    before = state(filled)
    error = gossamer(*command, code=6).error
    assert error == f"{victim}: file is missing; roll back with `gossamer snapshots rollback` or restore it"
    assert intact(before, filled)


def test_rolling_back_cures_a_damaged_change_set(filled: Path, gossamer: Gossamer):
    for path in (filled / "tables/crawldb/00000001-load").glob("part-*"):
        path.unlink()
    gossamer("read", "crawldb", code=6)
    gossamer("snapshots", "rollback", 1)
    assert len(gossamer("--json", "read", "crawldb").rows) == 4


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 3}', "{}"])
def test_a_damaged_manifest(filled: Path, gossamer: Gossamer, text: str):
    path = filled / "tables/crawldb/00000001-load/_files-001.json"
    path.write_text(text)
    before = state(filled)
    error = gossamer("read", "crawldb", code=6).error
    assert error.startswith(f"{path}: ")
    assert "roll back" in error
    assert state(filled) == before


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1}'])
def test_a_damaged_snapshot(filled: Path, gossamer: Gossamer, text: str):
    path = filled / "snapshots/00000002.json"
    path.write_text(text)
    before = state(filled)
    error = gossamer("read", "crawldb", code=6).error
    assert error.startswith(f"{path}: ")
    assert "roll back" in error
    assert state(filled) == before


@pytest.mark.parametrize("command", [["read", "crawldb"], ["compact", "crawldb"], ["reshard", "2"]], ids=lambda c: c[0])
def test_a_newer_schema_version(filled: Path, gossamer: Gossamer, command: list[str]):
    tables = json.loads((filled / "snapshots/00000002.json").read_text())["tables"]
    for file_set in tables["crawldb"]:
        file_set["version"] = 99
    change_snapshot(filled, tables=tables)
    before = state(filled)
    error = gossamer(*command, code=7).error
    assert error == "table crawldb has schema version 99, this Gossamer knows 1; upgrade with `pip install -U gossamer`"
    assert state(filled) == before


@pytest.mark.parametrize(
    "command", [["status"], ["read", "crawldb"], ["snapshots", "rollback", "1"], ["snapshots", "list"]], ids=" ".join
)
def test_a_newer_snapshot_format(filled: Path, gossamer: Gossamer, command: list[str]):
    change_snapshot(filled, format=99, novelty={"a": 1})
    before = state(filled)
    error = gossamer(*command, code=7).error
    assert error == f"{filled}: snapshot 2 was written by a newer Gossamer; upgrade with `pip install -U gossamer`"
    assert state(filled) == before


def test_a_table_this_version_does_not_know(filled: Path, gossamer: Gossamer):
    tables = json.loads((filled / "snapshots/00000002.json").read_text())["tables"]
    change_snapshot(filled, tables=tables | {"dreams": tables["crawldb"]})
    for command in (["status"], ["read", "crawldb"], ["reshard", "2"]):
        assert "knows no table dreams; upgrade with" in gossamer(*command, code=7).error


def test_a_balance_that_does_not_hold(filled: Path, rows: Path, gossamer: Gossamer, monkeypatch: pytest.MonkeyPatch):
    from gossamer import runner

    monkeypatch.setattr(runner, "balanced", lambda *_: False)
    before = state(filled)
    assert "nothing was published" in gossamer("load", "crawldb", rows, code=10).error
    assert intact(before, filled)
