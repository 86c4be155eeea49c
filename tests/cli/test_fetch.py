"""fetch and crawl as commands: signals, kill -9, progress, tables of rounds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gossamer.simweb.serving.judge import Rules
from gossamer.simweb.serving.politeness import judge_file
from tests.hostile.server import HostileServer, hostile_server

Cli = Callable[..., subprocess.CompletedProcess[str]]
GOSSAMER = (sys.executable, "-m", "gossamer")


def run(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GOSSAMER, *arguments], cwd=folder, check=check, capture_output=True, text=True)


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*GOSSAMER, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def make(folder: Path, server: HostileServer, delay_ms: int, hosts: int, pages: int) -> Path:
    run(folder, "init", "crawl")
    crawl = folder / "crawl"
    settings = (
        f'[fetch]\ndelay_ms = {delay_ms}\nconnect_to = {{"*" = "127.0.0.1:{server.port}"}}\n[engine]\nworkers = 2\n'
    )
    (crawl / "gossamer.toml").write_text(settings)
    urls = [f"http://h{host}.test/page/{page}" for host in range(hosts) for page in range(pages)]
    (folder / "seeds.txt").write_text("\n".join(urls))
    run(crawl, "inject", "../seeds.txt")
    run(crawl, "generate")
    return crawl


def until_fetching(crawl: Path, server: HostileServer, process: subprocess.Popen[str], more: int) -> None:
    """Wait until some requests have come in."""
    before = len(server.requests)
    while len(server.requests) < before + more:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.parametrize("group", [False, True], ids=["process", "group"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_soon_and_loses_nothing(tmp_path: Path, number: signal.Signals, group: bool) -> None:
    with hostile_server() as server:
        crawl = make(tmp_path, server, 30, 8, 40)
        process = start(crawl, "fetch")
        until_fetching(crawl, server, process, 60)
        if group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        began = time.monotonic()
        _, told = process.communicate(timeout=20)
        assert time.monotonic() - began < 10
        assert process.returncode == 130
        assert "run the same command again to go on" in told
        answered = len([r for r in server.requests if r.target != "/robots.txt"])
        done = run(crawl, "--json", "fetch")
        final = json.loads(done.stdout.splitlines()[-1])
        assert final["counters"]["success"] == 320
        asked = [r for r in server.requests if r.target != "/robots.txt"]
        assert len(asked) == 320, "what was answered before the signal is not asked for again"
        assert answered < 320


def test_kill_minus_nine_keeps_delays_and_rows(tmp_path: Path) -> None:
    with hostile_server() as server:
        crawl = make(tmp_path, server, 300, 6, 15)
        process = start(crawl, "crawl", "--rounds", "1")
        until_fetching(crawl, server, process, 30)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        done = run(crawl, "--json", "crawl", "--rounds", "1")
        rounds = [event for line in done.stdout.splitlines() if (event := json.loads(line))["event"] == "round"]
        assert [(r["fetched"], r["known"]) for r in rounds] == [(90, 90)]
        for host in {r.host for r in server.requests}:
            times = sorted(r.time for r in server.requests if r.host == host)
            assert min(b - a for a, b in pairwise(times)) >= 0.3 - 0.02


def test_progress_is_told(tmp_path: Path) -> None:
    with hostile_server() as server:
        crawl = make(tmp_path, server, 50, 4, 40)
        done = run(crawl, "--json", "fetch")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        progress = [event for event in events if event["event"] == "progress"]
        assert progress
        assert {"done", "total", "pages_per_s", "mb_per_s", "hosts", "queued", "errors", "eta_s"} <= progress[0].keys()
        assert progress[-1]["done"] == progress[-1]["total"] == 160
        assert any(event["pages_per_s"] > 0 and event["eta_s"] is not None for event in progress)


def test_rounds_make_a_table(tmp_path: Path) -> None:
    with hostile_server() as server:
        crawl = make(tmp_path, server, 0, 2, 3)
        told = run(crawl, "crawl", "--rounds", "2").stdout
        assert "1/2" in told
        assert "r000001-1" in told
        assert run(crawl, "crawl").stdout.startswith("Nothing is due")
        assert "No batch waits" in run(crawl, "fetch").stdout


@pytest.mark.slow
def test_the_simulated_web_finds_us_polite(tmp_path: Path) -> None:
    """Two rounds of a wild web, killed once inside; the independent judge reads the server's log."""
    web = ("--hosts", "120", "--pages", "3000")
    run(tmp_path, "simweb", "truth", "truth", *web)
    with (tmp_path / "serving.json").open("w") as out:
        server = subprocess.Popen(
            [*GOSSAMER, "--json", "simweb", "serve", *web, "--port", "0", "--log", "log"], cwd=tmp_path, stdout=out
        )
    try:
        while not (text := (tmp_path / "serving.json").read_text()).endswith("\n"):
            assert server.poll() is None
            time.sleep(0.05)
        run(tmp_path, "init", "crawl")
        (tmp_path / "crawl" / "gossamer.toml").write_text(
            f'[fetch]\ndelay_ms = 100\nconnect_to = {{"*" = "127.0.0.1:{json.loads(text)["port"]}"}}\nread_timeout_s = 1.0\n'
            "deadline_s = 3.0\nlongest_wait_s = 3.0\nhost_failures = 3\n[generate]\nmax_per = 8\ntop = 1000\n"
        )
        import pyarrow.parquet as pq

        urls: Any = pq.read_table(next((tmp_path / "truth").glob("urls*")), columns=["url"]).column("url").to_pylist()
        (tmp_path / "seeds.txt").write_text("\n".join(urls))
        crawl = tmp_path / "crawl"
        run(crawl, "inject", "../seeds.txt")
        process = start(crawl, "crawl", "--rounds", "2")
        time.sleep(6)
        process.kill()
        process.communicate()
        time.sleep(2)  # a server that lags behind logs what was sent before as if it came now
        run(crawl, "crawl", "--rounds", "2")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
    report = judge_file(tmp_path / "log", Rules(delay=0.1))
    assert report.violations == 0, report.verdicts
    assert report.requests > 800
