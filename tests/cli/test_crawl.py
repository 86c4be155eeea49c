"""init, status, runs, graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gossamer.pipeline import STAGES
from gossamer.settings import Settings, load_settings
from gossamer.storage import leases
from gossamer.storage.local import LocalFiles
from tests.cli.conftest import Gossamer, page, state, write_lines


def test_init_makes_a_crawl(tmp_path: Path, gossamer: Gossamer):
    result = gossamer("init")
    assert result.out == f"Made a crawl at {tmp_path}/crawl with 16 shards; its settings are in gossamer.toml.\n"
    assert load_settings((tmp_path / "crawl/gossamer.toml").read_text(), environment={}).settings == Settings()
    assert sorted(path.name for path in (tmp_path / "crawl").iterdir()) == ["gossamer.toml", "snapshots"]


def test_init_elsewhere_quietly_and_for_programs(tmp_path: Path, gossamer: Gossamer):
    assert gossamer("-q", "init", tmp_path / "a").out == ""
    assert gossamer("--json", "init", tmp_path / "b", "--shards", 2).rows == [
        {"event": "done", "crawl": str(tmp_path / "b"), "snapshot": 0, "shards": 2}
    ]
    assert gossamer("-C", tmp_path / "b", "--json", "status").rows[0]["shards"] == 2


def test_init_twice_changes_nothing(filled: Path, gossamer: Gossamer):
    before = state(filled)
    assert gossamer("init", code=2).error == f"{filled}: there is a crawl already; choose another directory"
    assert state(filled) == before


@pytest.mark.parametrize("shards", [0, 3, 8192])
def test_init_with_a_wrong_number_of_shards(tmp_path: Path, gossamer: Gossamer, shards: int):
    assert "choose a power of two from 1 to 4096" in gossamer("init", "--shards", shards, code=2).error
    assert not (tmp_path / "crawl").exists()


def test_init_where_a_file_is(tmp_path: Path, gossamer: Gossamer):
    (tmp_path / "crawl").write_text("precious")
    assert "a file is in the way" in gossamer("init", code=8).error
    assert (tmp_path / "crawl").read_text() == "precious"


def test_a_place_we_cannot_reach(gossamer: Gossamer):
    error = gossamer("-C", "ftp://example.org/x", "status", code=2).error
    assert error == "ftp://example.org/x: ftp:// is not supported; use a directory or s3://bucket/prefix"


def test_status_of_an_empty_crawl(crawl: Path, gossamer: Gossamer):
    head, rest = gossamer("status").out.splitlines()
    assert head.startswith(f"{crawl} · snapshot 0 of 20")
    assert head.endswith(" · 4 shards")
    assert rest == "No tables yet."


def test_status_of_a_filled_crawl(filled: Path, gossamer: Gossamer):
    (facts,) = gossamer("--json", "status").rows
    assert (facts["snapshot"], facts["running"], facts["interrupted"]) == (2, [], [])
    (table,) = facts["tables"]
    assert (table["table"], table["rows"], table["delta_rows"], table["sets"]) == ("crawldb", 6, 6, 2)
    assert table["note"] == "due for `gossamer compact`"
    shown = gossamer("status").out
    assert "crawldb" in shown
    assert "due for `gossamer compact`" in shown


def test_status_shows_segments(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    gossamer("-q", "load", "text", write_lines(tmp_path / "t.jsonl", _text()), "--segment", "r000001-0")
    assert "segment r000001-0: load" in gossamer("status").out


def _text() -> dict[str, str]:
    return {"url": "https://example.org/", "domain": "example.org", "segment": "r000001-0", "main": "words"}


def test_status_shows_who_is_running(filled: Path, gossamer: Gossamer):
    lease = leases.acquire(LocalFiles(str(filled)), "load", {"stage": "load", "run": "00000002-load", "snapshot": 2})
    try:
        assert "running: load (process " in gossamer("status").out
        assert gossamer("--json", "status").rows[0]["running"][0]["run"] == "00000002-load"
    finally:
        lease.release()


def test_status_shows_what_was_interrupted(filled: Path, gossamer: Gossamer):
    done = json.loads((filled / "runs/00000001-load.json").read_text())
    for stage in ("compact", "load"):
        cut = done | {"run": f"00000002-{stage}", "stage": stage, "state": "running", "published": None}
        (filled / f"runs/00000002-{stage}.json").write_text(json.dumps(cut))
    (filled / "runs/00000001-load.json").write_text(
        json.dumps(done | {"state": "running"})
    )  # published: not interrupted
    assert gossamer("--json", "status").rows[0]["interrupted"] == ["00000002-compact", "00000002-load"]
    assert "interrupted: 00000002-load; the same command resumes it" in gossamer("status").out


def test_runs(filled: Path, gossamer: Gossamer):
    assert [row[0] for row in gossamer("runs").lines] == ["run", "00000000-load", "00000001-load"]
    assert [row[0] for row in gossamer("runs", "--limit", 1).lines] == ["run", "00000001-load"]
    first, second = gossamer("--json", "runs").rows
    assert (first["state"], first["published"], second["counters"]["rows_written"]) == ("done", 1, 2)
    assert first["settings"] == {"engine.workers": 0}


def test_one_run(filled: Path, gossamer: Gossamer):
    assert gossamer("--json", "runs", "00000001-load").rows[0]["parent"] == 1
    shown = dict(line for line in gossamer("runs", "00000001-load").lines if len(line) == 2)
    assert (shown["stage"], shown["state"], shown["published"]) == ("load", "done", "2")


@pytest.mark.parametrize("name", ["nosuch", "../gossamer", "../snapshots/00000000"])
def test_a_run_that_is_not_there(filled: Path, gossamer: Gossamer, name: str):
    assert gossamer("runs", name, code=2).error == f"there is no run {name}; see `gossamer runs`"


def test_a_damaged_run_record(filled: Path, gossamer: Gossamer):
    (filled / "runs/00000001-load.json").write_text("{")
    assert "damaged run record" in gossamer("runs", code=6).error
    assert len(gossamer("--json", "read", "crawldb").rows) == 5


def test_a_failed_run_is_listed_with_its_error(filled: Path, tmp_path: Path, gossamer: Gossamer):
    gossamer("load", "crawldb", write_lines(tmp_path / "bad.jsonl", page(1, nosuch=1)), code=2)
    last = gossamer("--json", "runs").rows[-1]
    assert last["state"] == "failed"
    assert "crawldb has no column nosuch" in last["error"]
    assert "crawldb has no column nosuch" in gossamer("runs").out


def test_graph_needs_no_crawl(gossamer: Gossamer):
    assert {row["name"] for row in gossamer("--json", "graph").rows} == set(STAGES)
    shown = gossamer("graph").out
    assert all(name in shown and stage.balance in shown for name, stage in STAGES.items())
