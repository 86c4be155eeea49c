"""The Python door: opening a crawl, its tables, its settings, and plugins that misbehave during a run."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import gossamer
from gossamer.crawl import Crawl
from gossamer.errors import CorruptError, CrawlMissing, PluginError, SettingsError, UsageError, VersionError
from gossamer.plugins.hookspecs import hookimpl
from gossamer.storage import runs
from gossamer.tables.spec import Column, Merge

ROW = '{"url": "https://example.org/%s", "domain": "example.org", "status": 1}\n'


class Listener:
    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def tell(self, event: dict[str, Any]) -> None:
        self.heard.append(event)


@pytest.fixture
def rows(tmp_path: Path) -> str:
    (tmp_path / "rows.jsonl").write_text("".join(ROW % n for n in range(5)))
    return str(tmp_path / "rows.jsonl")


def plugin(monkeypatch: pytest.MonkeyPatch, name: str, **hooks: Any) -> str:
    """An importable module with these hooks."""
    module = ModuleType(name)
    for hook, function in hooks.items():
        setattr(module, hook, hookimpl(function))
    monkeypatch.setitem(sys.modules, name, module)
    return f'plugins.load=["{name}"]'


def test_crawl_is_the_door():
    assert gossamer.Crawl is Crawl
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gossamer.nothing


def test_no_crawl(tmp_path: Path):
    with pytest.raises(CrawlMissing, match=r"no crawl here; make one with `gossamer init "):
        Crawl(str(tmp_path))


def test_a_table_is_an_ibis_table(tmp_path: Path, embedded_inline: Any, rows: str):
    with Crawl.init(str(tmp_path / "c"), engine=embedded_inline) as crawl:
        crawl.load("crawldb", rows)
        table = crawl.table("crawldb")
        assert embedded_inline.collect(table.filter(table.host == "example.org").count().as_table()).to_pylist() == [
            {"CountStar()": 5}
        ]
        assert crawl.table("crawldb", snapshot=0).columns == table.columns


@pytest.mark.parametrize(
    "call", [lambda c, _: c.table("nosuch"), lambda c, p: c.load("nosuch", p), lambda c, _: c.compact("nosuch")]
)
def test_an_unknown_table(tmp_path: Path, embedded_inline: Any, rows: str, call: Any):
    crawl = Crawl.init(str(tmp_path / "c"), engine=embedded_inline)
    with pytest.raises(UsageError, match="there is no table nosuch; choose from clusters, counted, crawldb, "):
        call(crawl, rows)
    assert runs.names(crawl.files) == []


@pytest.mark.parametrize("shards", [0, -4, 3, 8192])
def test_shards_are_a_power_of_two(tmp_path: Path, shards: int):
    with pytest.raises(UsageError, match="choose a power of two from 1 to 4096"):
        Crawl.init(str(tmp_path / "c"), shards=shards)
    assert not (tmp_path / "c").exists()


def test_bad_settings_are_refused_before_anything_is_made(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"did you mean engine\.workers"):
        Crawl.init(str(tmp_path / "c"), sets=["engine.worker=1"])
    assert not (tmp_path / "c").exists()


def test_a_settings_file_that_was_there_first_is_kept(tmp_path: Path):
    (tmp_path / "gossamer.toml").write_bytes(b"\xef\xbb\xbf[engine]\nworkers = 0\n")  # with the mark some editors write
    with Crawl.init(str(tmp_path)) as crawl:
        assert crawl.settings.engine.workers == 0
        assert crawl.origin["engine.workers"] == str(tmp_path / "gossamer.toml")


def test_a_settings_file_that_is_no_text(tmp_path: Path):
    (tmp_path / "gossamer.toml").write_bytes(b"[engine]\n# caf\xe9\n")
    with pytest.raises(SettingsError, match=r"gossamer\.toml: not UTF-8 at byte 14; save it as UTF-8"):
        Crawl.init(str(tmp_path))
    assert not (tmp_path / "snapshots").exists()


def test_a_crawl_needs_no_settings_file(tmp_path: Path):
    Crawl.init(str(tmp_path))
    (tmp_path / "gossamer.toml").unlink()
    assert set(Crawl(str(tmp_path)).origin.values()) == {"default"}


def test_a_table_of_the_future_needs_a_newer_version(tmp_path: Path):
    crawl = Crawl.init(str(tmp_path))
    path = tmp_path / "snapshots" / "00000000.json"
    path.write_text(path.read_text().replace('"tables": {}', '"tables": {"dreams": []}'))
    with pytest.raises(VersionError, match="knows no table dreams; upgrade with `pip install -U gossamer`"):
        crawl.tables_at(crawl.snapshot)


def test_a_damaged_snapshot_does_not_keep_the_door_shut(tmp_path: Path):
    Crawl.init(str(tmp_path))
    (tmp_path / "snapshots" / "00000000.json").write_text("{")
    crawl = Crawl(str(tmp_path))
    with pytest.raises(CorruptError):
        _ = crawl.snapshot


def test_a_raising_listener_is_told_once_counted_and_changes_nothing(
    tmp_path: Path, embedded_inline: Any, rows: str, monkeypatch: pytest.MonkeyPatch
):
    def raises(event: dict[str, Any]) -> None:
        raise RuntimeError(f"cannot {event['event']}")

    listener = Listener()
    sets = [plugin(monkeypatch, "raiser", gossamer_event=raises)]
    crawl = Crawl.init(str(tmp_path / "c"), engine=embedded_inline, sets=sets, reporter=listener)
    record = crawl.load("crawldb", rows)
    assert record.state == runs.DONE
    assert crawl.snapshot.id == 1
    notes = [event for event in listener.heard if event["event"] == "note"]
    text = "plugin raiser: gossamer_event failed (RuntimeError: cannot start); the run goes on, fix the plugin"
    assert notes == [{"event": "note", "stage": "load", "run": "00000000-load", "text": text}]
    told = [event["event"] for event in listener.heard if event["event"] not in ("note", "done")]
    stored = runs.load(crawl.files, "00000000-load")
    assert stored is not None
    assert stored.counters["plugin_errors"] == len(told) > 2
    assert stored.counters["rows_written"] == 5


def test_plugins_hear_what_listeners_hear(
    tmp_path: Path, embedded_inline: Any, rows: str, monkeypatch: pytest.MonkeyPatch
):
    heard: list[dict[str, Any]] = []
    listener = Listener()

    def hear(event: dict[str, Any]) -> None:
        heard.append(event)

    sets = [plugin(monkeypatch, "ears", gossamer_event=hear)]
    crawl = Crawl.init(str(tmp_path / "c"), engine=embedded_inline, sets=sets, reporter=listener)
    crawl.load("crawldb", rows)
    assert [event["event"] for event in heard] == ["start", "phase", "phase", "phase", "done"]
    assert heard == listener.heard


def test_a_run_with_a_broken_plugin_does_not_begin(tmp_path: Path, embedded_inline: Any, rows: str):
    Crawl.init(str(tmp_path / "c"))
    crawl = Crawl(str(tmp_path / "c"), engine=embedded_inline, sets=["plugins.load=no_such_plugin"])
    with pytest.raises(PluginError, match="plugin no_such_plugin cannot be loaded"):
        crawl.load("crawldb", rows)
    assert runs.names(crawl.files) == []


PRICE = Column("price", pa.int64(), "Price.", Merge.SUM, pass_to=("parse",))


def test_a_plugin_column_is_kept_when_the_plugin_is_gone(
    tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch
):
    priced = tmp_path / "priced.jsonl"
    priced.write_text((ROW % 1).replace("}", ', "price": 3}'))
    sets = [plugin(monkeypatch, "shop", gossamer_columns=lambda: [PRICE])]
    with_plugin = Crawl.init(str(tmp_path / "c"), shards=2, engine=embedded_inline, sets=sets)
    with_plugin.load("crawldb", str(priced))

    crawl = Crawl(str(tmp_path / "c"), engine=embedded_inline)
    (tmp_path / "more.jsonl").write_text((ROW % 1).replace("}", ', "price": 4}') + ROW % 2)
    crawl.load("crawldb", str(tmp_path / "more.jsonl"))
    crawl.compact("crawldb")
    found = embedded_inline.collect(crawl.table("crawldb").select("url", "price").order_by("url")).to_pylist()
    assert [row["price"] for row in found] == [7, None]
    assert crawl.row_changes("crawldb", 0, 2) == [{"change": "added", "rows": 2}]
    assert crawl.row_changes("crawldb", 2, 3) == [{"change": "equal", "rows": 2}]
    assert crawl.row_changes("crawldb", 1, 2) == [{"change": "added", "rows": 1}, {"change": "changed", "rows": 1}]


def test_a_column_passed_on_is_remembered_too(tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch):
    parsed = tmp_path / "parsed.jsonl"
    parsed.write_text(ROW.replace("}", ', "segment": "r000001-0", "price": 3}') % 1)
    sets = [plugin(monkeypatch, "shop", gossamer_columns=lambda: [PRICE])]
    Crawl.init(str(tmp_path / "c"), engine=embedded_inline, sets=sets).load("parse", str(parsed), segment="r000001-0")

    crawl = Crawl(str(tmp_path / "c"), engine=embedded_inline)
    assert embedded_inline.collect(crawl.table("parse").select("price")).to_pylist() == [{"price": 3}]
    assert crawl.tables_at(crawl.snapshot)["crawldb"].column("price").merge is Merge.SUM
