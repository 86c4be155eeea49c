"""gossamer simweb: what users type, with real servers and other people's tools."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from gossamer.simweb.serving.accesslog import CLOSE, read

SMALL = ("--hosts", "10", "--pages", "300", "--calm")
WILD = """
hosts = 14
pages = 500
[traits]
sessions = 0.15
mirror = 0.4
soft404 = 0.2
absolute-links = 0.2
scheme-relative = 0.2
base-links = 0.3
keeps = 0.5
canonical = 0.5
utf8-wrong = 0.0
charset-wrong = 0.0
charset-unknown = 0.0
"""


@contextmanager
def served(*options: str, log: Path | None = None) -> Iterator[dict[str, Any]]:
    """`gossamer simweb serve` in a process of its own, and what it says about itself."""
    command = [sys.executable, "-m", "gossamer", "--json", "simweb", "serve", "--port", "0", *options]
    command += ["--log", str(log)] if log else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
            yield json.loads(line)
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
        assert process.returncode == 0, said


def fetch(port: int, url: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{port}"}))
    with opener.open(url, timeout=10) as answer:
        return bytes(answer.read())


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    return [row for part in sorted((folder / name).glob("*.parquet")) for row in pq.read_table(part).to_pylist()]


def test_serve_says_where_it_is_and_ends_when_told(tmp_path: Path):
    with served(*SMALL, log=tmp_path / "access.log") as said:
        assert said["event"] == "serving"
        for origin in said["first"]:
            assert b"<html" in fetch(said["port"], f"{origin}/")
    entries = [read(line) for line in (tmp_path / "access.log").read_text().splitlines()]
    assert [entry.status for entry in entries if entry and entry.method != CLOSE] == [200, 200, 200]


def test_the_clock_runs_when_asked():
    with served(*SMALL, "--at", "2025-06-01", "--speed", "100000000") as said:
        first = fetch(said["port"], f"{said['first'][0]}/")
        assert any(fetch(said["port"], f"{said['first'][0]}/") != first for _ in range(200))


def test_describe_shows_sites_kinds_traits_and_urls(gossamer):
    sites = gossamer("--json", "simweb", "describe", "--hosts", "50", "--pages", "2000").rows
    assert sites[-1]["kind"] == "all"
    assert sites[-1]["sites"] == 50
    assert {"news", "shop", "wiki"} <= {row["kind"] for row in gossamer("--json", "simweb", "describe", "--kinds").rows}
    assert "soft404" in gossamer("simweb", "describe", "--traits").out
    facts = gossamer("--json", "simweb", "describe", f"{sites[0]['largest']}/", "--hosts", "50", "--pages", "2000").rows
    assert {"fact": "status", "value": "200"} in facts


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["describe", "http://elsewhere.test/"], 2, "is not on this web"),
        (["describe", "--at", "soon", "http://x.test/"], 2, "is not on this web|is no time"),
        (["serve", "--at", "soon"], 2, "'soon' is no time; write it like"),
        (["serve", "--web", "missing.toml"], 3, "cannot read the web missing.toml"),
        (["truth", "x", "--hosts", "50", "--pages", "10"], 3, "at least one page each"),
        (["truth", "x", "--until", "2020-01-01"], 2, "must end after it starts"),
        (["serve", "--port", "0", "--port-in-urls"], 2, "give --port"),
        (["serve", "--addresses", "999"], 2, "1 to 250 addresses"),
    ],
)
def test_mistakes_are_told_in_one_line(gossamer, options: list[str], code: int, told: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = gossamer("simweb", *options, code=code)
    assert re.search(told, result.err)
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hosts = 'many'", "Expected `int`"),
        ("host = 5", "unknown field `host`"),
        ("[kinds]\nnewz = 1", "no kind of site 'newz'; known are"),
        ("[traits]\nspeedy = 1", "no trait 'speedy'; known are"),
        ("[traits]\nslow = 0.7\nstalls = 0.7", "1.4 of all hosts traits of the group speed"),
        ("[languages]\nxx = 1", "no language 'xx'"),
        ("hosts = [", "is no TOML"),
        (
            "[[site]]\nname = 'x'\nabout = ''\npages = [{name = 'a', path = ['/{nope}']}]\n[kinds]\nx = 1",
            "no field {nope}",
        ),
        (
            "[[site]]\nname = 'x'\nabout = ''\npages = [{name = 'a', path = ['/'], blocks = ['dance 3']}]\n[kinds]\nx = 1",
            "no block 'dance 3'",
        ),
        (
            "[[site]]\nname = 'x'\nabout = ''\npages = [{name = 'a', path = ['/'], over = 'moon'}]",
            "Invalid enum value 'moon'",
        ),
        ("seed = -1", "Expected `int` >= 0"),
        ("suffixes = []", "length >= 1"),
        ("suffixes = ['a b']", "is no suffix"),
        ("port = 70000", "<= 65535"),
        ("[traits]\nslow = 2", "<= 1"),
        ("[[trait]]\nname = 'x'\nabout = ''\nset = {colour = 'red'}", "trait x: .*unknown field `colour`"),
    ],
)
def test_a_wrong_description_is_told_with_its_place(gossamer, tmp_path: Path, text: str, told: str):
    (tmp_path / "web.toml").write_text(text)
    result = gossamer("simweb", "describe", "--web", str(tmp_path / "web.toml"), code=3)
    assert re.search(told, result.err), result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("site", "page", "told"),
    [
        ("", "path = ['/x'], over = 'item'", "needs {id}"),
        ("", "path = ['/x/{id}']", "cannot have {id}"),
        ("", "path = []", "length >= 1"),
        ("", "path = ['x']", "must begin with /"),
        ("", "path = ['/'], format = 'pdf'", "format pdf is for pages over item"),
        ("", "path = ['/{section}'], over = 'facets'", "need some"),
        ("", "path = ['/{id}'], over = 'item', parts = [3, 1]", "must rise"),
        ("sections = [9, 2]", "path = ['/']", r"sections = \[9, 2\] must rise"),
        ("tags = [5, 99]", "path = ['/']", "at most 64"),
        ("paragraphs = [-2, 2]", "path = ['/']", ">= 0"),
    ],
)
def test_a_kind_that_cannot_be_served_is_refused(gossamer, tmp_path: Path, site: str, page: str, told: str):
    text = (
        f"[kinds]\nx = 1\n[[site]]\nname = 'x'\nabout = ''\n{site}\npages = [{{name = 'a', blocks = ['menu'], {page}}}]"
    )
    (tmp_path / "web.toml").write_text(text)
    result = gossamer("simweb", "describe", "--web", str(tmp_path / "web.toml"), code=3)
    assert re.search(told, result.err), result.err


def test_a_kind_of_ones_own_is_served(gossamer, tmp_path: Path):
    (tmp_path / "web.toml").write_text(
        """
