"""Real processes: Ctrl-C, kill, a dying worker, and readers that leave early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.conftest import Gossamer, intact, page, state, write_lines

# A plugin that stops the run in the middle, until a file is taken away.
WAITER = """
import os, time
from gossamer.plugins.hookspecs import hookimpl

@hookimpl
def gossamer_event(event):
    while event.get("phase") == "publish" and os.path.exists(os.environ["WAIT"]):
        time.sleep(0.01)
"""


@contextmanager
def started(*arguments: Any, **surroundings: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a process group of its own, as a shell starts it."""
    command = [sys.executable, "-m", "gossamer", "--json", *map(str, arguments)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | surroundings,
        start_new_session=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def wait_for(running: subprocess.Popen[str], phase: str) -> None:
    assert running.stdout is not None
    for line in running.stdout:
        if json.loads(line).get("phase") == phase:
            return
    raise AssertionError(f"never came to {phase}: {running.stderr.read() if running.stderr else ''}")


def ended(running: subprocess.Popen[str]) -> str:
    """What a process says on stderr before it ends."""
    return running.communicate(timeout=60)[1]


@pytest.fixture
def waiting(tmp_path: Path) -> dict[str, str]:
    """Settings under which a run stops before it publishes."""
    (tmp_path / "waiter_plugin.py").write_text(WAITER)
    (tmp_path / "wait").touch()
    return {"GOSSAMER_PLUGINS__LOAD": "waiter_plugin", "PYTHONPATH": str(tmp_path), "WAIT": str(tmp_path / "wait")}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "rows.jsonl", *map(page, range(10, 15)))


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """An input that never comes."""
    os.mkfifo(tmp_path / "never.jsonl")
    return tmp_path / "never.jsonl"


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_an_interrupted_command_is_resumed_by_the_same_command(
    filled: Path, rows: Path, waiting: dict[str, str], gossamer: Gossamer, ending: signal.Signals
):
    before = state(filled)
    with started("load", "crawldb", rows, **waiting) as running:
        wait_for(running, "publish")
        os.killpg(running.pid, ending)
        said = ended(running)
    if ending is signal.SIGINT:
        assert (running.returncode, said) == (130, "gossamer: interrupted; run the same command again to go on\n")
    else:
        assert (running.returncode, said) == (-ending, "")
    assert intact(before, filled)
    assert gossamer("--json", "status").rows[0]["interrupted"] == ["00000002-load"]
    cut = gossamer("--json", "runs", "00000002-load").rows[0]

    start, *_, done = gossamer("--json", "load", "crawldb", rows).rows
    assert (start["resumed"], start["attempt"], start["now"]) == (True, 2, cut["now"])
    assert (done["event"], done["snapshot"], done["counters"]["rows_written"]) == ("done", 3, 5)
    assert len(gossamer("--json", "read", "crawldb").rows) == 10
    assert gossamer("--json", "status").rows[0]["interrupted"] == []


def test_ctrl_c_while_a_worker_is_busy(filled: Path, fifo: Path):
    before = state(filled)
    with started("load", "crawldb", fifo, GOSSAMER_ENGINE__WORKERS="1") as running:
        wait_for(running, "read 1 files")
        worker = worker_of(running)
        os.killpg(running.pid, signal.SIGINT)
        said = ended(running)
    assert (running.returncode, said) == (130, "gossamer: interrupted; run the same command again to go on\n")
    assert state(filled) == before
    worker.wait(timeout=30)  # raises if it goes on without us


def worker_of(running: subprocess.Popen[str]) -> psutil.Process:
    """The process that does the work: a child of the fork server."""
    me = psutil.Process(running.pid)
    for _ in range(6000):
        deep = set(me.children(recursive=True)) - set(me.children())
        if deep:
            return deep.pop()
        time.sleep(0.01)
    raise AssertionError("no worker was started")


def test_a_worker_that_dies(filled: Path, fifo: Path):
    before = state(filled)
    with started("load", "crawldb", fifo, GOSSAMER_ENGINE__WORKERS="1") as running:
        wait_for(running, "read 1 files")
        worker_of(running).kill()
        said = ended(running)
    assert running.returncode == 9
    (line,) = said.splitlines()
    assert line.startswith("gossamer: a worker process died while running gossamer.stages.load.rows.stage_file")
    assert line.endswith("run the same command again")
    assert state(filled) == before


def pipe(*arguments: Any, reader: str) -> subprocess.CompletedProcess[str]:
    """`gossamer ... | reader` in a shell; the exit code is that of gossamer."""
    command = " ".join([sys.executable, "-m", "gossamer", *map(str, arguments)])
    script = f"{command} | {reader}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def large(crawl: Path, tmp_path: Path, gossamer: Gossamer) -> Path:
    """A crawl whose rows are more than a pipe holds."""
    gossamer("-q", "load", "crawldb", write_lines(tmp_path / "large.jsonl", *map(page, range(5000))))
    return crawl


@pytest.mark.parametrize("form", ["jsonl", "csv", "table"])
def test_a_reader_that_has_seen_enough_is_no_error(large: Path, form: str):
    done = pipe("read", "crawldb", "--columns", "url,rowkey", "--format", form, "--limit", "5000", reader="head -1")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [["read", "crawldb", "--limit", "1"], ["status"], ["graph"], ["--help"], ["--version"]], ids=" ".join
)
def test_a_reader_that_never_reads(filled: Path, arguments: list[str]):
    done = pipe(*arguments, reader="true")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_job_goes_on_when_its_listener_leaves(filled: Path, rows: Path, gossamer: Gossamer):
    done = pipe("--json", "load", "crawldb", rows, reader="head -1")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(gossamer("--json", "read", "crawldb").rows) == 10


def test_an_error_is_told_though_the_listener_has_left(filled: Path, rows: Path, tmp_path: Path):
    bad = write_lines(tmp_path / "bad.jsonl", {"nosuch": 1})
    done = pipe("--json", "load", "crawldb", rows, bad, reader="true")
    assert done.returncode == 2
    assert "crawldb has no column nosuch" in done.stderr
    assert len(done.stderr.splitlines()) == 1
