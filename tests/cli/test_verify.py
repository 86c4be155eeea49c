"""verify: every flipped bit is found, and nothing damaged is written anew."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from gossamer.errors import CorruptError
from gossamer.storage.snapshots import read_manifest
from tests.stages.crawls import content, make_crawl

ARGUMENTS: dict[str, dict[str, Any]] = {"compact": {"table": "crawldb"}, "reshard": {"shards": 8}}


def flip(path: Path, rng: random.Random) -> bytes:
    """Flip one random bit of a file; gives the bytes before."""
    before = path.read_bytes()
    at = rng.randrange(len(before) * 8)
    damaged = bytearray(before)
    damaged[at // 8] ^= 1 << at % 8
    path.write_bytes(damaged)
    return before


def test_every_flipped_bit_is_found(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=2, count=50)
    assert all(not entry["error"] for entry in crawl.verify())
    rng = random.Random(1)
    files = [entry.path for s in crawl.snapshot.sets("crawldb") for entry in read_manifest(crawl.files, s)]
    for _ in range(40):
        path = rng.choice(files)
        before = flip(Path(crawl.files.url(path)), rng)
        assert [entry["path"] for entry in crawl.verify() if entry["error"]] == [path]
        Path(crawl.files.url(path)).write_bytes(before)


@pytest.mark.parametrize("stage", ["compact", "reshard"])
def test_damaged_input_is_not_written_anew(tmp_path: Path, embedded_inline: Any, stage: str) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=2, count=50)
    expected = content(crawl)
    path = Path(crawl.files.url(read_manifest(crawl.files, crawl.snapshot.sets("crawldb")[1])[0].path))
    before = flip(path, random.Random(2))
    with pytest.raises(CorruptError, match="checksum"):
        crawl.run(stage, **ARGUMENTS[stage])
    assert crawl.snapshot.id == 2
    path.write_bytes(before)
    crawl.run(stage, **ARGUMENTS[stage])
    assert content(crawl).equals(expected)
