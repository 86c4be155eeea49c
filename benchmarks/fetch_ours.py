"""Our fetch stage as a command, measured from outside: its own reports say how far it is, the system what it took."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import gossamer
from benchmarks.fetch_web import CLIENT, Site, on

GOSSAMER = [sys.executable, "-m", "gossamer"]
SOURCE = str(Path(gossamer.__file__).parents[1])
ENVIRONMENT = os.environ | {"PYTHONPATH": SOURCE}  # the code this process has, wherever the command runs
CONFIG = """
[fetch]
delay_ms = 0
tail_s = 0
{fetch}
[generate]
top = 2000000
[agent]
contact = "bench@example.org"
"""


@dataclass
class Ran:
    """What a run took; the loop is from the first to the last report of the fetching process, without start and tables."""

    pages: int = 0  # URLs of the list that have a row; robots.txt is extra work
    bytes: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    whole_seconds: float = 0.0
    whole_cpu: float = 0.0
    peaks: dict[str, float] = field(default_factory=dict)  # MB: of the worker and of its parent
    filled: float = 0.0  # … of the worker with full queues


def prepare(folder: Path, site: Site) -> Path:
    """A crawl whose batch is all URLs of a site."""
    crawl = folder / "crawl"
    subprocess.run([*GOSSAMER, "-q", "init", str(crawl)], check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    fetch = (
        f'ca_file = "{site.ca}"\ndns_servers = ["127.0.0.1:{site.dns}"]\n'
        'allow_networks = ["127.0.0.0/8"]\nper_address = 0'
        if site.dns
        else f'connect_to = {{"*" = "127.0.0.1:{site.port}"}}'
    )
    (crawl / "gossamer.toml").write_text(CONFIG.format(fetch=fetch))
    (crawl / "seeds.txt").write_text("\n".join(site.urls()))
    for command in (["inject", "seeds.txt"], ["generate"]):
        subprocess.run([*GOSSAMER, "-q", *command], cwd=crawl, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    return crawl


def fetch(crawl: Path, *, stop_after: float = 0.0) -> Ran:
    """Run the stage on a copy of a crawl; stop it after some seconds of fetching, if so many are given."""
    place = crawl.with_name("run")
    shutil.copytree(crawl, place)
    try:
        return _fetch(place, stop_after)
    finally:
        shutil.rmtree(place)


def _fetch(place: Path, stop_after: float) -> Ran:
    start = time.perf_counter()
    command = [*on(CLIENT), *GOSSAMER, "-q", "--set", "engine.workers=1", "fetch"]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    ran, reports, mark = Ran(), [], 0
    used: dict[int, float] = {}
    while True:
        status = process.poll()
        if status is not None:
            break
        for one in _tree(process.pid):  # the fetching process is no child that its parent waits for: rusage lacks it
            try:
                used[one.pid] = sum(one.cpu_times()[:2])
            except psutil.Error:
                continue
        report = next(place.glob("fetching/*/progress-*.json"), None)
        if report is not None and (changed := _changed(report)) != mark and (told := _read(report)):
            mark = changed
            reports.append((time.perf_counter(), sum(used.values()), told["counts"].get("rows", 0)))
            ran.bytes = told["counts"].get("bytes", 0)
            ran.peaks = _peaks(process.pid) or ran.peaks
            if not ran.filled:
                ran.filled = ran.peaks.get("worker", 0.0)
            if stop_after and reports[-1][0] - reports[0][0] > stop_after:
                process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    if status and not stop_after:
        raise SystemExit(f"fetch failed with {status}")
    ran.whole_seconds, ran.whole_cpu = time.perf_counter() - start, sum(used.values())
    (at, cpu, pages), (end_at, end_cpu, end_pages) = reports[0], reports[-1]
    ran.pages, ran.seconds, ran.cpu = end_pages - pages, end_at - at, end_cpu - cpu
    return ran


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found


def _tree(pid: int) -> list[psutil.Process]:
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.Error:
        return []


def _peaks(pid: int) -> dict[str, float]:
    """Highest resident memory of the parent, and of the largest of its children, which is the one that fetches."""
    sizes = []
    for process in _tree(pid):
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except OSError:
            continue
        sizes += [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")]
    return {"parent": sizes[0], "worker": max(sizes[1:])} if len(sizes) > 1 else {}
