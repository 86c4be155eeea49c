"""inject: what new URLs begin with, what known ones keep, what they may learn; the same on every engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.errors import UsageError
from gossamer.plugins.hookspecs import hookimpl
from gossamer.stages.inject import inputs, job
from gossamer.tables.statuses import PageKind, Status
from gossamer.urls.chain import url_chain
from gossamer.urls.keys import fingerprint
from gossamer.urls.steps import Normalizer
from tests.stages.crawls import NOW, content

LATER = Clock.at("2026-03-02T12:00:00Z")
DAYS_30 = 30 * 24 * 3600
FIRST = """\
# first list
http://a.example/
http://b.example/b\tscore=2.5\tinterval=3600\tlang=de
www.c.example\thttp://www.c.example/1\thttp://www.c.example/2
http://a.example/
d.example/path
http://e.example/map.xml\tkind=sitemap
http://:80/
"""
SECOND = """\
http://a.example/\tscore=9\tinterval=7200\tcolour=red
http://b.example/b\tlang=en\tcolour=blue
http://b.example/b\tlang=fr
http://new.example/
http://www.c.example/1
"""


def new_crawl(root: Path, engine: Engine) -> Crawl:
    crawl = Crawl.init(str(root / "crawl"), shards=4, clock=NOW, engine=engine)
    crawl.clock = lambda: NOW
    return crawl


def seed_file(root: Path, text: str, name: str = "seeds.txt") -> str:
    (root / name).write_text(text)
    return str(root / name)


def rows(crawl: Crawl) -> dict[str, dict[str, Any]]:
    return {row["url"]: row for row in content(crawl).to_pylist(maps_as_pydicts="strict")}


def started(url: str, domain: str, rowkey: str, **told: Any) -> dict[str, Any]:
    """The whole row a seed begins with; whatever is not named is NULL."""
    return {
        "url": url,
        "url_fp": fingerprint(url),
        "domain_fp": fingerprint(domain),
        "rowkey": rowkey,
        "host": url.split("/")[2],
        "status": Status.UNFETCHED,
        "inlinks": 0,
        "cash": 1_000_000,
        "depth": 0,
        "updated_at": NOW.now,
        "next_fetch": NOW.now,
        "first_seen": NOW.now,
        "interval_s": DAYS_30,
        "failures": 0,
        "seed": "seeds",
        "kind": PageKind.PAGE,
        **told,
    }


EXPECTED = [
    started("http://a.example/", "a.example", "example.a:http/"),
    started(
        "http://b.example/b", "b.example", "example.b:http/b", cash=2_500_000, interval_s=3600, meta={"lang": "de"}
    ),
    started("http://www.c.example/1", "c.example", "example.c.www:http/1"),
    started("http://www.c.example/2", "c.example", "example.c.www:http/2"),
    started("http://d.example/path", "d.example", "example.d:http/path"),
    started("http://e.example/map.xml", "e.example", "example.e:http/map.xml", kind=PageKind.SITEMAP),
]


def test_new_known_and_updated(tmp_path: Path, engine: Engine) -> None:
    """One test for all, so that Spark starts its jobs once."""
    crawl = new_crawl(tmp_path, engine)
    record = crawl.inject(seed_file(tmp_path, FIRST))
    assert record.counters == {
        "lines": 8, "seeds": 8, "injected": 6, "duplicates": 1, "rejected": 1, "known": 0, "updated": 0,
    }  # fmt: skip
    known = rows(crawl)
    assert {url: {k: v for k, v in row.items() if v is not None} for url, row in known.items()} == {
        row["url"]: row for row in EXPECTED
    }

    crawl.clock = lambda: LATER
    record = crawl.inject(seed_file(tmp_path, SECOND, "more.txt"))
    assert record.counters == {"lines": 5, "seeds": 5, "injected": 1, "known": 3, "duplicates": 1, "updated": 0}
    after = rows(crawl)
    fresh = after.pop("http://new.example/")
    assert (fresh["seed"], fresh["updated_at"], fresh["cash"]) == ("more", LATER.now, 1_000_000)
    assert after == known

    record = crawl.inject(str(tmp_path / "more.txt"), update=True)
    assert record.counters == {"lines": 5, "seeds": 5, "injected": 0, "known": 2, "duplicates": 1, "updated": 2}
    updated = rows(crawl)
    changes = {"interval_s": 7200, "meta": {"colour": "red"}, "updated_at": LATER.now}
    assert updated["http://a.example/"] == known["http://a.example/"] | changes
    changes = {"meta": {"colour": "blue", "lang": "en"}, "updated_at": LATER.now}
    assert updated["http://b.example/b"] == known["http://b.example/b"] | changes
    untouched = after.keys() - {"http://a.example/", "http://b.example/b"}
    assert {url: updated[url] for url in untouched} == {url: known[url] for url in untouched}

    sets = len(crawl.snapshot.sets("crawldb"))
    assert crawl.inject(str(tmp_path / "more.txt"), update=True).counters["updated"] == 0
    assert rows(crawl) == updated
    assert len(crawl.snapshot.sets("crawldb")) == sets, "nothing to say, but a change set was written"


@pytest.fixture
def crawl(tmp_path: Path, embedded_inline: Engine) -> Crawl:
    return new_crawl(tmp_path, embedded_inline)


def fetched(crawl: Crawl, root: Path, **columns: Any) -> None:
    """A page that was found by its links and fetched: http://a.example/."""
    row = {"url": "http://a.example/", "domain": "a.example", "status": Status.FETCHED, "inlinks": 7, "cash": 5,
           "depth": 3, "failures": 2, "etag": "x", "interval_s": 100, "updated_at": NOW.now} | columns  # fmt: skip
    pq.write_table(pa.Table.from_pylist([row]), root / "fetched.parquet")
    crawl.load("crawldb", str(root / "fetched.parquet"))


