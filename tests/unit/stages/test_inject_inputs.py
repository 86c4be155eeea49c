"""Seed lists as bytes: parts that share no line and lose none, gzip, marks, streams."""

from __future__ import annotations

import gzip
import io
import os
import random
import threading
from pathlib import Path

import pytest

from gossamer.errors import UsageError
from gossamer.stages.inject import inputs
from gossamer.stages.inject.inputs import (
    MAX_LINE,
    Part,
    SeedList,
    blocks,
    parts_of,
    seed_lists,
    spooled,
    stamp_of,
    tag_of,
    whole_lines,
)
from gossamer.storage.local import LocalFiles


def listed(path: Path) -> SeedList:
    return SeedList(str(path), str(path), "tag")


def lines(part: Part) -> list[bytes]:
    return [line for block in blocks(part) for line in block.split(b"\n")]


@pytest.mark.parametrize("seed", range(20))
def test_parts_hold_every_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int):
    rng = random.Random(seed)
    monkeypatch.setattr(inputs, "RANGE", rng.choice([1, 7, 50]))
    monkeypatch.setattr(inputs, "BLOCK", rng.choice([1, 5, 64]))
    expected = [b"x" * rng.choice([0, 1, 3, 60, 200]) for _ in range(rng.randrange(40))]
    end = rng.choice([b"", b"\n"]) if expected and expected[-1] else b""
    bom = rng.choice([b"", inputs.BOM])
    (tmp_path / "a").write_bytes(bom + b"\n".join(expected) + end)
    parts = parts_of(listed(tmp_path / "a"))
    found = [line for part in parts for line in lines(part)]
    if expected and not expected[-1]:
        expected.pop()  # what follows the last line end is no line
    assert found == expected


def test_a_line_without_end_does_not_fill_the_memory():
    pieces = (b"x" * (1 << 20) for _ in range(64))
    (line,) = whole_lines(pieces)
    assert len(line) == MAX_LINE + 1
    first, second = whole_lines([b"x" * (3 << 20), b"x" * (3 << 20), b"\nnext\n", b"last"])
    assert [len(line) for line in first.split(b"\n")] == [MAX_LINE + 1, 4]
    assert second == b"last"


def test_gzip_is_known_by_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inputs, "RANGE", 4)
    two = gzip.compress(inputs.BOM + b"a\nb") + gzip.compress(b"c\nd\n")
    (tmp_path / "seeds.txt").write_bytes(two)
    (part,) = parts_of(listed(tmp_path / "seeds.txt"))
    assert lines(part) == [b"a", b"bc", b"d"]
    (tmp_path / "plain.gz").write_bytes(b"a\nb\n")
    assert lines(Part(listed(tmp_path / "plain.gz"))) == [b"a", b"b"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "tail"])
def test_broken_gzip(tmp_path: Path, damage: str):
    data = bytearray(gzip.compress(random.Random(0).randbytes(5000).hex().encode()))
    if damage == "cut":
        del data[-100:]
    elif damage == "flipped":
        data[len(data) // 2] ^= 255
    else:
        data += b"garbage"
    (tmp_path / "a.gz").write_bytes(data)
    with pytest.raises(UsageError, match=r"a\.gz: the gzip file is cut or damaged \(.*\); get or make it again"):
        lines(Part(listed(tmp_path / "a.gz")))


def test_utf16_is_refused_with_its_cure(tmp_path: Path):
    (tmp_path / "a").write_text("http://a.example/", encoding="utf-16")
    with pytest.raises(UsageError, match="UTF-16; save it as UTF-8"):
        parts_of(listed(tmp_path / "a"))


@pytest.mark.parametrize(
    ("path", "tag"),
    [("/x/news.de.txt.gz", "news"), ("-", "stdin"), ("seeds", "seeds"), ("/x/.hidden.txt", "hidden"), ("...", "...")],
)
def test_tags(path: str, tag: str):
    assert tag_of(path) == tag


def test_stamps(tmp_path: Path):
    (tmp_path / "a").write_text("x")
    before = stamp_of(str(tmp_path / "a"))
    (tmp_path / "a").write_text("xy")
    assert before != stamp_of(str(tmp_path / "a"))
    with pytest.raises(UsageError, match="is a directory; name the files in it"):
        stamp_of(str(tmp_path))
    with pytest.raises(UsageError, match="No such file"):
        stamp_of(str(tmp_path / "b"))
    with pytest.raises(UsageError, match="null byte"):
        stamp_of("a\0b")


def test_stdin_lies_in_scratch_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = LocalFiles(str(tmp_path))
    seen = []
    for text in (b"a\nb", b"a\nb", b"other"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        with spooled(["-"], files, None) as stamps:
            (seeds,) = seed_lists(["-"], stamps, None, files)
            assert (seeds.name, seeds.tag) == ("stdin", "stdin")
            assert lines(Part(seeds)) == text.split(b"\n")
        seen += stamps
        assert list(files.list("scratch")) == []
    assert seen[0] == seen[1] != seen[2]


def test_a_pipe_is_read_once(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"a\nb",))
    writer.start()
    files = LocalFiles(str(tmp_path / "crawl"))
    with spooled([str(pipe)], files, None) as stamps:
        (seeds,) = seed_lists([str(pipe)], stamps, "given", files)
        assert lines(Part(seeds)) == [b"a", b"b"]
        assert (seeds.name, seeds.tag) == (str(pipe), "given")
    writer.join()


def test_no_list_at_all(tmp_path: Path):
    with pytest.raises(UsageError, match="no seed list"), spooled([], LocalFiles(str(tmp_path)), None):
        pass
