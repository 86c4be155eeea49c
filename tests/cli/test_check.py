"""gossamer check: URLs from stdin through the chain."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Gossamer


@pytest.fixture
def ask(gossamer: Gossamer, monkeypatch: pytest.MonkeyPatch):
    """Runs a command with this on stdin; gives its lines, cut at tabs."""

    def call(given: str | bytes, *arguments: object, code: int = 0) -> list[list[str]]:
        data = given.encode() if isinstance(given, str) else given
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        call.result = gossamer(*arguments, code=code)  # type: ignore[attr-defined]
        return [line.split("\t") for line in call.result.out.splitlines()]  # type: ignore[attr-defined]

    return call


def test_normalize(ask):
    given = " HTTP://Example.org/%7ea?PHPSESSID=1 \nhttp://example.org/\nftp://a/\nexample.org\nhttp://a:x/\n\n"
    assert ask(given, "check", "normalize") == [
        ["http://example.org/~a", " HTTP://Example.org/%7ea?PHPSESSID=1 ", "whatwg, encoding, sessions"],
        ["http://example.org/", "http://example.org/", ""],
        ["-", "ftp://a/", "scheme"],
        ["-", "example.org", "not a URL"],
        ["-", "http://a:x/", "port"],
        ["-", "", "not a URL"],
    ]


def test_settings_count(ask):
    given = "http://example.org/a//index.html"
    assert ask(given, "--set", "urls.normalizers=index,slashes", "check", "normalize") == [
        ["http://example.org/a/", given, "index, slashes"]
    ]
    assert ask(given, "--set", 'urls.at={"update" = "slashes"}', "check", "normalize", "--stage", "update")[0][0] == (
        "http://example.org/a/index.html"
    )


def test_explained(ask):
    assert ask("http://a/%7e?sid=1\nx", "check", "normalize", "--explain") == [
        ["http://a/~", "http://a/%7e?sid=1", "encoding, sessions"],
        ["", "encoding", "http://a/~?sid=1"],
        ["", "sessions", "http://a/~"],
        ["-", "x", "not a URL"],
        ["", "whatwg", "rejected"],
    ]
    steps = ask("http://a/x/b/x/c/x/", "check", "filter", "--explain")
    assert steps[0] == ["-", "http://a/x/b/x/c/x/", "repeated segments"]
    assert ["", "length", "kept"] in steps
    assert ["", "repeats", "repeated segments"] in steps


def test_what_was_given_is_harmless(ask):
    given = b"http://a/\xff\tb\x1b[2J\r\nhttp://b/\xe2\x80\xae\nhttp://\xff/\x00\n"
    lines = ask(given, "check", "normalize")
    assert [line[1] for line in lines] == ["http://a/\\xff\\x09b\\x1b[2J", "http://b/\\u202e", "http://\\xff/\\x00"]
    assert [line[0] for line in lines] == ["http://a/%EF%BF%BDb%1B[2J", "http://b/%E2%80%AE", "-"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "regex": "# Nutch\n-\\.gif$\n-(a)\\1\n-.*(/[^/]+)/[^/]+\\1/[^/]+\\1/\n+.\n",
        "prefix": "http://\n-http://example.org/private/\n",
        "suffix": "+\n.zip\n",
        "domains": "example.org\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    return {name: tmp_path / f"{name}.txt" for name in texts}


def test_regex_rules(ask, files: dict[str, Path]):
    lines = ask(
        "http://A.B/\nhttp://a/b.gif\nhttp://a/b/x/b/y/b/\n",
        "--set",
        "filters.max_repeats=0",
        "check",
        "filter",
        "--regex",
        files["regex"],
    )
    assert lines == [
        ["+", "http://A.B/", "regex.txt:5 +."],
        ["-", "http://a/b.gif", "regex.txt:2 -\\.gif$"],
        ["-", "http://a/b/x/b/y/b/", "regex.txt:4 -.*(/[^/]+)/[^/]+\\1/[^/]+\\1/"],
    ]
    assert ask.result.error == "regex.txt:3: -(a)\\1 is refused: a back-reference is not possible in linear time"


def test_all_kinds_of_files(ask, files: dict[str, Path]):
    given = "http://example.org/a\nhttp://example.org/private/b\nhttp://example.org/c.zip\nhttp://other.org/\nhttps://example.org/\n"
    options = ["--prefix", files["prefix"], "--suffix", files["suffix"], "--domains-file", files["domains"]]
    assert [[line[0], line[2]] for line in ask(given, "check", "filter", *options)] == [
        ["+", "prefix.txt:1 +http://"],
        ["-", "prefix.txt:2 -http://example.org/private/"],
        ["-", "suffix.txt:2 .zip"],
        ["-", "out of scope"],
        ["-", "prefix.txt: no line matches"],
    ]


def test_filters_see_urls_as_given_unless_told(ask, files: dict[str, Path]):
    options = ["check", "filter", "--prefix", files["prefix"]]
    assert ask("HTTP://a/\nftp://a/", *options)[0][0] == "-"
    assert [line[::2] for line in ask("HTTP://a/\nftp://a/", *options, "--normalize")] == [
        ["+", "prefix.txt:1 +http://"],
        ["-", "scheme"],
    ]


def test_inside_a_crawl(ask, crawl: Path):
    (crawl / "mine.txt").write_text("+/good/\n")
    (crawl / "gossamer.toml").write_text('[filters]\nregex_files = ["mine.txt"]\n')
    given = "http://a/good/\nhttp://a/bad/"
    assert [line[0] for line in ask(given, "check", "filter")] == ["+", "-"]
    assert not (crawl / "rules").exists(), "looking changes nothing"


def test_domain(ask):
    assert ask("www.Example.co.uk\nhttps://a.github.io/x\ncom\n.com\n192.0.2.1", "check", "domain") == [
        ["example.co.uk", "www.Example.co.uk", "public suffix co.uk"],
        ["a.github.io", "https://a.github.io/x", "public suffix github.io"],
        ["-", "com", "public suffix"],
        ["-", ".com", "not a host"],
        ["192.0.2.1", "192.0.2.1", "address"],
    ]


def test_json(ask):
    ask("http://a/%7e\n", "--json", "check", "normalize", "--explain")
    assert [json.loads(line) for line in ask.result.out.splitlines()] == [
        {"result": "http://a/~", "url": "http://a/%7e", "why": "encoding", "steps": [["encoding", "http://a/~"]]}
    ]


def test_nothing_on_stdin(ask):
    for command in ("normalize", "filter", "domain"):
        assert ask("", "check", command) == []


def test_what_is_wrong(ask):
    ask("x", "check", "normalize", "--stage", "nowhere", code=3)
    assert ask.result.error.startswith("there is no stage nowhere for URLs")
    ask("x", "check", "filter", "--regex", "/no/such/file", code=3)
    assert "filters.regex_files: /no/such/file: No such file or directory" in ask.result.error


def test_failing_plugins_are_told(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "broken_filter.py").write_text(
        "from gossamer.plugins.hookspecs import hookimpl\nfrom gossamer.urls.steps import Filter\n"
        "def mine(batch, rules):\n    raise ValueError('ouch')\n"
        "@hookimpl\ndef gossamer_filters():\n    return [Filter('mine', mine)]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    sets = ["--set", "plugins.load=broken_filter", "--set", "filters.chain=mine"]
    assert ask("http://a/\nhttp://b/", *sets, "check", "filter") == [["+", "http://a/", ""], ["+", "http://b/", ""]]
    assert ask.result.error == "filter mine failed: ValueError: ouch (2 URLs went on without it)"


def test_many_lines_stream(tmp_path: Path):
    count = 120_000
    given = "".join(f"http://example.org/{number}\n" for number in range(count)).encode()
    done = subprocess.run(
        [sys.executable, "-m", "gossamer", "-C", str(tmp_path), "check", "normalize"],
        input=given,
        capture_output=True,
        check=True,
        timeout=60,
    )
    lines = done.stdout.decode().splitlines()
    assert len(lines) == count
    assert lines[-1] == f"http://example.org/{count - 1}\thttp://example.org/{count - 1}\t"
