"""The fetch stage beside bare pycurl, aiohttp and Scrapy, which only download: pages/s and CPU per page on one core; memory.

nginx (and the name server) have the other core. Runs alternate, since a shared machine's speed changes from one second to the
next; medians of the rounds are told. ARGS: `keepalive`, `tls` or `memory` for one of the three, --rounds, --hosts, --pages.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.fetch_ours import fetch, prepare
from benchmarks.fetch_web import CLIENT, SERVER, SIZE, Site, names, nginx, on, path
from benchmarks.report import table

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".tools/peers"
PACKAGES = ("scrapy==2.19.0", "aiohttp==3.14.5", "aiodns==4.0.4", "uvloop==0.23.0")
SCRIPTS = {
    "bare pycurl": ("bare.py",),
    "aiohttp": ("with_aiohttp.py",),
    "Scrapy": ("with_scrapy.py", "as-it-comes"),
    "Scrapy, stripped, on uvloop": ("with_scrapy.py",),
}
CONNECTIONS = 1_000
SLOW = 4  # Scrapy gets so many times fewer hosts, with as many pages each
KINDS = ("keepalive", "tls", "memory")
HEAD = ("fetching", "pages/s", "pages per CPU s: lowest", "median", "highest", "CPU ms/page", "of bare", "times Scrapy")


def peers() -> Path:
    """A Python with the peers, which are nothing that the project depends on."""
    python = PEERS / "bin/python"
    if not (PEERS / "installed").exists():
        subprocess.run([str(ROOT / "tools/make-venv"), str(PEERS)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        (PEERS / "installed").touch()
    return python


def run_peer(name: str, site: Site) -> dict[str, Any]:
    """Let one of them download the same."""
    hosts, pages = site.hosts, site.pages
    if "Scrapy" in name:
        hosts //= SLOW
    robots = ["/robots.txt"] if site.dns else []
    job = {
        "scheme": site.scheme,
        "port": site.port,
        "connections": CONNECTIONS,
        "ca": site.ca,
        "dns": site.dns,
        "hosts": [
            [site.host(number), [*robots, *(path(number, page) for page in range(pages))]] for number in range(hosts)
        ],
    }
    python = sys.executable if name == "bare pycurl" else str(peers())
    script, *options = SCRIPTS[name]
    command = [*on(CLIENT), python, str(ROOT / "benchmarks/peers" / script), *options]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.strip():
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    told["pages"] -= hosts * len(robots)
    if told["failed"] or told["pages"] != hosts * pages or told["bytes"] < told["pages"] * SIZE[0]:
        raise SystemExit(f"{name} did not get all pages: {told}")
    return told


def rounds(folder: Path, site: Site, count: int) -> None:
    """All of them in turn, several times."""
    crawl = prepare(folder, site)
    rates: dict[str, list[tuple[float, float]]] = {}
    for _ in range(count):
        ran = fetch(crawl)
        if ran.pages != site.hosts * site.pages or ran.bytes < ran.pages * SIZE[0]:
            raise SystemExit(f"not all pages were fetched: {ran}")
        rates.setdefault("Gossamer: robots.txt, WARC, rows", []).append((ran.pages / ran.seconds, ran.pages / ran.cpu))
        rates.setdefault("… the whole command", []).append((ran.pages / ran.whole_seconds, ran.pages / ran.whole_cpu))
        for name in SCRIPTS:
            told = run_peer(name, site)
            rates.setdefault(name, []).append((told["pages"] / told["seconds"], told["pages"] / told["cpu"]))
    median = {name: statistics.median(cpu for _, cpu in both) for name, both in rates.items()}
    rows = []
    for name, both in rates.items():
        cpu = sorted(cpu for _, cpu in both)
        rows.append(
            [
                name,
                f"{statistics.median(wall for wall, _ in both):,.0f}",
                f"{cpu[0]:,.0f}",
                f"{median[name]:,.0f}",
                f"{cpu[-1]:,.0f}",
                f"{1000 / median[name]:.3f}",
                f"{median[name] / median['bare pycurl']:.2f}",
                f"{median[name] / median['Scrapy']:.1f}",
            ]
        )
    what = "TLS, robots.txt and DNS for each" if site.dns else "kept alive"
    table(f"{site.hosts:,} hosts, {site.pages} pages of 19 KB each, {what}; {count} rounds", HEAD, rows)


@contextmanager
def web(*, tls: bool) -> Iterator[tuple[Path, Site]]:
    """A folder to work in and the servers."""
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # nginx reads the pages as nobody
        with nginx(folder, tls=tls) as (port, ca), names() if tls else nullcontext(0) as dns:
            yield folder, Site("https" if tls else "http", port, 1, 1, ca, dns)


def keepalive(given: argparse.Namespace) -> None:
    with web(tls=False) as (folder, site):
        rounds(folder, replace(site, hosts=given.hosts or 1_000, pages=given.pages or 20), given.rounds)


def tls(given: argparse.Namespace) -> None:
    with web(tls=True) as (folder, site):
        rounds(folder, replace(site, hosts=given.hosts or 2_000, pages=given.pages or 3), given.rounds)


def memory(given: argparse.Namespace) -> None:
    """A long list in many queues: what the process holds when they are full and when it has fetched for a while."""
    with web(tls=False) as (folder, site):
        site = replace(site, hosts=given.hosts or 50_000, pages=given.pages or 20)
        ran = fetch(prepare(folder, site), stop_after=20.0)
    row = [
        f"{site.hosts * site.pages:,}",
        f"{site.hosts:,}",
        f"{ran.filled:,.0f}",
        f"{ran.requests:,}",
        f"{ran.peaks['worker']:,.0f}",
        f"{ran.peaks['parent']:,.0f}",
    ]
    head = (
        "URLs",
        "queues",
        "fetching process with full queues, MB",
        "requests answered",
        "its peak, MB",
        "its parent's",
    )
    table("Memory of a fetch (VmHWM)", head, [row])


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks fetch")
    parser.add_argument("kind", nargs="?", choices=KINDS)
    for option in ("hosts", "pages"):
        parser.add_argument(f"--{option}", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    os.sched_setaffinity(0, {SERVER})
    for kind in [given.kind] if given.kind else KINDS:
        {"keepalive": keepalive, "tls": tls, "memory": memory}[kind](given)
