"""Run records: stored over their earlier state, found by name, damage named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gossamer.errors import CorruptError
from gossamer.storage import runs
from gossamer.storage.files import Files
from gossamer.storage.runs import RunRecord

RECORD = RunRecord("00000003-load", "load", None, {"table": "crawldb"}, 3, "2026-01-01T00:00:00.000Z", "0.1")


def test_a_record_comes_back(files: Files):
    assert runs.load(files, RECORD.run) is None
    runs.save(files, RECORD)
    assert runs.load(files, RECORD.run) == RECORD
    done = replace(RECORD, state=runs.DONE, counters={"rows": 3}, published=4)
    runs.save(files, done)
    assert runs.load(files, RECORD.run) == done


def test_names_are_in_order_and_without_strangers(files: Files):
    for name in ("00000010-load", "00000002-load", "00000002-inject"):
        runs.save(files, replace(RECORD, run=name))
    files.replace("runs/.tmp-0123", b"half")
    assert runs.names(files) == ["00000002-inject", "00000002-load", "00000010-load"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b'{"run": 1, "unheard": 2}'])
def test_damage_is_named(files: Files, damage: bytes):
    files.replace(runs.path_of("x"), damage)
    with pytest.raises(CorruptError, match=r"x\.json: .*delete it to forget that run"):
        runs.load(files, "x")
