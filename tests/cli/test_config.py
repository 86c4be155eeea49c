"""config show, and settings from everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.settings import walk
from tests.cli.conftest import Gossamer


def test_every_setting_with_its_origin(crawl: Path, gossamer: Gossamer, monkeypatch: pytest.MonkeyPatch):
    (crawl / "gossamer.toml").write_text('[storage]\nkeep_snapshots = 7\n[plugins]\nload = ["json"]\n')
    rows = {row["setting"]: row for row in gossamer("--json", "--set", "engine.memory_mb=512", "config", "show").rows}
    assert list(rows) == [key for key, _, _ in walk()]
    assert (rows["storage.keep_snapshots"]["value"], rows["storage.keep_snapshots"]["origin"]) == (
        7,
        f"{crawl}/gossamer.toml",
    )
    assert (rows["engine.memory_mb"]["value"], rows["engine.memory_mb"]["origin"]) == (512, "--set")
    assert rows["engine.workers"]["origin"] == "environment variable GOSSAMER_ENGINE__WORKERS"
    assert (rows["engine.kind"]["value"], rows["engine.kind"]["origin"]) == ("embedded", "default")
    assert rows["plugins.load"]["value"] == ["json"]


def test_one_setting_or_section(crawl: Path, gossamer: Gossamer):
    assert [row["setting"] for row in gossamer("--json", "config", "show", "engine.kind").rows] == ["engine.kind"]
    assert {row["setting"].split(".")[0] for row in gossamer("--json", "config", "show", "storage").rows} == {"storage"}
    header, line = gossamer("config", "show", "engine.kind").lines
    assert header == ["setting", "value", "origin", "meaning"]
    assert line[:3] == ["engine.kind", '"embedded"', "default"]


def test_a_setting_that_is_not_there(crawl: Path, gossamer: Gossamer):
    error = gossamer("config", "show", "engine.nosuch", code=2).error
    assert error == "there is no setting engine.nosuch; see `gossamer config show`"


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["runs"],
        ["read", "crawldb"],
        ["config", "show"],
        ["snapshots", "list"],
        ["snapshots", "rollback", "0"],
        ["snapshots", "collect"],
        ["compact"],
        ["migrate"],
        ["reshard", "2"],
    ],
    ids=" ".join,
)
def test_no_command_overlooks_an_unknown_key(crawl: Path, gossamer: Gossamer, command: list[str]):
    error = gossamer("--set", "engine.wrokers=3", *command, code=3).error
    assert error == "--set: unknown setting engine.wrokers; did you mean engine.workers?"
    (crawl / "gossamer.toml").write_text("[storage]\nkeep = 3\n")
    error = gossamer(*command, code=3).error
    assert error.startswith(f"{crawl}/gossamer.toml: unknown setting storage.keep; did you mean storage.")


def test_a_plugin_that_does_not_exist(crawl: Path, gossamer: Gossamer):
    error = gossamer("--set", "plugins.load=no_such_plugin", "read", "crawldb", code=11).error
    assert error.startswith("plugin no_such_plugin cannot be loaded (ModuleNotFoundError: ")
    assert error.endswith("fix it or take it out of plugins.load")


def test_scratch_files_go_where_the_settings_say(filled: Path, tmp_path: Path, gossamer: Gossamer):
    error = gossamer("--set", f"engine.scratch={tmp_path}/none", "read", "crawldb", code=3).error
    assert error == f"engine.scratch: {tmp_path}/none: No such file or directory; name a directory that can be written"
    (tmp_path / "scratch").mkdir()
    gossamer("--set", f"engine.scratch={tmp_path}/scratch", "read", "crawldb", "--format", "csv")
    assert list((tmp_path / "scratch").iterdir()) == [], "nothing is left behind"