def test_a_known_url_learns_its_tag_once_and_nothing_else(crawl: Crawl, tmp_path: Path) -> None:
    fetched(crawl, tmp_path)
    before = rows(crawl)["http://a.example/"]
    crawl.clock = lambda: LATER
    path = seed_file(tmp_path, "http://a.example/\tscore=9\tinterval=7200\tk=v\n")
    assert crawl.inject(path, source="first").counters["known"] == 1
    assert rows(crawl)["http://a.example/"] == before | {"seed": "first"}
    sets = crawl.snapshot.sets("crawldb")
    crawl.inject(path, source="second")
    assert rows(crawl)["http://a.example/"] == before | {"seed": "first"}
    assert crawl.snapshot.sets("crawldb") == sets


def test_updates_keep_state_counts_and_version(crawl: Crawl, tmp_path: Path) -> None:
    fetched(crawl, tmp_path, updated_at=LATER.now, meta=None)
    before = rows(crawl)["http://a.example/"]
    crawl.inject(seed_file(tmp_path, "http://a.example/\tinterval=7200\tk=v\n"), update=True)
    expected = before | {"seed": "seeds", "interval_s": 7200, "meta": {"k": "v"}}
    assert rows(crawl)["http://a.example/"] == expected
    crawl.compact("crawldb")
    assert rows(crawl)["http://a.example/"] == expected


def test_several_lists_and_the_first_line_wins(crawl: Crawl, tmp_path: Path) -> None:
    one = seed_file(tmp_path, "http://a.example/\tscore=2\nhttp://b.example/", "one.txt")
    two = seed_file(tmp_path, "http://b.example/\tscore=3\nhttp://A.example:80/\tscore=4\n", "two.list.txt")
    counters = crawl.inject(one, two).counters
    assert (counters["injected"], counters["duplicates"]) == (2, 2)
    found = rows(crawl)
    assert {url: (row["cash"], row["seed"]) for url, row in found.items()} == {
        "http://a.example/": (2_000_000, "one"),
        "http://b.example/": (1_000_000, "one"),
    }


def test_a_large_file_is_read_in_parts(crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "RANGE", 1000)
    monkeypatch.setattr(inputs, "BLOCK", 300)
    lines = [f"http://site{n}.example/{n}" if n % 50 else f"no url {n}" for n in range(500)]
    notes: list[str] = []
    crawl._reporter = Notes(notes)
    record = crawl.inject(seed_file(tmp_path, "\n".join(lines)), errors=str(tmp_path / "errors"))
    assert (record.counters["injected"], record.counters["rejected"], record.counters["lines"]) == (490, 10, 500)
    told = (tmp_path / "errors").read_text().splitlines()
    assert [(line.split(":")[1], line.split(": ")[2]) for line in told] == [
        (str(n + 1), f"no url {n}") for n in range(0, 500, 50)
    ]
    assert notes == told


