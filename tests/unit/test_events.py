"""Those who listen to a run: programs and people."""

from __future__ import annotations

import io
import json
import os
from typing import Any

import pytest

from gossamer.events import JsonLines, Silent, Stopwatch, Terminal, harmless

DONE: dict[str, Any] = {
    "event": "done",
    "stage": "load",
    "counters": {"rows_read": 12345, "rejected": 2},
    "drops": {"url is missing": 2},
    "seconds": 1.25,
    "snapshot": 7,
}
PHASE = {"event": "phase", "stage": "load", "phase": "read 3 files"}
PROGRESS = {"event": "progress", "stage": "load", "phase": "read", "done": 1000, "total": 2000}
LINE = "✓ load: rows read 12,345, rejected 2 (dropped: url is missing 2) · 1.2 s · snapshot 7\n"


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")


def test_json_lines_are_one_object_a_line():
    out = io.StringIO()
    reporter = JsonLines(out)
    note = {"event": "note", "text": "line\nbreak \u2028 \x85 \ud800 ünï"}
    for event in (DONE, note):
        reporter.tell(event)
    lines = out.getvalue().splitlines()
    assert [json.loads(line) for line in lines] == [DONE, note]
    assert out.getvalue().isascii()


def test_json_lines_are_flushed_at_once():
    read, write = os.pipe()
    with os.fdopen(write, "w") as out, os.fdopen(read) as seen:
        JsonLines(out).tell({"event": "start"})
        assert json.loads(seen.readline()) == {"event": "start"}


def test_a_program_that_leaves_does_not_stop_the_run():
    read, write = os.pipe()
    out = os.fdopen(write, "w")
    os.close(read)
    reporter = JsonLines(out)
    for _ in range(3):
        reporter.tell({"event": "start"})
    with pytest.raises(BrokenPipeError):
        out.close()


def test_silent_says_nothing(capfd: pytest.CaptureFixture[str]):
    for event in (PHASE, DONE):
        Silent().tell(event)
    assert capfd.readouterr() == ("", "")


def test_without_a_terminal_a_person_sees_the_closing_line_only(capsys: pytest.CaptureFixture[str]):
    reporter = Terminal()
    for event in ({"event": "start"}, PHASE, PROGRESS, PHASE, DONE):
        reporter.tell(event)
    assert capsys.readouterr() == ("", LINE)


def test_a_failed_run_is_told_by_the_error_alone(capsys: pytest.CaptureFixture[str]):
    reporter = Terminal()
    for event in (PHASE, {"event": "failed", "error": "x", "exit_code": 8}):
        reporter.tell(event)
    assert capsys.readouterr() == ("", "")


def test_nothing_done_and_nothing_dropped(capsys: pytest.CaptureFixture[str]):
    Terminal().tell(DONE | {"counters": {}, "drops": {}})
    assert capsys.readouterr().err == "✓ load: nothing to do · 1.2 s · snapshot 7\n"


def test_notes_are_shown_in_one_line(capsys: pytest.CaptureFixture[str]):
    Terminal().tell({"event": "note", "text": "a [red]long[/red] note " + "x" * 100})
    assert capsys.readouterr().err == "  a [red]long[/red] note " + "x" * 100 + "\n"


def test_nobody_can_draw_on_the_terminal(capsys: pytest.CaptureFixture[str]):
    Terminal().tell(DONE | {"drops": {"[red]\x1b[2J\u202e": 1}})
    Terminal().tell({"event": "note", "text": "\x1b]0;title\x07"})
    told = capsys.readouterr().err
    assert "(dropped: [red]\\x1b[2J\\u202e 1)" in told
    assert "\\x1b]0;title\\x07" in told
    assert not {"\x1b", "\x07", "\u202e"} & set(told)


def test_on_a_terminal_the_phase_is_drawn_and_wiped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes any stream for a terminal
    monkeypatch.setenv("TERM", "xterm")
    reporter = Terminal()
    for event in (PHASE, PROGRESS, DONE):
        reporter.tell(event)
    told = capsys.readouterr().err
    assert "load: read 3 files" in told
    assert "load: read 1,000/2,000" in told
    assert told.index("\x1b[2K") < told.index("✓"), "the spinner's line is erased before the closing line"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï𝄞 [x] \\", "plain ünï𝄞 [x] \\"),
        ("\x00\t\r\n\x1b\x7f\x9b", "\\x00\\x09\\x0d\\x0a\\x1b\\x7f\\x9b"),
        ("\u200e\u202e\u2028\u2066\u2069", "\\u200e\\u202e\\u2028\\u2066\\u2069"),
        ("\ud800", "\\ud800"),
    ],
)
def test_harmless(text: str, shown: str):
    assert harmless(text) == shown


def test_a_stopwatch_adds_up_phases():
    watch = Stopwatch()
    for phase in ("a", "b", "a", None):
        watch.phase(phase)
    assert list(watch.phases) == ["a", "b"]
    assert 0 <= sum(watch.phases.values()) <= watch.seconds + 0.01
