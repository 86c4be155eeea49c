"""inject as users call it: files that are none, errors by line, streams."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Gossamer, intact, state

GOOD = "http://a.example/1\nhttp://a.example/2\n"


def urls(gossamer: Gossamer) -> list[str]:
    return sorted(row["url"] for row in gossamer("--json", "read", "crawldb", "--columns", "url").rows)


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def done(gossamer: Gossamer, *arguments: Any) -> dict[str, Any]:
    event = gossamer("--json", "inject", *arguments).rows[-1]
    assert event["event"] == "done"
    return dict(event["counters"])


@pytest.mark.parametrize(
    "data",
    [
        GOOD,
        GOOD.strip(),
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        gzip.compress(GOOD.encode()),
        "a.example\thttp://a.example/1\thttp://a.example/2",
        "a.example/1\na.example/2",
    ],
)
def test_every_form_gives_the_same_urls(crawl: Path, tmp_path: Path, gossamer: Gossamer, data: str | bytes):
    assert done(gossamer, write(tmp_path / "seeds.txt", data))["injected"] == 2
    assert urls(gossamer) == ["http://a.example/1", "http://a.example/2"]


def test_stdin(crawl: Path, gossamer: Gossamer, monkeypatch: pytest.MonkeyPatch):
    for _ in range(2):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
        gossamer("inject", "-")
    (tag,) = {row["seed"] for row in gossamer("--json", "read", "crawldb").rows}
    assert tag == "stdin"
    assert not (crawl / "scratch").exists()


def test_the_source_tag(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    gossamer("inject", write(tmp_path / "news.txt", "http://a.example/1"), "--source", "mine")
    gossamer("inject", write(tmp_path / "news.txt", GOOD))
    assert {row["url"][-1]: row["seed"] for row in gossamer("--json", "read", "crawldb").rows} == {
        "1": "mine",
        "2": "news",
    }


def test_bad_lines_are_told_by_file_and_line(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    one = write(tmp_path / "one", b"# x\nhttp://a.example/\nno url\n\nhttp://b.example/\xff\n")
    two = write(tmp_path / "two", "http://c.example/\tscore=\x1b[2Jhigh\n")
    result = gossamer("inject", one, two, "--errors", tmp_path / "errors")
    lines = (tmp_path / "errors").read_text().splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{one}:3", f"{one}:5", f"{two}:1"]
    assert lines[0].endswith(": no url")
    assert lines[1] == f"{one}:5: not UTF-8: http://b.example/\\xff"
    assert lines[2].startswith(f"{two}:1: score is not a number")
    for line in lines:
        assert line in result.err
    assert "injected 1" in result.err
    assert "rejected 3" in result.err


def test_no_more_than_twenty_are_told(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    path = write(tmp_path / "seeds", GOOD + "".join(f"no url {n}\n" for n in range(50)))
    events = gossamer("--json", "inject", path, "--errors", tmp_path / "errors").rows
    notes = [event["text"] for event in events if event["event"] == "note"]
    assert [note.rsplit(": ")[-1] for note in notes[:-1]] == [f"no url {n}" for n in range(20)]
    assert notes[-1] == "… and 30 more bad lines; see all of them with --errors FILE"
    assert len((tmp_path / "errors").read_text().splitlines()) == 50
    assert (tmp_path / "errors").read_text().splitlines()[49].startswith(f"{path}:52: ")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("no url\nno url either\n", "none of the seeds can be taken ("),
        (b"\0" * 5000, "none of the seeds can be taken (NUL in the line: 1)"),
        (bytes(range(128, 256)) * 100, "none of the seeds can be taken (not UTF-8: 1)"),
        (b"x" * (10 << 20), "none of the seeds can be taken (line longer than 1,024 KiB, break it up: 1)"),
        (gzip.compress(GOOD.encode())[:-4], "the gzip file is cut or damaged (Compressed file ended before"),
        (
            gzip.compress(GOOD.encode()) + b"tail",
            "the gzip file is cut or damaged (Not a gzipped file (b'ta')); get or make it again",
        ),
        (GOOD.encode("utf-16"), "the text is UTF-16; save it as UTF-8"),
    ],
)
def test_files_that_are_no_seed_lists(filled: Path, tmp_path: Path, gossamer: Gossamer, data: str | bytes, said: str):
    before = state(filled)
    failed = gossamer("inject", write(tmp_path / "seeds", data), code=2)
    assert said in failed.err.splitlines()[-1]
    assert intact(before, filled)


def test_a_long_line_costs_only_itself(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    path = write(tmp_path / "seeds", b"http://a.example/\n" + b"y" * (10 << 20) + b"\nhttp://b.example/\n")
    counters = done(gossamer, path)
    assert (counters["injected"], counters["rejected"], counters["lines"]) == (2, 1, 3)


@pytest.mark.parametrize("data", ["", "# nothing\n\n   \n", "\ufeff", gzip.compress(b"")])
def test_lists_without_seeds(filled: Path, tmp_path: Path, gossamer: Gossamer, data: str | bytes):
    result = gossamer("inject", write(tmp_path / "seeds", data))
    assert "there are no seeds in the input" in result.err
    assert len(urls(gossamer)) == 5


def test_paths_that_lead_nowhere(filled: Path, tmp_path: Path, gossamer: Gossamer):
    assert (
        "missing: No such file or directory; check the path" in gossamer("inject", tmp_path / "missing", code=2).error
    )
    assert "is a directory; name the files in it" in gossamer("inject", tmp_path, code=2).error
    good = write(tmp_path / "good", GOOD)
    assert "missing: No such file" in gossamer("inject", good, tmp_path / "missing", code=2).error
    error = gossamer("inject", good, "--errors", tmp_path / "no" / "file", code=2).error
    assert error.startswith(f"--errors {tmp_path}/no/file: No such file or directory")
    assert "Missing argument" in gossamer("inject", code=2).error
    assert len(urls(gossamer)) == 5


def test_known_urls_stay_as_they_are(filled: Path, tmp_path: Path, gossamer: Gossamer):
    def known() -> list[dict[str, Any]]:
        found = gossamer("--json", "read", "crawldb").rows
        return sorted((row | {"seed": None} for row in found), key=lambda row: str(row["url"]))

    before = known()
    path = write(tmp_path / "seeds", "".join(f"{row['url']}\tscore=5\tk=v\n" for row in before))
    assert done(gossamer, path)["known"] == 5
    assert known() == before
    assert done(gossamer, path, "--update")["updated"] == 5
    now = known()
    assert [row["inlinks"] for row in now] == [row["inlinks"] for row in before]
    assert {json.dumps(row["meta"]) for row in now} == {'{"k": "v"}'}


def test_the_run_says_what_was_dropped(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    gossamer("inject", write(tmp_path / "seeds", b"http://a.example/\nhttp://a.example/\n\xff\n"))
    (run,) = gossamer("--json", "runs").rows
    assert run["drops"] == {"not UTF-8": 1, "same URL earlier in the input": 1}
