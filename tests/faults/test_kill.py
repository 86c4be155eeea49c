"""Real `kill -9`: of a worker in the middle of a write, on every engine, and of the whole command at random moments."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from gossamer.crawl import Crawl
from gossamer.errors import EngineError
from gossamer.storage import runs
from gossamer.storage.disk import Disk
from gossamer.storage.local import LocalFiles
from tests.stages.crawls import NOW, content, make_crawl, url_rows, write_rows


class KillingDisk(Disk):
    """Kills the process that does the n-th write, sync or open, unless that is the one that made it."""

    def __init__(self, fatal: int) -> None:
        self.fatal, self.count, self.maker = fatal, 0, os.getpid()

    def __getstate__(self) -> dict[str, int]:
        return {"fatal": self.fatal, "count": 0, "maker": self.maker}

    def _step(self) -> None:
        self.count += 1
        if self.count == self.fatal and os.getpid() != self.maker:
            os.kill(os.getpid(), signal.SIGKILL)

    def open_new(self, path: str) -> int:
        self._step()
        return super().open_new(path)

    def write(self, fd: int, data: Any) -> None:
        self._step()
        super().write(fd, data)

    def sync(self, fd: int) -> None:
        self._step()
        super().sync(fd)


@pytest.mark.parametrize("fatal", [1, 2, 3])  # of its open, write and sync
def test_killed_worker_loses_nothing(engine: Any, embedded: Any, tmp_path: Path, fatal: int) -> None:
    healthy = make_crawl(tmp_path, engine, sets=2, count=200, loaded_by=embedded)
    before = content(healthy)
    dying = Crawl(
        healthy.files.root, engine=engine, files=LocalFiles(healthy.files.root, KillingDisk(fatal)), clock=lambda: NOW
    )
    with pytest.raises(EngineError, match="died"):
        dying.run("compact", table="crawldb")
    assert healthy.snapshot.id == 2
    assert content(healthy).equals(before)
    record = runs.load(healthy.files, "00000002-compact")
    assert record is not None
    assert record.state == "failed"
    again = healthy.run("compact", table="crawldb")
    assert (again.attempt, again.published) == (2, 3)
    assert content(healthy).equals(before)


def gossamer(crawl: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "gossamer", "-C", str(crawl), "--json", *arguments]


def offspring(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


@pytest.mark.parametrize("command", ["load", "compact", "reshard"])
def test_killed_command_resumes(tmp_path: Path, embedded_inline: Any, command: str) -> None:
    """The same command again ends with the tables an undisturbed run gives, wherever it was killed."""
    crawl = make_crawl(tmp_path, embedded_inline, sets=2, count=3000)
    root = Path(crawl.files.root)
    more = write_rows(tmp_path / "more.parquet", url_rows(3000, seed=8))
    words = {"load": ["load", "crawldb", more], "compact": ["compact", "crawldb"], "reshard": ["reshard", "8"]}[command]
    calm = tmp_path / "calm"
    shutil.copytree(root, calm)
    begun = time.monotonic()
    subprocess.run(gossamer(calm, *words), check=True, capture_output=True)
    lasts = time.monotonic() - begun
    expected = content(Crawl(str(calm), engine=embedded_inline))
    rng = random.Random(command)
    for attempt in range(3):
        hit = tmp_path / f"hit-{attempt}"
        shutil.copytree(root, hit)
        process = subprocess.Popen(gossamer(hit, *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.25, 1.0) * lasts)
        children = offspring(process.pid)
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(children, timeout=10)
        assert not alive, "a killed command left processes behind"
        survivor = Crawl(str(hit), engine=embedded_inline)
        assert survivor.snapshot.id in (2, 3)
        content(survivor)
        record = runs.load(survivor.files, f"00000002-{command}")
        if record is None or record.state != runs.DONE:  # killed on its way out, it had nothing left to do
            subprocess.run(gossamer(hit, *words), check=True, capture_output=True)
        assert survivor.snapshot.id == 3
        assert content(survivor).equals(expected)
