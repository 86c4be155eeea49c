"""A fetch that is killed, again and again, loses no published row, asks for none twice, and ends as if nothing had happened."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.crawl import Crawl
from gossamer.runner import rehearsal
from gossamer.stages.fetch.job import _list_of, _tasks
from gossamer.stages.fetch.ledger import FETCH, Home, recover, spool_of
from gossamer.stages.fetch.task import FetchTask, fetch_partitions
from gossamer.tables import TABLES
from tests.hostile.server import HostileServer, hostile_server

HOSTS, PAGES = 16, 24
KILLS = 100
STABLE = [name for name in TABLES["fetch"].stable if name != "via"]  # via is settled when the round ends


def make(root: Path, server: HostileServer, engine: Any) -> Crawl:
    """A crawl with a batch: pages, redirects, refusals and failures on several hosts."""
    crawl = Crawl.init(
        str(root / "crawl"),
        engine=engine,
        sets=[
            f'fetch.connect_to={{"*" = "127.0.0.1:{server.port}"}}',
            "fetch.delay_ms=5",
            "fetch.read_timeout_s=1",
            "fetch.host_failures=1000",
        ],
    )
    odd = ("redirect", "redirect-relative", "status/404", "status/500", "redirect-chain/3", "gzip-cut", "redirect-self")
    urls = [f"http://h{host}.test/page/{page}" for host in range(HOSTS) for page in range(PAGES)]
    urls += [f"http://h{host}.test/{name}/{host}" for host in range(HOSTS) for name in odd]
    urls += [f"http://robots-{kind}.test/denied/{n}" for kind in ("rules", "denied", "500") for n in range(5)]
    (root / "seeds.txt").write_text("\n".join(urls))
    crawl.inject(str(root / "seeds.txt"))
    crawl.generate()
    return crawl


def task_of(crawl: Crawl) -> FetchTask:
    run = rehearsal(crawl, "fetch", {})
    run.record.segment = "r000001-1"
    home = Home(crawl.files, spool_of(crawl.files, ""), "r000001-1")
    run.record.counters.clear()
    tasks = _tasks(run, home, _list_of(run, home.segment))
    whole = replace(tasks[0], partitions=tuple(p for task in tasks for p in task.partitions))
    return replace(whole, form=replace(whole.form, rows=7, seconds=0.2))


def published(home: Home) -> pa.Table:
    tables = [pq.read_table(home.files.url(path)) for path in home.parts(FETCH)]
    return pa.concat_tables(tables) if tables else TABLES["fetch"].schema.empty_table()


def urls_in(rows: pa.Table) -> set[str]:
    return set(rows.column("url").to_pylist())


@pytest.mark.slow
def test_killed_a_hundred_times(embedded: Any, tmp_path: Path) -> None:
    rng = random.Random(5)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["gossamer.stages.fetch.task", "gossamer.stages.fetch.http"])
    kills = 0
    with hostile_server() as server:
        crawl = make(tmp_path, server, embedded)
        shutil.copytree(tmp_path / "crawl", tmp_path / "calm")
        calm = Crawl(str(tmp_path / "calm"), engine=embedded, sets=[f"{k}={v}" for k, v in given(crawl)])
        undisturbed = task_of(calm)
        fetch_partitions(undisturbed)
        expected = stable(published(undisturbed.home))
        while kills < KILLS:
            shutil.rmtree(tmp_path / "crawl" / "fetching", ignore_errors=True)
            shutil.rmtree(tmp_path / "crawl" / "segments" / "r000001-1" / "warc", ignore_errors=True)
            task = task_of(crawl)
            asked_before = len(server.requests)
            known: set[str] = set()
            while True:
                recover(task.home)
                rows = published(task.home)
                assert known <= urls_in(rows), "a published row was lost"
                known = urls_in(rows)
                task = replace(task, generation=task.home.generation())
                started = len(server.requests)
                process = processes.Process(target=fetch_partitions, args=(task,))
                process.start()
                wait_for(task.home.journal(task.number, task.generation), process)
                process.join(rng.uniform(0.0, 0.3) if kills < KILLS else None)
                if process.exitcode is None:
                    process.kill()
                    process.join()
                    kills += 1
                else:
                    assert process.exitcode == 0
                    break
                asked = {f"http://{r.host}{r.target}" for r in server.requests[started:]}
                assert not asked & known, "a published row was fetched again"
            assert stable(published(task.home)) == expected
            assert_archived(task.home)
            assert len(server.requests) > asked_before
    assert kills >= KILLS


def wait_for(path: Path, process: Any) -> None:
    """Until the process has begun to fetch, or has ended."""
    while not path.exists() and process.is_alive():
        time.sleep(0.005)


def given(crawl: Crawl) -> list[tuple[str, str]]:
    from gossamer.settings import toml_value, value_of, walk

    return [(k, toml_value(value_of(crawl.settings, k))) for k, _, _ in walk() if crawl.origin[k] == "--set"]


def stable(rows: pa.Table) -> dict[str, Any]:
    assert max(Counter(rows.column("url").to_pylist()).values()) == 1, "a URL has two rows"
    return {row["url"]: row for row in rows.select(STABLE).to_pylist()}


def assert_archived(home: Home) -> None:
    """Every row that names a record points to it, and each file is whole."""
    from fastwarc.stream_io import GZipStream  # noqa: F401  the reader that is not ours
    from fastwarc.warc import ArchiveIterator

    places = {}
    for path, _ in home.files.list(home.warc):
        with home.files.open(path) as stream:
            for record in ArchiveIterator(stream, verify_digests=True):
                places[path.rsplit("/", 1)[-1], record.stream_pos] = record.headers.get("WARC-Target-URI")
    for row in published(home).to_pylist():
        if row["warc_file"]:
            assert places[row["warc_file"], row["warc_offset"]] == row["url"]
