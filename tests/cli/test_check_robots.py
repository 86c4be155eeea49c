"""gossamer check robots: URLs from stdin against a robots.txt."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Gossamer, Result

TEXT = b"""# ours
User-agent: *
Disallow: /private
Allow: /private/open\t# yes
Crawl-delay: 2.5
User-agent: other
Disallow: /
Sitemap: https://example.org/s.xml
"""


@pytest.fixture
def ask(gossamer: Gossamer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Runs the command with this on stdin and this file."""

    def call(given: bytes, *arguments: object, before: tuple[str, ...] = (), text: bytes = TEXT) -> Result:
        (tmp_path / "robots.txt").write_bytes(text)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        return gossamer(*before, "check", "robots", "--file", tmp_path / "robots.txt", *arguments)

    return call


def rows(result: Result) -> list[list[str]]:
    return [line.split("\t") for line in result.out.splitlines()]


def test_urls_are_decided(ask):
    given = b"http://a/\nHTTP://A/x/../%70rivate?y#z\nhttps://a/private/open/1\nftp://a/\nprivate\nhttp://a:x/\n\n"
    assert rows(ask(given)) == [
        ["allow", "http://a/", ""],
        ["disallow", "HTTP://A/x/../%70rivate?y#z", "3: Disallow: /private"],
        ["allow", "https://a/private/open/1", "4: Allow: /private/open\\x09# yes"],
        ["disallow", "ftp://a/", "scheme"],
        ["disallow", "private", "not a URL"],
        ["disallow", "http://a:x/", "port"],
        ["disallow", "", "not a URL"],
    ]


def test_agents(ask):
    given = b"http://a/x\n"
    assert rows(ask(given, "--agent", "Other/2.0 (+http://a/)")) == [["disallow", "http://a/x", "7: Disallow: /"]]
    ours = TEXT + b"User-agent: Gossamer\nDisallow: /x\n"
    assert rows(ask(given, text=ours)) == [["disallow", "http://a/x", "10: Disallow: /x"]]
    assert rows(ask(given, "--agent", "third", text=ours)) == [["allow", "http://a/x", ""]]


def test_explained(ask):
    assert rows(ask(b"http://a/\nx", "--explain")) == [
        ["allow", "http://a/", ""],
        ["", "group", "*"],
        ["", "crawl-delay", "2.5 s"],
        ["", "sitemap", "https://example.org/s.xml"],
        ["disallow", "x", "not a URL"],
    ]
    assert rows(ask(b"http://a/", "--explain", text=b""))[1:] == [["", "group", "none"], ["", "crawl-delay", "none"]]


def test_json(ask):
    result = ask(b"http://a/private\nhttp://a/\xff\n", before=("--json",))
    assert [json.loads(line) for line in result.out.splitlines()] == [
        {"result": "disallow", "url": "http://a/private", "why": "3: Disallow: /private"},
        {"result": "allow", "url": "http://a/\\xff", "why": ""},
    ]


def test_nothing_on_stdin(ask):
    assert ask(b"").out == ""


def test_a_file_that_is_not_there(gossamer: Gossamer, tmp_path: Path):
    gone = tmp_path / "gone.txt"
    assert gossamer("check", "robots", "--file", gone, code=2).error == (
        f"--file {gone}: No such file or directory; check the path"
    )
    assert "Is a directory" in gossamer("check", "robots", "--file", tmp_path, code=2).error


def test_files_end_where_fetching_would_end_them(ask):
    long = b"User-agent: *\nDisallow: /a\n" + b"#\n" * 256_000 + b"Disallow: /b\n"
    assert [row[0] for row in rows(ask(b"http://a/a\nhttp://a/b", text=long))] == ["disallow", "allow"]
