"""The command line in this process, which is fast, and in one of its own, which is what users have."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from gossamer.cli.main import main
from gossamer.crawl import Crawl


@dataclass(frozen=True)
class Result:
    """What a command printed and returned."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def csv(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.out, newline="")))

    @property
    def lines(self) -> list[list[str]]:
        """The words of each line, such as those of a table."""
        return [line.split() for line in self.out.splitlines()]

    @property
    def error(self) -> str:
        """The one line on stderr."""
        (line,) = self.err.splitlines()
        assert line.startswith("gossamer: ")
        return line.removeprefix("gossamer: ")


Gossamer = Callable[..., Result]


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with nothing set but where the crawl is, and all work in one process."""
    for name in [name for name in os.environ if name.startswith("GOSSAMER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GOSSAMER_CRAWL", str(tmp_path / "crawl"))
    monkeypatch.setenv("GOSSAMER_ENGINE__WORKERS", "0")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="session", autouse=True)
def one_command_tree() -> Iterator[None]:
    """Typer makes all commands anew for every call in this process, which takes longer than most of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def gossamer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gossamer:
    """Runs a command in this process; `code` is what it must return."""

    def call(*arguments: Any, code: int = 0) -> Result:
        monkeypatch.setattr(sys, "argv", ["gossamer", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert end.value.code == code, err
        return Result(int(end.value.code), out, err)

    return call


@pytest.fixture
def process() -> Gossamer:
    """Runs a command as a user does, perhaps `through` another program."""

    def call(*arguments: Any, code: int = 0, through: tuple[str, ...] = ()) -> Result:
        command = [*through, sys.executable, "-m", "gossamer", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == code, done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def crawl(tmp_path: Path, gossamer: Gossamer) -> Path:
    """A crawl with four shards and nothing in it."""
    gossamer("-q", "init", "--shards", 4)
    return tmp_path / "crawl"


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crawl that `filled` gives a copy of."""
    folder = tmp_path_factory.mktemp("example")
    first = write_lines(folder / "first.jsonl", *map(page, range(4)))
    second = write_lines(folder / "second.jsonl", page(3, status="gone"), page(4))
    with Crawl.init(str(folder / "crawl"), shards=4, sets=["engine.workers=0"]) as crawl:
        for path in (first, second):
            crawl.load("crawldb", str(path))
    return folder / "crawl"


@pytest.fixture
def filled(example: Path, tmp_path: Path) -> Path:
    """A crawl that knows five URLs, from two change sets."""
    return Path(shutil.copytree(example, tmp_path / "crawl"))


def page(number: int, **columns: Any) -> dict[str, Any]:
    """A row of the crawldb as a user writes it."""
    site = "www.example.org" if number % 2 else "example.com"
    row = {
        "url": f"https://{site}/page/{number}",
        "domain": site.removeprefix("www."),
        "status": "unfetched",
        "inlinks": number,
        "updated_at": "2026-01-01T00:00:00Z",
    }
    return row | columns


def write_lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def intact(before: dict[str, str], crawl: Path) -> bool:
    """Whether a failed job published nothing and left every file as it was; new files nobody names may lie about."""
    now = state(crawl)
    new = [path for path in now.keys() - before.keys() if path.startswith("snapshots/")]
    return before.items() <= now.items() and not new


def state(crawl: Path) -> dict[str, str]:
    """All that makes up a crawl: every published snapshot and every file, by its digest; not who ran or runs."""
    kept = [
        path
        for path in crawl.rglob("*")
        if path.is_file() and path.relative_to(crawl).parts[0] not in ("runs", "leases")
    ]
    return {str(path.relative_to(crawl)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}
