"""A round ends whatever robots.txt files lead to one another, and whatever is remembered of a host."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.tables.statuses import Outcome


class Answers(BaseHTTPRequestHandler):
    """robots.txt by host, with hops that lead from one host to the other; pages for all else."""

    leads: ClassVar[dict[str, str]] = {
        "a.x.test/robots.txt": "http://b.x.test/rules-of-a.txt",
        "b.x.test/robots.txt": "http://a.x.test/rules-of-b.txt",
    }
    bodies: ClassVar[dict[str, bytes]] = {
        "b.x.test/rules-of-a.txt": b"User-agent: *\nDisallow: /no\n",
        "a.x.test/rules-of-b.txt": b"User-agent: *\nDisallow: /never\n",
    }
    asked: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        place = f"{self.headers['Host']}{self.path}"
        self.asked[place] += 1
        body = self.bodies.get(place, b"page")
        self.send_response(302 if place in self.leads else 200)
        if place in self.leads:
            self.send_header("Location", self.leads[place])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("per_host", [1, 3])
def test_two_hosts_whose_robots_files_are_at_the_other(tmp_path: Path, embedded_inline: Engine, per_host: int):
    Answers.asked.clear()
    with serving() as port:
        sets = [
            f'fetch.connect_to={{"*" = "127.0.0.1:{port}"}}', "fetch.delay_ms=20", f"fetch.per_host={per_host}",
        ]  # fmt: skip
        crawl = Crawl.init(str(tmp_path / "crawl"), engine=embedded_inline, sets=sets)
        pages = ["a.x.test/1", "a.x.test/no", "a.x.test/never", "b.x.test/1", "b.x.test/no", "b.x.test/never"]
        (tmp_path / "seeds.txt").write_text("\n".join(f"http://{page}" for page in pages))
        crawl.inject(str(tmp_path / "seeds.txt"))
        crawl.generate()
        crawl.fetch()
    rows = crawl.table("fetch").execute()
    denied = set(rows[rows.outcome == Outcome.ROBOTS_DENIED].url)
    assert denied == {"http://a.x.test/no", "http://b.x.test/never"}
    assert set(rows[rows.outcome == Outcome.SUCCESS].url) == {f"http://{page}" for page in pages} - denied
    assert set(Answers.asked.values()) == {1}
