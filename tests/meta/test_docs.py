"""Docs are made from the code and are up to date; nothing a user can call, set, read or hook into is missing there."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from gossamer import docs
from gossamer.pipeline import STAGES
from gossamer.plugins import hookspecs
from gossamer.settings import walk
from gossamer.tables import TABLES
from tests.cli.test_help import ALL

FOLDER = Path(__file__).parents[2] / "docs"
PAGES = docs.pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str):
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name], "run `make docs`"


def test_generated_pages_say_that_they_are():
    said = {path.name for path in FOLDER.glob("*.md") if docs.NOTE.strip() in path.read_text(encoding="utf-8")}
    assert said == set(PAGES), "a generated page that is no longer made should be deleted"


def test_every_command():
    leaves = [path for path in ALL if not any(other[: len(path)] == path != other for other in ALL)]
    for path in leaves:
        assert f"## `gossamer {' '.join(path)}" in PAGES["commands.md"]
    assert PAGES["commands.md"].count("\n## ") == len(leaves)
    assert "None" not in PAGES["commands.md"], "an argument or option has no help"


def test_every_setting():
    for key, _, doc in walk():
        assert f"| `{key}` |" in PAGES["settings.md"]
        assert doc in PAGES["settings.md"]


def test_every_table_and_column():
    for table in TABLES.values():
        section = PAGES["tables.md"].split(f"## {table.name}\n")[1].split("\n## ")[0]
        assert table.doc in section
        for column in table.columns:
            assert f"| `{column.name}` | `{column.type}` |" in section
            for label in column.labels or ():
                assert f"{label.value} {label.name.lower()}" in section


def test_every_hook():
    hooks = [name for name in vars(hookspecs) if name.startswith(f"{hookspecs.PROJECT}_")]
    assert hooks
    for name in hooks:
        assert f"## `{name}(" in PAGES["hooks.md"]
        assert str(inspect.getdoc(getattr(hookspecs, name))) in PAGES["hooks.md"]


def test_every_stage():
    for stage in STAGES.values():
        assert f"| `{stage.name}` |" in PAGES["stages.md"]
        assert stage.balance in PAGES["stages.md"]


def test_the_example_of_a_hook_can_be_run():
    example = PAGES["hooks.md"].split("```python\n")[1].split("```")[0]
    head = "import pyarrow as pa\nfrom gossamer.tables.spec import Column, Merge\n"
    space: dict[str, object] = {}
    exec(head + example, space)
    assert callable(space["gossamer_columns"])


def test_writing_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.argv", ["docs", str(tmp_path)])
    docs.main()
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == PAGES
