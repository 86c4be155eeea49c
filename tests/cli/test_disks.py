"""Real file systems that are full or read-only. They need the right to mount, and say so when it is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Gossamer, intact, page, state, write_lines


def mount(options: str, folder: Path) -> None:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"needs the right to mount a file system: {done.stderr.strip()}")


@pytest.fixture
def small_disk(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A crawl on a file system of its own, with little room left."""
    if not shutil.which("mount"):
        pytest.skip("needs mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount("size=512k", disk)
    try:
        crawl = Path(shutil.copytree(example, disk / "crawl"))
        monkeypatch.setenv("GOSSAMER_CRAWL", str(crawl))
        yield crawl
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def many_rows(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "many.jsonl", *(page(number, via=os.urandom(40).hex()) for number in range(6000)))


def fill(disk: Path) -> Path:
    """Take all room that is left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return ballast
    raise AssertionError("the disk never got full")


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_full_disk_while_writing(
    small_disk: Path,
    many_rows: Path,
    process: Gossamer,
    gossamer: Gossamer,
    monkeypatch: pytest.MonkeyPatch,
    workers: str,
):
    monkeypatch.setenv("GOSSAMER_ENGINE__WORKERS", workers)
    before = state(small_disk)
    error = process("load", "crawldb", many_rows, code=8).error
    assert str(small_disk) in error
    assert error.endswith("No space left on device: the disk is full; free some space and run the same command again")
    assert intact(before, small_disk)
    assert len(gossamer("--json", "read", "crawldb").rows) == 5
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk.parent)], check=True)
    gossamer("load", "crawldb", many_rows)
    assert len(gossamer("--json", "read", "crawldb", "--columns", "url").rows) == 6000


@pytest.mark.parametrize(
    "command",
    [["load", "crawldb"], ["compact", "crawldb"], ["reshard", "2"], ["snapshots", "rollback", "1"]],
    ids=lambda c: c[0],
)
def test_a_disk_without_any_room(
    small_disk: Path, tmp_path: Path, process: Gossamer, gossamer: Gossamer, command: list[str]
):
    arguments = [*command, *([write_lines(tmp_path / "a.jsonl", page(9))] if command[0] == "load" else [])]
    ballast = fill(small_disk.parent)
    before = state(small_disk)
    error = process(*arguments, code=8).error
    assert error.endswith("the disk is full; free some space and run the same command again")
    assert intact(before, small_disk)
    assert len(gossamer("--json", "read", "crawldb").rows) == 5
    assert gossamer("status").err == ""
    ballast.unlink()
    gossamer(*arguments)


def test_a_read_only_file_system_can_be_read_but_not_written(
    small_disk: Path, tmp_path: Path, process: Gossamer, gossamer: Gossamer
):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk.parent)], check=True)
    before = state(small_disk)
    for command in (
        ["load", "crawldb", write_lines(tmp_path / "a.jsonl", page(9))],
        ["compact"],
        ["snapshots", "collect"],
    ):
        error = gossamer(*command, code=8).error
        assert error.endswith("Read-only file system: the file system is read-only; choose another place or remount it")
    assert "read-only" in process("init", small_disk.parent / "other", code=8).error
    for command in (["status"], ["snapshots", "list"], ["runs"], ["config", "show"], ["snapshots", "diff", "1"]):
        gossamer(*command)
    assert len(gossamer("--json", "read", "crawldb").rows) == 5
    assert state(small_disk) == before


def test_a_read_only_directory(filled: Path, process: Gossamer, gossamer: Gossamer):
    as_anybody = () if os.geteuid() else ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    if as_anybody and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and there is no setpriv to take that right away")
    folders = [filled, *(path for path in filled.rglob("*") if path.is_dir())]
    before = state(filled)
    for folder in folders:
        folder.chmod(0o555)
    try:
        error = process("compact", "crawldb", code=8, through=as_anybody).error
        assert len(process("--json", "read", "crawldb", through=as_anybody).rows) == 5
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert error.endswith("Permission denied: check who owns the crawl directory")
    assert state(filled) == before
