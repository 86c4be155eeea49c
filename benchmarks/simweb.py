"""The simulated web's server: pages per second and core, start, memory; beside a server that does nothing but send.

Pages are asked for at random over a web of a million, so that little is remembered from one to the next. ARGS: requests (60,000).
"""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.report import table
from gossamer.simweb.config import load_web
from gossamer.simweb.pages.find import address
from gossamer.simweb.web import Web

WEB = {"hosts": 10_000, "pages": 1_000_000}
OPTIONS = ("--hosts", "10000", "--pages", "1000000", "--calm")
PIPELINE = 16
BARE = """
import asyncio
BODY = b"x" * {size}
ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html\\r\\nContent-Length: {size}\\r\\n\\r\\n" + BODY
class Bare(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.rest = transport, b""
    def data_received(self, data):
        *heads, self.rest = (self.rest + data).split(b"\\r\\n\\r\\n")
        for head in heads:
            dict(line.split(b":", 1) for line in head.split(b"\\r\\n")[1:])
            self.transport.write(ANSWER)
async def main():
    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""


def targets(count: int, kinds: tuple[str, ...]) -> list[bytes]:
    """Requests for useful pages, chosen at random over all sites by their size."""
    web, chance = Web(load_web(**WEB)), random.Random(3)
    found: list[bytes] = []
    while len(found) < count:
        # A site's share of all pages falls with its rank, so ranks are drawn evenly on a logarithmic scale.
        site = web.site(int(WEB["hosts"] ** chance.random()) - 1)
        page = next((page for page in site.kind.pages if page.useful and page.format == "html"), None)
        if page is None or (kinds and site.kind.name not in kinds):
            continue
        number = chance.randrange(site.count(web.start))
        path = address(site, page, (number, 1), web.start)
        found.append(f"GET {path} HTTP/1.1\r\nHost: {site.host}\r\nUser-Agent: bench\r\n\r\n".encode())
    return found


def ask(port: int, requests: list[bytes]) -> tuple[int, int]:
    """Send all, some at a time on one connection; gives answers and bytes."""
    answers = size = 0
    with socket.create_connection(("127.0.0.1", port)) as client:
        for start in range(0, len(requests), PIPELINE):
            client.sendall(b"".join(requests[start : start + PIPELINE]))
            waiting, buffer = len(requests[start : start + PIPELINE]), b""
            while waiting:
                buffer += client.recv(1 << 20)
                while waiting and (end := buffer.find(b"\r\n\r\n")) >= 0:
                    mark = buffer.index(b"Content-Length: ", 0, end + 2) + 16
                    whole = end + 4 + int(buffer[mark : buffer.index(b"\r", mark)])
                    if len(buffer) < whole:
                        break
                    buffer, waiting, answers, size = buffer[whole:], waiting - 1, answers + 1, size + whole
    return answers, size


@contextmanager
def server(*command: str) -> Iterator[tuple[dict[str, Any], float, psutil.Process]]:
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        took = time.perf_counter() - start
        try:
            yield json.loads(said) if said.startswith("{") else {"port": int(said)}, took, psutil.Process(process.pid)
        finally:
            process.terminate()


def slices(port: int, requests: list[bytes], process: psutil.Process) -> tuple[list[float], float]:
    """Pages per CPU second of the server in each of 20 slices, for the speed of a shared machine changes; and bytes per page."""
    rates, answers, size = [], 0, 0
    for start in range(0, len(requests), len(requests) // 20):
        cpu = sum(process.cpu_times()[:2])
        got, sent = ask(port, requests[start : start + len(requests) // 20])
        used = sum(process.cpu_times()[:2]) - cpu
        rates.append(got / max(used, 0.01))
        answers, size = answers + got, size + sent
    return sorted(rates), size / answers


def run(name: str, requests: list[bytes], *command: str) -> tuple[list[str], float]:
    with server(*command) as (said, took, process):
        ask(said["port"], requests)  # topics are made on first use
        before = process.memory_info().rss
        rates, size = slices(said["port"], requests, process)
        after = process.memory_info().rss
    row = [name, *shown(rates), f"{size / 1000:.1f}", f"{took:.2f}", f"{before / 1e6:.0f} → {after / 1e6:.0f}"]
    return row, size


def shown(rates: list[float]) -> list[str]:
    return [f"{rate:,.0f}" for rate in (rates[0], rates[len(rates) // 2], rates[-1])]


def static(count: int) -> list[list[str]]:
    """The static export behind nginx: what a server does that reads its pages from files."""
    if shutil.which("nginx") is None:
        print("nginx is not installed: its row is missing")
        return []
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        command = ["simweb", "export", f"{folder}/web", "--hosts", "300", "--pages", "5000", "--port", str(port)]
        subprocess.run([sys.executable, "-m", "gossamer", "-q", *command], check=True)
        urls = Path(folder, "web", "urls.txt").read_text().split()
        chosen = random.Random(3).choices(urls, k=count)
        parts = [url.removeprefix("http://").partition("/") for url in chosen]
        requests = [
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bench\r\n\r\n".encode() for host, _, path in parts
        ]
        nginx = [
            "nginx",
            "-p",
            f"{folder}/web",
            "-c",
            "nginx.conf",
            "-e",
            f"{folder}/web/logs/error.log",
            "-g",
            "daemon off;",
        ]
        with subprocess.Popen(nginx) as process:
            time.sleep(1)
            worker = psutil.Process(process.pid).children()[0]
            ask(port, requests)
            rates, size = slices(port, requests, worker)
            process.terminate()
        return [["nginx, static export", *shown(rates), f"{size / 1000:.1f}", "", ""]]


def main(arguments: list[str]) -> None:
    count = int(arguments[0]) if arguments else 60_000
    rows = []
    size = 12_000.0
    for name, kinds in (("news articles", ("news",)), ("useful pages of all kinds", ())):
        row, size = run(
            f"simweb, {name}",
            targets(count, kinds),
            "-m",
            "gossamer",
            "--json",
            "simweb",
            "serve",
            "--port",
            "0",
            *OPTIONS,
        )
        rows.append(row)
    rows += static(count)
    bare = [b"GET / HTTP/1.1\r\nHost: x\r\nUser-Agent: bench\r\n\r\n"] * count
    rows.append(run("asyncio, one page from memory", bare, "-c", BARE.format(size=int(size)))[0])
    head = ("server", "pages per CPU second: slowest", "median", "fastest slice", "KB", "start, s", "memory, MB")
    table(f"Serving {count:,} pages of a web of {WEB['pages']:,}", head, rows)