hosts = 4
pages = 100
[kinds]
recipes = 1
[[site]]
name = "recipes"
about = "Dishes."
urls_per_item = 2
[[site.pages]]
name = "front"
path = ["/"]
over = "all"
blocks = ["menu", "list", "external 1 2"]
[[site.pages]]
name = "dish"
path = ["/dish/{id}-{slug}"]
over = "item"
useful = true
blocks = ["headline", "text 2 3", "related 3"]
"""
    )
    gossamer("-q", "simweb", "truth", str(tmp_path / "truth"), "--web", str(tmp_path / "web.toml"), "--workers", "1")
    urls = table(tmp_path / "truth", "urls")
    dishes = [row for row in urls if row["useful"]]
    assert len(dishes) > 20
    with served("--web", str(tmp_path / "web.toml")) as said:
        assert b"<h1" in fetch(said["port"], dishes[0]["url"])


def test_truth_tells_its_rows_and_starts_again_where_it_was_cut(gossamer, tmp_path: Path):
    folder = tmp_path / "truth"
    result = gossamer("simweb", "truth", str(folder), *SMALL, "--workers", "1")
    assert "urls" in result.out
    assert "not empty" in gossamer("simweb", "truth", str(folder), *SMALL, code=2).err
    before = table(folder, "urls")
    (folder / "truth.json").unlink()
    gossamer("-q", "simweb", "truth", str(folder), *SMALL, "--workers", "1")
    assert table(folder, "urls") == before


@pytest.mark.skipif(shutil.which("wget") is None, reason="needs wget")
def test_a_crawl_by_wget_finds_exactly_what_is_reachable(gossamer, tmp_path: Path):
    (tmp_path / "web.toml").write_text(WILD)
    web = ("--web", str(tmp_path / "web.toml"), "--calm")
    largest = gossamer("--json", "simweb", "describe", *web[:2]).rows[-1]["largest"]
    (tmp_path / "seeds.txt").write_text(f"{largest}/\n")
    gossamer(
        "-q", "simweb", "truth", str(tmp_path / "truth"), *web, "--workers", "1", "--seeds", str(tmp_path / "seeds.txt")
    )
    with served(*web, log=tmp_path / "access.log") as said:
        command = [
            "wget",
            "--quiet",
            "--recursive",
            "--level=inf",
            "--span-hosts",
            "--execute",
            "robots=off",
            "--execute",
            "use_proxy=yes",
        ]
        environment = os.environ | {"http_proxy": f"http://127.0.0.1:{said['port']}", "no_proxy": ""}
        subprocess.run(
            [*command, (tmp_path / "seeds.txt").read_text().strip()],
            cwd=tmp_path,
            env=environment,
            timeout=240,
            check=False,
        )
    entries = [
        entry
        for entry in map(read, (tmp_path / "access.log").read_text().splitlines())
        if entry and entry.method == "GET"
    ]
    asked = {f"{entry.scheme}://{entry.host}{entry.target}": entry.status for entry in entries}
    status = {row["url"]: row["status"] for row in table(tmp_path / "truth", "states")}
    reachable = {
        row["url"]: status[row["url"]] for row in table(tmp_path / "truth", "urls") if row["depth"] is not None
    }
    assert asked == reachable
    assert len(reachable) > 1000
    assert any("sid=" in url for url in reachable)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
def test_an_export_is_served_by_nginx_byte_for_byte(gossamer, tmp_path: Path):
    from tests.servers import free_port

    port = free_port()
    folder = tmp_path / "static"
    gossamer("-q", "simweb", "export", str(folder), "--hosts", "10", "--pages", "300", "--port", str(port))
    urls = (folder / "urls.txt").read_text().split()
    assert len(urls) > 300
    nginx = ["nginx", "-p", str(folder), "-c", "nginx.conf", "-e", str(folder / "logs" / "error.log")]
    subprocess.run(nginx, check=True, timeout=20)
    try:
        with served("--hosts", "10", "--pages", "300", "--calm") as said:
            for url in urls[:: len(urls) // 120]:
                host, _, path = url.removeprefix("http://").partition("/")
                request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", headers={"Host": host})
                with urllib.request.urlopen(request, timeout=10) as answer:
                    assert answer.read() == fetch(said["port"], url)
                    kind = answer.headers["Content-Type"]
                direct = urllib.request.Request(f"http://127.0.0.1:{said['port']}/{path}", headers={"Host": host})
                with urllib.request.urlopen(direct, timeout=10) as answer:
                    assert answer.headers["Content-Type"] == kind
    finally:
        subprocess.run([*nginx, "-s", "stop"], check=True, timeout=20)


def test_https_names_and_addresses_work_together(tmp_path: Path):
    options = ("--https", "1", "--tls-port", "0", "--dns-port", "0", "--addresses", "3", "--ca", str(tmp_path / "ca"))
    with served(*SMALL, *options) as said:
        proxy = f"http://127.0.0.1:{said['port']}"
        trust = ssl.create_default_context(cafile=str(tmp_path / "ca" / "ca.pem"))
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"https": proxy}), urllib.request.HTTPSHandler(context=trust)
        )
        host = said["first"][0].removeprefix("https://")
        with opener.open(f"https://{host}/", timeout=10) as answer:
            assert b"<html" in answer.read()
        address = resolve_name(said["dns_port"], host)
        assert address in said["addresses"]
        with (
            socket.create_connection((address, said["tls_port"]), timeout=10) as plain,
            trust.wrap_socket(plain, server_hostname=host) as client,
        ):
            client.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            assert client.recv(12) == b"HTTP/1.1 200"


def resolve_name(port: int, host: str) -> str:
    """The first address a DNS server has for a host."""
    question = b"".join(bytes((len(label),)) + label.encode() for label in host.split(".")) + b"\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.sendto(b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + question, ("127.0.0.1", port))
        answer = client.recv(512)
    return socket.inet_ntoa(answer[-4:])


def test_politeness_is_judged_by_the_log(gossamer, tmp_path: Path):
    with served(*SMALL, log=tmp_path / "access.log") as said:
        for _ in range(3):
            with suppress(urllib.error.HTTPError):  # which is an answer too
                fetch(said["port"], f"{said['first'][0]}/robots.txt")
    log = str(tmp_path / "access.log")
    rude = gossamer("simweb", "politeness", log, code=1)
    assert re.search(r"gap +2 ", rude.out)
    assert gossamer("--json", "simweb", "politeness", log, code=1).rows[0]["requests"] == 3
    assert "no violations" in gossamer("simweb", "politeness", log, "--delay", "0").out
    assert "cannot read" in gossamer("simweb", "politeness", str(tmp_path / "none.log"), code=2).err


@pytest.mark.parametrize(
    ("seeds", "told"),
    [(b"junk", "junk is not on this web"), (b"\xff\xfe", "cannot read the seeds"), (b" ", "has no URLs")],
)
def test_seeds_must_be_of_this_web(gossamer, tmp_path: Path, seeds: bytes, told: str):
    (tmp_path / "seeds.txt").write_bytes(seeds)
    result = gossamer("simweb", "truth", tmp_path / "truth", *SMALL, "--seeds", tmp_path / "seeds.txt", code=2)
    assert told in result.err


def test_a_killed_truth_takes_its_workers_along_and_starts_again(gossamer, tmp_path: Path):
    options = ["--hosts", "200", "--pages", "20000", "--workers", "2"]
    command = [sys.executable, "-m", "gossamer", "-q", "simweb", "truth", str(tmp_path / "truth"), *options]
    for number in (signal.SIGKILL, signal.SIGINT):
        with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True) as process:
            until = time.monotonic() + 30
            while (
                len(children := psutil.Process(process.pid).children(recursive=True)) < 3 and time.monotonic() < until
            ):
                time.sleep(0.1)
            process.send_signal(number)
            _, said = process.communicate(timeout=20)
        gone, alive = psutil.wait_procs(children, timeout=10)
        assert gone
        assert not alive
        assert "Traceback" not in said
    gossamer("-q", "simweb", "truth", tmp_path / "truth", *SMALL, "--workers", "1")
    assert (tmp_path / "truth" / "truth.json").exists()


def test_a_busy_port_is_told(gossamer):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = gossamer("simweb", "serve", *SMALL, "--port", taken.getsockname()[1], code=2).err
    assert "cannot listen" in told
    assert "--port" in told
