"""Other protocols than http: files, by a setting, and those of plugins; no page and no redirect leads to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gossamer.crawl import Crawl
from gossamer.errors import UsageError
from gossamer.plugins.hookspecs import hookimpl
from gossamer.stages.fetch.protocols import Context, FetchProtocol, Request, Response, Threads, Transport
from tests.fetch.crawling import QUICK, fetch_round, fetched, sets
from tests.hostile.server import hostile_server

FILES = {"fetch.protocols": ["http", "https", "file"]}


def crawl_of_seeds(folder: Path, engine: Any, urls: list[str], settings: dict[str, Any]) -> Crawl:
    crawl = Crawl.init(str(folder / "crawl"), engine=engine, sets=sets({**QUICK, **settings}))
    (folder / "seeds.txt").write_text("\n".join(urls))
    crawl.inject(str(folder / "seeds.txt"))
    return crawl


def test_files_by_setting(embedded_inline: Any, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>Grüße</p>", "utf-8")
    (tmp_path / "large.bin").write_bytes(b"x" * 3000)
    urls = [f"file://{tmp_path}/{name}" for name in ("page.html", "large.bin", "missing.html", "")]
    crawl = crawl_of_seeds(tmp_path, embedded_inline, urls, {**FILES, "fetch.max_bytes": 1000})
    done = fetch_round(crawl)
    assert [done.outcome(url) for url in urls] == ["SUCCESS", "SUCCESS", "GONE", "FAIL"]
    page = done.rows[urls[0]]
    assert (page["content_type"], page["length"], page["rowkey"]) == ("text/html", 14, f":file{tmp_path}/page.html")
    assert done.rows[urls[1]]["truncated_reason"] == "length"
    assert [record.type for record in done.records(urls[0])] == ["resource"]
    crawl.update()
    assert crawl.engine.collect(crawl.table("crawldb")).num_rows == len(urls)


def test_files_are_refused_without_it(embedded_inline: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="scheme: 1"):
        crawl_of_seeds(tmp_path, embedded_inline, [f"file://{tmp_path}/page.html"], {})
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match="host: 1"):
        crawl_of_seeds(tmp_path / "other", embedded_inline, ["file://host/share"], FILES)


def test_no_redirect_leads_to_a_file(embedded_inline: Any, tmp_path: Path) -> None:
    with hostile_server() as server:
        url = server.url("a.test", "/redirect-file/1")
        done = fetched(tmp_path, embedded_inline, [url], FILES)
    assert done.rows[url]["redirect_to"] is None
    assert done.rows[url]["error"] == "redirect: scheme"
    assert list(done.rows) == [url]


class Echo:
    """A plugin that speaks `echo`."""

    @hookimpl
    def gossamer_protocols(self) -> list[FetchProtocol]:
        return [FetchProtocol("echo", ("echo",), open_echo)]


def open_echo(context: Context) -> Transport:
    return Threads(context, answer)


def answer(request: Request) -> Response:
    if "bad" in request.url:
        raise RuntimeError("no")
    response = Response()
    response.code, response.head = 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    response.body = request.url.encode()
    return response


plugin = Echo()


def test_a_protocol_of_a_plugin(embedded_inline: Any, tmp_path: Path) -> None:
    urls = ["echo://a.test/1", "echo://a.test/bad"]
    settings = {"plugins.load": ["tests.fetch.test_protocols:plugin"], "fetch.protocols": ["http", "https", "echo"]}
    crawl = crawl_of_seeds(tmp_path, embedded_inline, urls, settings)
    done = fetch_round(crawl)
    assert [done.outcome(url) for url in urls] == ["SUCCESS", "FAIL"]
    assert done.rows[urls[1]]["error"] == "protocol: RuntimeError: no"
    (record,) = done.records(urls[0])
    assert (record.type, record.headers["Content-Type"], record.body) == ("resource", "text/plain", b"echo://a.test/1")
