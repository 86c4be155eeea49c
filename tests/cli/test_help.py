"""Help, version and calls that are wrong."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from gossamer import __version__
from gossamer.cli.main import app
from tests.cli.conftest import Gossamer


def commands(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = getattr(command, "commands", {})
    return [path, *(found for name, child in below.items() for found in commands(child, (*path, name)))]


ALL = commands(typer.main.get_command(app))


def test_the_commands_are_these():
    assert {" ".join(path) for path in ALL} >= {
        *("init", "status", "runs", "graph", "load", "compact", "migrate", "reshard", "read", "config show"),
        *("snapshots list", "snapshots diff", "snapshots rollback", "snapshots collect"),
    }


@pytest.mark.parametrize("path", ALL, ids=" ".join)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_explains_itself(gossamer: Gossamer, path: tuple[str, ...], flag: str):
    result = gossamer(*path, flag)
    assert "Usage: gossamer" in result.out
    assert result.err == ""


def test_version(gossamer: Gossamer):
    assert gossamer("--version").out == f"gossamer {__version__}\n"


def test_without_a_command_the_help_is_shown(gossamer: Gossamer):
    result = gossamer(code=2)
    assert "Usage: gossamer" in result.out
    assert result.err == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reed"], "No such command 'reed'. Did you mean 'read'?; see `gossamer --help`"),
        (["read"], "Missing argument 'table'; see `gossamer read --help`"),
        (["read", "crawldb", "--frmat", "csv"], "No such option: --frmat"),
        (["read", "crawldb", "--limit", "-1"], "--limit"),
        (["read", "crawldb", "--limit", "few"], "--limit"),
        (["read", "crawldb", "--format", "xml"], "'table', 'jsonl', 'csv'"),
        (["reshard", "many"], "shards"),
        (["snapshots", "diff"], "Missing argument"),
        (["snapshots", "collect", "--keep", "0"], "--keep"),
        (["runs", "--limit", "0"], "--limit"),
    ],
)
def test_a_wrong_call_is_one_line(gossamer: Gossamer, crawl: Any, arguments: list[str], said: str):
    error = gossamer(*arguments, code=2).error
    assert said.lower() in error.lower()
    assert error.endswith("--help`")


def test_errors_for_programs(gossamer: Gossamer, crawl: Any):
    result = gossamer("--json", "read", "nosuch", code=2)
    assert result.rows == [{"event": "error", "error": result.error, "exit_code": 2}]
    result = gossamer("--json", "reed", code=2)
    assert result.rows[0]["exit_code"] == 2
