"""snapshots list, diff, rollback, collect."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Gossamer, page, state, write_lines


def urls(gossamer: Gossamer) -> int:
    return len(gossamer("--json", "read", "crawldb").rows)


def test_list(filled: Path, gossamer: Gossamer):
    rows = gossamer("--json", "snapshots", "list").rows
    assert [(row["snapshot"], row["parent"], row["stage"], row["rows"]) for row in rows] == [
        (0, None, "init", 0),
        (1, 0, "load", 4),
        (2, 1, "load", 6),
    ]
    shown = gossamer("snapshots", "list").lines
    assert [line[:2] for line in shown[1:]] == [["0", "init"], ["1", "load"], ["2", "load"]]


def test_diff_of_file_sets(filled: Path, gossamer: Gossamer):
    gossamer("compact", "crawldb")
    rows = gossamer("--json", "snapshots", "diff", 2, 3).rows
    assert [(row["change"], row["kind"], row["rows"]) for row in rows] == [
        ("-", "change set", 4),
        ("-", "change set", 2),
        ("+", "base", 5),
    ]
    assert gossamer("--json", "snapshots", "diff", 2).rows == rows
    assert "tables/crawldb/00000002-compact" in gossamer("snapshots", "diff", 2).out


def test_diff_of_nothing(filled: Path, gossamer: Gossamer):
    assert gossamer("snapshots", "diff", 2, 2).out == "Nothing changed from snapshot 2 to 2.\n"
    assert gossamer("--json", "snapshots", "diff", 2, 2).rows == []


def test_diff_of_rows(filled: Path, gossamer: Gossamer):
    gossamer("compact", "crawldb")
    changes = [
        ((0, 1), {"added": 4}),
        ((1, 2), {"added": 1, "changed": 1, "equal": 3}),
        ((2, 1), {"changed": 1, "equal": 3, "removed": 1}),
        ((2, 3), {"equal": 5}),
    ]
    for pair, expected in changes:
        rows = gossamer("--json", "snapshots", "diff", *pair, "--rows", "crawldb").rows
        assert {row["change"]: row["rows"] for row in rows} == expected


def test_diff_of_a_table_with_segments(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    for segment in ("r000001-0", "r000002-0"):
        row = {"url": "https://example.org/", "domain": "example.org", "segment": segment, "outcome": 1}
        gossamer("load", "fetch", write_lines(tmp_path / "a.jsonl", row), "--segment", segment)
    rows = gossamer("--json", "snapshots", "diff", 1, 2, "--rows", "fetch").rows
    assert rows == [{"change": "added", "rows": 1}, {"change": "equal", "rows": 1}]


def test_diff_refuses(filled: Path, gossamer: Gossamer):
    assert "there is no snapshot 7" in gossamer("snapshots", "diff", 7, code=2).error
    assert "there is no snapshot 7" in gossamer("snapshots", "diff", 1, 7, code=2).error
    assert "there is no table nosuch" in gossamer("snapshots", "diff", 1, "--rows", "nosuch", code=2).error


def test_rollback_deletes_nothing_and_can_be_undone(filled: Path, gossamer: Gossamer):
    before = state(filled)
    assert gossamer("snapshots", "rollback", 1).out == "Snapshot 3 holds what snapshot 1 held.\n"
    assert urls(gossamer) == 4
    assert before.items() <= state(filled).items()
    (made,) = gossamer("--json", "snapshots", "rollback", 2).rows
    assert (made["snapshot"], made["parent"], made["note"]) == (4, 3, "back to snapshot 2")
    assert urls(gossamer) == 5
    assert gossamer("-q", "snapshots", "rollback", 0).out == ""
    assert urls(gossamer) == 0


def test_rollback_to_nowhere(filled: Path, gossamer: Gossamer):
    before = state(filled)
    assert gossamer("snapshots", "rollback", 9, code=2).error == "there is no snapshot 9; see `gossamer snapshots list`"
    assert state(filled) == before


def test_rollback_cures_a_damaged_snapshot(filled: Path, gossamer: Gossamer):
    (filled / "snapshots/00000002.json").write_text("{torn")
    assert "roll back" in gossamer("status", code=6).error
    rows = gossamer("--json", "snapshots", "list").rows
    assert [row["note"].startswith("damaged: ") for row in rows] == [False, False, True]
    gossamer("snapshots", "rollback", 1)
    assert urls(gossamer) == 4


def test_collect(filled: Path, tmp_path: Path, gossamer: Gossamer):
    gossamer("compact", "crawldb")
    before = state(filled)
    assert gossamer("snapshots", "collect").out == "Dropped 0 snapshots and 0 files (0.0 MB).\n"
    assert state(filled) == before

    (would,) = gossamer("--json", "snapshots", "collect", "--keep", 1, "--dry-run").rows
    assert (would["snapshots"], would["dry_run"]) == ([0, 1, 2], True)
    assert would["files"] > 2
    assert "Would drop 3 snapshots" in gossamer("snapshots", "collect", "--keep", 1, "--dry-run").out
    assert state(filled) == before

    (gone,) = gossamer("--json", "snapshots", "collect", "--keep", 1).rows
    assert gone == would | {"dry_run": False}
    assert urls(gossamer) == 5
    assert not (filled / "tables/crawldb/00000000-load").exists()
    assert "there is no snapshot 1" in gossamer("snapshots", "rollback", 1, code=2).error


def test_collect_keeps_what_the_settings_say(filled: Path, gossamer: Gossamer):
    gossamer("--set", "storage.keep_snapshots=2", "snapshots", "collect")
    assert [row["snapshot"] for row in gossamer("--json", "snapshots", "list").rows] == [1, 2]


def test_collect_takes_what_a_dead_run_left(filled: Path, gossamer: Gossamer):
    orphan = filled / "tables/crawldb/00000002-load/part-00000-00000-001.parquet"
    orphan.parent.mkdir()
    orphan.write_text("half a file")
    gossamer("snapshots", "collect")
    assert not orphan.exists()
    assert urls(gossamer) == 5


def test_loading_goes_on_after_a_rollback(filled: Path, tmp_path: Path, gossamer: Gossamer):
    gossamer("snapshots", "rollback", 1)
    gossamer("load", "crawldb", write_lines(tmp_path / "a.jsonl", page(8)))
    assert urls(gossamer) == 5
