"""A crawl in a bucket: WARC files and rows are spooled here and go up in pairs.

In this very process: those of an engine that other tests have started do not know the server's credentials.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from gossamer.crawl import Crawl
from gossamer.stages.fetch.ledger import Home, spool_of
from tests.fetch.crawling import QUICK, sets
from tests.hostile.server import hostile_server
from tests.servers import s3_server
from tests.stages.crawls import seed_rows, write_rows

__all__ = ["s3_server"]


@pytest.mark.s3
def test_a_bucket_gets_whole_pairs(embedded_inline: Any, tmp_path: Path, s3_server: str) -> None:
    root = f"{s3_server}/{uuid.uuid4().hex}"
    with hostile_server() as server:
        urls = [server.url(f"h{n % 7}.test", f"/page/{n}") for n in range(60)]
        settings = {**QUICK, "engine.scratch": str(tmp_path), "fetch.warc_mb": 1}
        crawl = Crawl.init(root, engine=embedded_inline, sets=sets(settings))
        crawl.load("crawldb", write_rows(tmp_path / "seeds.parquet", seed_rows(urls)))
        crawl.generate()
        crawl.fetch()
    rows = crawl.engine.collect(crawl.table("fetch")).to_pylist()
    assert len(rows) == 60
    home = Home(crawl.files, spool_of(crawl.files, str(tmp_path)), "r000001-1")
    sizes = {path.rsplit("/", 1)[-1]: size for path, size in crawl.files.list(home.warc)}
    assert all(row["warc_offset"] + row["warc_length"] <= sizes[row["warc_file"]] for row in rows)
    assert not list(crawl.files.list(home.folder))
    assert not [path for path, _ in home.spool.list("") if "lease" not in path], "something was left in the spool"


@pytest.mark.s3
def test_what_was_spooled_before_a_crash_goes_up(embedded_inline: Any, tmp_path: Path, s3_server: str) -> None:
    from gossamer.stages.fetch.ledger import FETCH, Form, Ledger, recover
    from gossamer.stages.fetch.rows import Row
    from gossamer.storage.warc import Exchange
    from gossamer.tables.statuses import Outcome

    root = f"{s3_server}/{uuid.uuid4().hex}"
    crawl = Crawl.init(root, engine=embedded_inline)
    home = Home(crawl.files, spool_of(crawl.files, str(tmp_path)), "r000001-1")
    home.journal(0, 1).parent.mkdir(parents=True)
    home.journal(0, 1).write_bytes(b"")
    ledger = Ledger(home, Form({}, 1 << 30, with_requests=False, rules_version=0), 0, 1)
    answer = Exchange("http://a.test/1", 0.0, None, "http/1.1", b"", b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000)
    place = ledger.archive(answer, 0.0)
    ledger.add(Row("http://a.test/1", Outcome.SUCCESS, 0.0, place=place))
    ledger.publish()
    ledger.archive(answer, 0.0)  # no row points to this one
    ledger.abandon()
    assert not home.parts(FETCH), "a pair goes up when its WARC file is full"
    recover(home)
    assert len(home.parts(FETCH)) == 1
    ((_, size),) = crawl.files.list(home.warc)
    assert place.offset is not None
    assert place.length is not None
    assert size == place.offset + place.length
