"""What there is to fetch: pages of the simulated web behind nginx, with or without TLS, and a name server; each on loopback."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gossamer.simweb.config import load_web
from gossamer.simweb.pages.find import address
from gossamer.simweb.pages.respond import respond
from gossamer.simweb.web import Web

CORES = sorted(os.sched_getaffinity(0))
SERVER, CLIENT = CORES[0], CORES[-1]  # nginx, names and this process on one, what is measured on the other
PAGES = 100  # different ones; the two digits at the end of a URL say which
SIZE = 18_000, 20_500  # bytes of each
DOMAINS = 50  # with a certificate for all of their hosts
ADDRESSES = [f"127.0.0.{number}" for number in range(1, 17)]
CONF = """
worker_processes 1; worker_cpu_affinity {mask:b}; worker_rlimit_nofile 40000; pid {folder}/nginx.pid;
events {{ worker_connections 20000; }}
http {{
  access_log off; keepalive_requests 1000000; keepalive_timeout 300; sendfile on; tcp_nodelay on; default_type text/html;
  types {{ text/html html; text/plain txt; }} open_file_cache max=1000; server_names_hash_max_size 4096;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  root {folder}/html;
  {servers}
}}
"""
LOCATIONS = r"location = /robots.txt { } location ~ (\d\d)$ { default_type text/html; try_files /$1.html =404; }"


@dataclass(frozen=True)
class Site:
    """Hosts with so many pages each, all on one server."""

    scheme: str
    port: int
    hosts: int
    pages: int
    ca: str = ""
    dns: int = 0  # port of the name server; 0: hosts are mapped to the server's address

    def host(self, number: int) -> str:
        return f"h{number}.s{number % DOMAINS}.test"

    def urls(self) -> Iterator[str]:
        for page in range(self.pages):
            for number in range(self.hosts):
                yield f"{self.scheme}://{self.host(number)}:{self.port}{path(number, page)}"


def path(number: int, page: int) -> str:
    """Of a page; some 80 characters long with the rest of its URL."""
    return f"/news/2026/{page:04d}/some-article-about-things-{(number * 7 + page) % 10_000:04d}"


def write_pages(folder: Path) -> None:
    """Articles of the simulated web that are as long as wanted."""
    folder.mkdir(parents=True)
    web, chance = Web(load_web(hosts=2_000, pages=200_000)), random.Random(3)
    made = 0
    while made < PAGES:
        site = web.site(chance.randrange(2_000))
        page = next((page for page in site.kind.pages if page.useful and page.format == "html"), None)
        if page is None or site.charset != "utf-8":
            continue
        number = chance.randrange(site.count(web.start))
        answer = respond(web, "http", site.host, address(site, page, (number, 1), web.start), web.start)
        if answer.status == 200 and SIZE[0] <= len(answer.body) <= SIZE[1]:
            (folder / f"{made:02d}.html").write_bytes(answer.body)
            made += 1
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /private/\nDisallow: /search\n")


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def nginx(folder: Path, *, tls: bool) -> Iterator[tuple[int, str]]:
    """The server; gives its port and, with TLS, the certificate authority to believe."""
    if shutil.which("nginx") is None:
        raise SystemExit("nginx is not installed")
    write_pages(folder / "html")
    port, ca = free_port(), ""
    if tls:
        ca = str(folder / "ca.pem")
        servers = _tls_servers(folder, port)
    else:
        servers = f"server {{ listen 127.0.0.1:{port} backlog=4096; {LOCATIONS} }}"
    conf = folder / "nginx.conf"
    conf.write_text(CONF.format(mask=1 << SERVER, folder=folder, servers=servers))
    command = ["nginx", "-p", str(folder), "-c", str(conf), "-e", str(folder / "error.log"), "-g", "daemon off;"]
    with subprocess.Popen(command) as process:
        try:
            _wait(port)
            yield port, ca
        finally:
            process.terminate()


def _tls_servers(folder: Path, port: int) -> str:
    """One for each domain, with a certificate for its hosts: wildcards of a whole top-level domain are believed by nobody."""
    from gossamer.simweb.serving.certificates import Signer, new_key, own_certificate

    key = new_key()
    authority = own_certificate(key)
    (folder / "ca.pem").write_bytes(authority)
    signer = Signer(key, authority)
    (folder / "key.pem").write_bytes(signer.leaf_key)
    servers = []
    for number in range(DOMAINS):
        (folder / f"s{number}.pem").write_bytes(signer.sign(f"*.s{number}.test"))
        listens = "".join(
            f"listen {a}:{port} ssl{'' if number else ' backlog=4096 default_server'}; " for a in ADDRESSES
        )
        servers.append(
            f"server {{ {listens} server_name *.s{number}.test; ssl_certificate {folder}/s{number}.pem; "
            f"ssl_certificate_key {folder}/key.pem; {LOCATIONS} }}"
        )
    return "\n".join(servers)


def _wait(port: int) -> None:
    for _ in range(100):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("nginx does not answer")


@contextmanager
def names() -> Iterator[int]:
    """A name server in a process of its own, which knows an address for every name; gives its port."""
    port = free_port(socket.SOCK_DGRAM)
    with subprocess.Popen([*on(SERVER), sys.executable, "-m", "benchmarks.fetch_web", str(port)]) as process:
        try:
            time.sleep(1)
            yield port
        finally:
            process.terminate()


def on(core: int) -> list[str]:
    """The beginning of a command that stays on one core."""
    return ["taskset", "-c", str(core)]


def serve_names(port: int) -> None:
    import asyncio
    import zlib

    from gossamer.simweb.serving.dns import start

    async def serve() -> None:
        await start(lambda host: ADDRESSES[zlib.crc32(host.encode()) % len(ADDRESSES)], port=port)
        await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    serve_names(int(sys.argv[1]))
