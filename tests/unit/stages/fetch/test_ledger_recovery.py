"""Recovery: whatever a crash leaves, published rows keep their bytes and nothing else stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gossamer.errors import CorruptError
from gossamer.stages.fetch.ledger import Form, Home, Ledger, recover
from gossamer.storage.local import LocalFiles
from tests.faults.disk import CalmDisk, Journal
from tests.faults.recording import RECORDABLE, RecordingDisk
from tests.unit.stages.fetch.ledgers import (
    FORM,
    SEGMENT,
    begun,
    fetched,
    home_at,
    lengths,
    published,
    refused,
    url_of,
    warcs,
)

PAGES = 7


def fetch_some(home: Home, first: int, generation: int) -> None:
    """Pages, some of them in parts of their own, in more than one WARC file."""
    begun(home, generation)
    ledger = Ledger(home, Form({}, 2_500, True, 1), 0, generation)
    for n in range(first, PAGES):
        fetched(ledger, n, bytes(range(256)))
        if n % 2:
            ledger.publish()
    ledger.close()


@pytest.mark.parametrize("kind", RECORDABLE)
def test_after_every_crash_what_is_left_can_be_gone_on_with(tmp_path: Path, kind: str):
    folder, copies = tmp_path / "disk", tmp_path / "copies"
    folder.mkdir()
    disk = RecordingDisk(Journal(folder / "inodes"), kind, folder, copies)
    fetch_some(home_at(folder / "crawl", disk), 0, 1)
    disk.keep(ended=True)
    counts = set()
    for step in disk.kept:
        home = home_at(copies / str(step) / "crawl", CalmDisk())
        begun(home)
        before = set(published(home))  # whose bytes are all there, before anything was recovered
        recover(home)
        assert set(published(home)) == before
        assert before == {url_of(n) for n in range(len(before))}
        counts.add(len(before))
        assert set(warcs(home)) == {name for part in lengths(home) for name in part}  # all whole, and no others
        recover(home)
        fetch_some(home, len(before), 2)
        assert set(published(home)) == {url_of(n) for n in range(PAGES)}
        shutil.rmtree(copies / str(step))
    assert counts >= {0, 2, 4, 6, PAGES}


def test_what_grew_after_the_last_part_is_cut_off(tmp_path: Path):
    home = home_at(tmp_path)
    begun(home)
    ledger = Ledger(home, FORM, 0, 1)
    fetched(ledger, 1)
    ledger.close()
    before = warcs(home)
    (path,) = Path(home.spool.url(home.warc)).iterdir()
    path.write_bytes(path.read_bytes() + b"half a record")
    recover(home)
    assert warcs(home) == before
    assert set(published(home)) == {url_of(1)}


def test_a_file_without_a_row_is_dropped_if_its_generation_is_not_finished(tmp_path: Path):
    home = home_at(tmp_path)
    begun(home, 2)
    folder = Path(home.spool.url(home.warc))
    folder.mkdir(parents=True)
    for generation in (1, 2, 3):
        (folder / f"{SEGMENT}-00000-g{generation:03d}-00000.warc.gz").write_bytes(b"anything")
    recover(home)
    assert sorted(path.name for path in folder.iterdir()) == [f"{SEGMENT}-00000-g00{n}-00000.warc.gz" for n in (1, 3)]


def test_files_of_a_snapshot_that_was_rolled_back_are_kept(tmp_path: Path):
    home = home_at(tmp_path)
    ledger = Ledger(home, FORM, 0, 1)
    fetched(ledger, 1)
    ledger.close()
    for path, _ in list(home.files.list(home.folder)):
        home.files.delete(path)  # its parts became tables
    before = warcs(home)
    assert before
    recover(home)
    assert warcs(home) == before


def test_a_file_that_is_shorter_than_its_rows_say_is_corrupt(tmp_path: Path):
    home = home_at(tmp_path)
    begun(home)
    ledger = Ledger(home, FORM, 0, 1)
    fetched(ledger, 1)
    ledger.close()
    (path,) = Path(home.spool.url(home.warc)).iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptError, match=r"warc\.gz: [\d,]+ bytes, but rows point to .* restore it"):
        recover(home)


def test_a_file_that_is_gone_although_rows_point_to_it_is_corrupt(tmp_path: Path):
    home = home_at(tmp_path)
    begun(home)
    ledger = Ledger(home, FORM, 0, 1)
    fetched(ledger, 1)
    ledger.close()
    (path,) = Path(home.spool.url(home.warc)).iterdir()
    path.unlink()
    with pytest.raises(CorruptError, match=r"warc\.gz: the file is missing, but rows point to it; restore it"):
        recover(home)


def test_nothing_to_recover(tmp_path: Path):
    recover(home_at(tmp_path))


def test_on_object_storage_what_was_published_goes_up(tmp_path: Path):
    far, spool = LocalFiles(str(tmp_path / "far")), LocalFiles(str(tmp_path / "spool"))
    local = Home(spool, spool, SEGMENT)  # as a ledger leaves it that was killed before anything went up
    begun(local)
    ledger = Ledger(local, FORM, 0, 1)
    fetched(ledger, 1)
    refused(ledger, 2)
    ledger.close()
    (path,) = Path(spool.url(local.warc)).iterdir()
    path.write_bytes(path.read_bytes() + b"half a record")

    class Elsewhere:
        def __getattr__(self, name: str) -> object:
            return getattr(far, name)

    home = Home(Elsewhere(), spool, SEGMENT)  # type: ignore[arg-type]
    recover(home)
    assert set(published(home)) == {url_of(1), url_of(2)}
    assert [Path(path).suffix for path, _ in spool.list("")] == [".bin"]