def crawl_with(root: Path, engine: Engine, *sets: str) -> Crawl:
    Crawl.init(str(root / "crawl"), shards=4, clock=NOW)
    return Crawl(str(root / "crawl"), engine=engine, sets=sets, clock=lambda: NOW)


def test_filters(tmp_path: Path, embedded_inline: Engine) -> None:
    rules = seed_file(tmp_path, "-spam\n+.\n", "rules.txt")
    crawl = crawl_with(tmp_path, embedded_inline, f"filters.regex_files=['{rules}']")
    text = "http://spam.example/\nhttp://a.example/\nhttp://:80/\nhttp://spam.example/2"
    record = crawl.inject(seed_file(tmp_path, text), errors=str(tmp_path / "errors"))
    counters = record.counters
    assert (counters["filtered"], counters["rejected"], counters["injected"]) == (2, 1, 1)
    assert 2 in record.drops.values()
    assert set(rows(crawl)) == {"http://a.example/"}
    told = (tmp_path / "errors").read_text().splitlines()
    assert [line.removeprefix(f"{tmp_path}/").split(":")[1] for line in told] == ["1", "3", "4"]
    with pytest.raises(UsageError, match=r"none of the seeds can be taken \(.*rules.txt.*: 1\)"):
        crawl.inject(seed_file(tmp_path, "http://spam.example/3", "spam.txt"))


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ("host", "http://www.a.example/x", "http://b.a.example/x"),
        ("domain", "http://b.a.example/x", "http://b.example/x"),
        ("seed", "http://www.a.example/news/x", "http://www.a.example/x"),
    ],
)
def test_the_scope_knows_every_seed(
    tmp_path: Path, embedded_inline: Engine, scope: str, inside: str, outside: str
) -> None:
    crawl = crawl_with(tmp_path, embedded_inline, f"filters.scope={scope}")
    crawl.inject(seed_file(tmp_path, "http://www.a.example/news/1\n"))
    crawl.inject(seed_file(tmp_path, "http://other.example/\n", "more.txt"))
    found = url_chain(crawl).filter(pa.array([inside, outside, "http://other.example/y"]), "parse")
    assert found.is_null().to_pylist() == [True, False, True]


def failing(urls: pa.Array, rules: Any, stage: str) -> pa.Array:
    if pc.any(pc.match_substring(urls, "poison")).as_py():
        raise RuntimeError("cannot bear it")
    return urls


class Plugin:
    """A normaliser that fails on one URL."""

    @hookimpl
    def gossamer_normalizers(self) -> list[Normalizer]:
        return [Normalizer("failing", failing)]


def test_a_plugin_that_fails_is_told_and_counted(tmp_path: Path, embedded_inline: Engine) -> None:
    crawl = crawl_with(tmp_path, embedded_inline, "urls.normalizers=['failing']")
    crawl.plugins.register(Plugin())
    notes: list[str] = []
    crawl._reporter = Notes(notes)
    one = seed_file(tmp_path, "http://a.example/\nhttp://poison.example/\n", "one.txt")
    record = crawl.inject(one, seed_file(tmp_path, "http://poison.example/2\n", "two.txt"))
    assert (record.counters["injected"], record.counters["plugin_errors"]) == (3, 2)
    assert len([note for note in notes if "failing failed: RuntimeError: cannot bear it (1 URLs" in note]) == 2


@dataclass
class Notes:
    """Keeps the notes of runs."""

    texts: list[str]

    def tell(self, event: dict[str, Any]) -> None:
        if event["event"] == "note":
            self.texts.append(event["text"])


def test_an_interrupted_run_keeps_its_clock(crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = seed_file(tmp_path, FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(job, "_write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            crawl.inject(path)
    crawl.clock = lambda: LATER
    assert crawl.inject(path).attempt == 2
    assert rows(crawl)["http://a.example/"]["first_seen"] == NOW.now
    assert list(crawl.files.list("scratch")) == []


def test_a_list_that_changes_meanwhile(crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "stamp_of", lambda path: "other")
    with pytest.raises(UsageError, match="changed while it was read"):
        crawl.inject(seed_file(tmp_path, FIRST))
    assert crawl.snapshot.id == 0


def test_the_interval_of_the_settings(tmp_path: Path, embedded_inline: Engine) -> None:
    crawl = crawl_with(tmp_path, embedded_inline, "schedule.interval_s=600")
    crawl.inject(seed_file(tmp_path, "http://a.example/\n"))
    assert rows(crawl)["http://a.example/"]["interval_s"] == 600
