"""Printing rows: harmless for people, exact for programs."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gossamer.cli import show

AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)
NASTY = 'a"b,c\n\x1b[2J\u2028\x85<script>\u202e'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (-(2**63), -(2**63)),
        (0.5, 0.5),
        (float("nan"), None),
        (float("inf"), None),
        ("x", "x"),
        (b"\xffabc", "\\xffabc"),
        (AT, "2026-01-02T03:04:05.678Z"),
        ([], []),
        ({}, {}),
        (["a", AT], ["a", "2026-01-02T03:04:05.678Z"]),
        ({"a": float("nan"), "b": [b"x"]}, {"a": None, "b": ["x"]}),
    ],
)
def test_plain_values(value: Any, expected: Any):
    assert show.plain(value) == expected
    json.loads(show.as_json(value))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (12, "12"),
        (True, "true"),
        (0.25, "0.25"),
        ("x\ty\x1b", "x\\x09y\\x1b"),
        ({"k": "é\u202e"}, '{"k": "é\\u202e"}'),
        (["a\nb"], '["a\\nb"]'),
        (AT, "2026-01-02T03:04:05.678Z"),
    ],
)
def test_cells(value: Any, shown: str):
    assert show.cell(value) == shown


def test_json_lines(capsys: pytest.CaptureFixture[str]):
    rows: list[dict[str, Any]] = [
        {"url": NASTY, "n": 1, "at": AT, "meta": {"k": "ü"}},
        {"url": None, "n": None, "at": None, "meta": {}},
    ]
    show.print_json_lines(rows)
    out = capsys.readouterr().out
    lines = out.splitlines()  # splits at U+2028 and U+0085, too
    assert len(lines) == 2
    assert json.loads(lines[0]) == {"url": NASTY, "n": 1, "at": "2026-01-02T03:04:05.678Z", "meta": {"k": "ü"}}
    assert json.loads(lines[1]) == rows[1]
    assert not {"\x1b", "\u202e"} & set(out)
    assert "ü" in out


def test_csv_is_exact(capsys: pytest.CaptureFixture[str]):
    rows: list[dict[str, Any]] = [
        {"url": NASTY, "n": 1, "meta": {"k": "v"}, "tags": ["a"]},
        {"url": None, "n": None, "meta": None, "tags": []},
    ]
    show.print_csv(["n", "url", "meta", "tags"], rows)
    found = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert found == [["n", "url", "meta", "tags"], ["1", NASTY, '{"k": "v"}', '["a"]'], ["", "", "", "[]"]]


def test_csv_on_a_terminal_is_harmless(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show.print_csv(["url"], [{"url": NASTY}])
    assert not {"\x1b", "\u202e", "\u2028"} & set(capsys.readouterr().out)


def test_csv_without_rows_has_its_header(capsys: pytest.CaptureFixture[str]):
    show.print_csv(["a", "b"], [])
    assert capsys.readouterr().out == "a,b\n"


def test_a_table_in_a_pipe_is_as_wide_as_it_needs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "20")
    show.print_table(("url", "n"), [("https://example.org/" + "x" * 200, 1), ("[bold]markup[/bold]", 20)])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 3
    assert lines[0].split() == ["url", "n"]
    assert lines[1].endswith("x" * 200 + "   1")
    assert lines[2].startswith("[bold]markup[/bold] ")
    assert lines[2].endswith(" 20"), "numbers stand at the right"


def test_a_table_obeys_no_control_characters(capsys: pytest.CaptureFixture[str]):
    show.print_table(("url",), [(NASTY,)])
    out = capsys.readouterr().out
    assert "\\x0a\\x1b[2J\\u2028\\x85<script>\\u202e" in out
    assert not {"\x1b", "\u202e", "\u2028", "\x85"} & set(out)


def test_a_table_without_rows(capsys: pytest.CaptureFixture[str]):
    show.print_table(("a", "b"), [])
    assert capsys.readouterr().out.split() == ["a", "b"]
