"""The journal outlives a kill at any byte, and what was written last counts."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gossamer.errors import StorageError
from gossamer.stages.fetch.journal import LONGEST_MS, RECORD, Journal, last_requests
from gossamer.urls.keys import fingerprint


def written(path: Path, *notes: tuple[str, float, float]) -> Path:
    journal = Journal(path)
    for note in notes:
        journal.note(*note)
    journal.close()
    return path


def test_of_each_queue_the_last_request_and_its_delay(tmp_path: Path):
    path = written(tmp_path / "j.bin", ("a.test", 100.0, 1.0), ("b.test", 101.5, 0.25), ("a.test", 102.25, 7.5))
    assert last_requests([path]) == {fingerprint("a.test"): (102.25, 7.5), fingerprint("b.test"): (101.5, 0.25)}


def test_nothing_is_there_before_flush_and_all_is_after(tmp_path: Path):
    journal = Journal(tmp_path / "deep/j.bin")
    journal.note("a.test", 1.0, 1.0)
    assert last_requests([tmp_path / "deep/j.bin"]) == {}
    journal.flush()
    assert last_requests([tmp_path / "deep/j.bin"]) == {fingerprint("a.test"): (1.0, 1.0)}
    journal.flush()
    assert (tmp_path / "deep/j.bin").stat().st_size == RECORD.size
    journal.close()


@pytest.mark.parametrize("torn", range(1, RECORD.size))
def test_a_torn_last_record_costs_only_itself(tmp_path: Path, torn: int):
    path = written(tmp_path / "j.bin", ("a.test", 1.0, 1.0), ("a.test", 2.0, 1.0), ("b.test", 3.0, 1.0))
    os.truncate(path, 2 * RECORD.size + torn)
    assert last_requests([path]) == {fingerprint("a.test"): (2.0, 1.0)}


def test_one_that_goes_on_after_a_torn_record_is_readable(tmp_path: Path):
    path = written(tmp_path / "j.bin", ("a.test", 1.0, 1.0), ("b.test", 2.0, 1.0))
    os.truncate(path, RECORD.size + 7)
    written(path, ("c.test", 3.0, 1.0))
    assert last_requests([path]) == {fingerprint("a.test"): (1.0, 1.0), fingerprint("c.test"): (3.0, 1.0)}


def test_of_several_files_the_latest_counts_in_whatever_order(tmp_path: Path):
    first = written(tmp_path / "1.bin", ("a.test", 5.0, 1.0), ("b.test", 1.0, 1.0))
    second = written(tmp_path / "2.bin", ("a.test", 4.0, 2.0), ("b.test", 2.0, 3.0), ("c.test", 9.0, 1.0))
    expected = {fingerprint("a.test"): (5.0, 1.0), fingerprint("b.test"): (2.0, 3.0), fingerprint("c.test"): (9.0, 1.0)}
    assert last_requests([first, second]) == last_requests([second, first]) == expected


def test_a_server_that_wants_time_gets_it_whatever_is_noted_later(tmp_path: Path):
    path = written(tmp_path / "j.bin", ("a.test", 1000.0, 1.0), ("a.test", 1001.0, 120.0), ("a.test", 1002.0, 1.0))
    other = written(tmp_path / "k.bin", ("a.test", 1010.0, 1.0))
    assert last_requests([path]) == {fingerprint("a.test"): (1002.0, 119.0)}
    assert last_requests([path, other]) == last_requests([other, path]) == {fingerprint("a.test"): (1010.0, 111.0)}


def test_an_empty_journal_says_nothing(tmp_path: Path):
    assert last_requests([written(tmp_path / "j.bin")]) == {}
    assert last_requests([]) == {}


def test_a_delay_of_years_fits(tmp_path: Path):
    path = written(tmp_path / "j.bin", ("a.test", 1.0, 1e12))
    assert last_requests([path])[fingerprint("a.test")][1] == LONGEST_MS / 1000


def test_a_write_that_takes_a_part_at_a_time_is_brought_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write = os.write
    journal = Journal(tmp_path / "j.bin")
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    for n in range(5):
        journal.note(f"{n}.test", float(n), 1.0)
    journal.flush()
    monkeypatch.undo()
    assert last_requests([tmp_path / "j.bin"]) == {fingerprint(f"{n}.test"): (float(n), 1.0) for n in range(5)}
    journal.close()


def test_a_full_disk_is_a_storage_error_and_closing_twice_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = Journal(tmp_path / "j.bin")
    journal.note("a.test", 1.0, 1.0)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match=r"j\.bin: No space left"):
        journal.flush()
    with pytest.raises(StorageError):
        journal.close()
    journal.close()
