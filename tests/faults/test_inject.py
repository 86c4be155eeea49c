"""inject under every fault: cash and links are never counted twice, a known URL is never reset."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.storage import runs
from tests.faults.harness import every_crash_point
from tests.stages.crawls import NOW
from tests.stages.crawls import content as rows_of


def opened(files: Any, engine: Engine) -> Crawl:
    return Crawl(files.root, files=files, engine=engine, clock=lambda: NOW)


def content(files: Any, engine: Engine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows_of(opened(files, engine)).to_pylist()
    return found


def test_every_crash_point(tmp_path: Path, embedded_inline: Engine) -> None:
    """With --update, which writes new, tagged and changed rows at once."""
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("http://a.example/\nhttp://b.example/\tk=1\nhttp://c.example/\tscore=3\n")
    second.write_text(
        "http://b.example/\tk=2\thour=1\nhttp://d.example/\nhttp://c.example/\nno url\nhttp://d.example/\n"
    )

    def make(files: Any) -> None:
        crawl = Crawl.init(files.root, shards=1, clock=NOW, files=files, engine=embedded_inline)
        crawl.clock = lambda: NOW
        crawl.inject(str(first))

    def operation(files: Any) -> None:
        record = runs.load(files, "00000001-inject")
        if record is None or record.state != runs.DONE:
            opened(files, embedded_inline).inject(str(second), update=True)

    state = partial(content, engine=embedded_inline)
    points = every_crash_point("inject", tmp_path / "trial", make, operation, state, kinds=("kill",), recorded=True)
    assert all(points.values())
