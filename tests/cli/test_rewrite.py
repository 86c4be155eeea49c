"""compact, reshard, migrate as commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Gossamer, state


def content(gossamer: Gossamer) -> list[dict[str, Any]]:
    return sorted(gossamer("--json", "read", "crawldb").rows, key=lambda row: row["rowkey"])


def sets(gossamer: Gossamer) -> tuple[int, int]:
    """File sets of the crawldb, and how many of its rows lie in change sets."""
    (table,) = gossamer("--json", "status").rows[0]["tables"]
    return table["sets"], table["delta_rows"]


def test_compact_what_is_due(filled: Path, gossamer: Gossamer):
    before = content(gossamer)
    result = gossamer("compact")
    assert result.err.startswith("✓ compact: rows before 5, rows written 5 · ")
    assert sets(gossamer) == (1, 0)
    assert content(gossamer) == before


def test_compact_when_nothing_is_due(filled: Path, gossamer: Gossamer):
    gossamer("compact")
    before = state(filled)
    assert gossamer("compact").out == "No table is due; name one to compact it anyway.\n"
    assert gossamer("-q", "compact").out == gossamer("--json", "compact").out == ""
    assert state(filled) == before


def test_compact_what_is_named(filled: Path, gossamer: Gossamer):
    assert gossamer("--set", "storage.compact_at=99", "compact").out.startswith("No table is due")
    gossamer("--set", "storage.compact_at=99", "compact", "crawldb")
    assert sets(gossamer) == (1, 0)


def test_compact_refuses(filled: Path, gossamer: Gossamer):
    before = state(filled)
    assert "there is no table nosuch" in gossamer("compact", "crawldb", "nosuch", code=2).error
    assert "fetch has no change sets to compact" in gossamer("compact", "fetch", code=2).error
    assert state(filled) == before


@pytest.mark.parametrize("shards", [1, 2, 8])
def test_reshard(filled: Path, gossamer: Gossamer, shards: int):
    before = content(gossamer)
    gossamer("reshard", shards)
    assert gossamer("--json", "status").rows[0]["shards"] == shards
    assert content(gossamer) == before
    gossamer("reshard", 4)
    assert content(gossamer) == before


@pytest.mark.parametrize("shards", ["0", "3", "8192"])
def test_reshard_refuses(filled: Path, gossamer: Gossamer, shards: str):
    before = state(filled)
    assert f"{shards} shards: choose a power of two from 1 to 4096" in gossamer("reshard", shards, code=2).error
    assert state(filled) == before


def test_migrate_when_all_is_new(filled: Path, gossamer: Gossamer):
    before = content(gossamer)
    gossamer("migrate")
    assert content(gossamer) == before


def test_an_older_schema_is_shown_and_migrated(filled: Path, gossamer: Gossamer, monkeypatch: pytest.MonkeyPatch):
    from gossamer.tables import TABLES
    from tests.stages.crawls import crawldb_version_2

    monkeypatch.setitem(TABLES, "crawldb", crawldb_version_2())
    assert "older schema: run `gossamer migrate`" in gossamer("status").out
    before = content(gossamer)
    assert {row["color"] for row in before} == {"red"}
    gossamer("migrate")
    assert "older schema" not in gossamer("status").out
    assert content(gossamer) == before
    latest = max((filled / "snapshots").iterdir())
    assert {s["version"] for s in json.loads(latest.read_text())["tables"]["crawldb"]} == {2}
