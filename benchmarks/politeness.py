"""A crawl of the simulated web with delays, two rounds, killed once in between, judged by the server's own log.

    python -m benchmarks politeness [--urls 60000] [--hosts 1000] [--delay 0.2]

Prints what the judge of the simulated web finds: requests too soon, connections too many, paths that robots.txt forbids,
Retry-After that was not kept. The web is as wild as it comes: slow and failing hosts, 429, sessions, ten kinds of robots.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from gossamer.simweb.serving.judge import Rules
from gossamer.simweb.serving.politeness import judge_file

GOSSAMER = (sys.executable, "-m", "gossamer")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks politeness")
    parser.add_argument("--urls", type=int, default=60_000)
    parser.add_argument("--hosts", type=int, default=2_500)
    parser.add_argument("--delay", type=float, default=0.2)
    parser.add_argument("--per-host", type=int, default=40, help="URLs of a host in a round, at most")
    parser.add_argument("--keep", action="store_true", help="leave crawl and log where they are")
    parser.add_argument("--calm", action="store_true", help="only well-behaved hosts")
    chosen = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="gossamer-polite-"))
    try:
        crawl(folder, chosen)
    finally:
        if not chosen.keep:
            shutil.rmtree(folder)


def crawl(folder: Path, chosen: argparse.Namespace) -> None:
    web = ["--hosts", str(chosen.hosts), "--pages", str(chosen.urls * 3), *(["--calm"] if chosen.calm else [])]
    gossamer("--quiet", "simweb", "truth", str(folder / "truth"), *web)
    urls = pq.read_table(next((folder / "truth").glob("urls*")), columns=["url"]).column("url")
    (folder / "seeds.txt").write_text("\n".join(urls.to_pylist()))
    log = folder / "access.log"
    with (folder / "serving.json").open("w") as out:
        server = subprocess.Popen(
            [*GOSSAMER, "--json", "simweb", "serve", *web, "--port", "0", "--log", log], stdout=out
        )
    try:
        port = served(folder / "serving.json")
        (folder / "crawl").mkdir()
        gossamer("--quiet", "init", str(folder / "crawl"))
        (folder / "crawl" / "gossamer.toml").write_text(
            f'[fetch]\ndelay_ms = {int(chosen.delay * 1000)}\nconnect_to = {{"*" = "127.0.0.1:{port}"}}\n'
            "read_timeout_s = 3.0\ndeadline_s = 10.0\nlongest_wait_s = 20.0\ntail_s = 10\n"
            f"[generate]\ntop = {chosen.urls // 2}\nmax_per = {chosen.per_host}\n"
        )
        os.environ["GOSSAMER_CRAWL"] = str(folder / "crawl")
        gossamer("--quiet", "inject", str(folder / "seeds.txt"))
        begun = time.monotonic()
        rounds = subprocess.Popen([*GOSSAMER, "--json", "crawl", "--rounds", "2"], stdout=subprocess.PIPE, text=True)
        time.sleep(15)
        rounds.kill()
        rounds.communicate()
        print("killed after 15 s; the same command again")
        done = subprocess.run(
            [*GOSSAMER, "--json", "crawl", "--rounds", "2"], check=True, stdout=subprocess.PIPE, text=True
        )
        for event in map(json.loads, done.stdout.splitlines()):
            if event["event"] == "round":
                print(event)
            if event["event"] == "done" and event["stage"] == "fetch":
                print(event["counters"], event["drops"])
        print(f"two rounds took {time.monotonic() - begun:.0f} s")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
    report = judge_file(log, Rules(delay=chosen.delay))
    print(f"{report.requests:,} requests to {report.hosts:,} hosts, {report.violations} violations")
    for name, verdict in report.verdicts.items():
        print(f"  {name:12} {verdict.violations}")
        for violation in verdict.worst[:3]:
            print("   ", violation)


def gossamer(*arguments: str) -> None:
    subprocess.run([*GOSSAMER, *arguments], check=True)


def served(path: Path) -> int:
    for _ in range(200):
        text = path.read_text()
        if text.endswith("\n"):
            return int(json.loads(text)["port"])
        time.sleep(0.1)
    raise SystemExit("the server does not start")
