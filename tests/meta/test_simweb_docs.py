"""docs/simweb.md names everything a description of a web can use, and its example works."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from gossamer.simweb.config import Format, Over, PageKind, load_web
from gossamer.simweb.pages.blocks import BLOCKS
from gossamer.simweb.pages.templates import DIGITS, REST, SEGMENTS
from gossamer.simweb.truth.reach import FOLLOWED
from gossamer.simweb.truth.tables import SCHEMAS
from gossamer.simweb.web import Web

PAGE = (Path(__file__).parents[2] / "docs" / "simweb.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "names", [BLOCKS, get_args(Over), get_args(Format), {*DIGITS, *SEGMENTS, *REST}, FOLLOWED, SCHEMAS], ids=str
)
def test_every_name_is_there(names):
    missing = [name for name in names if f"`{name}`" not in PAGE and f"`{name} " not in PAGE]
    assert not missing


def test_every_field_of_a_page_is_there():
    missing = [name for name in PageKind.__struct_fields__ if f"`{name}" not in PAGE and f"\n{name} = " not in PAGE]
    assert not missing


def test_the_example_is_a_web(tmp_path: Path):
    (tmp_path / "web.toml").write_text(PAGE.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    web = Web(load_web(tmp_path / "web.toml"))
    assert {web.site(index).kind.name for index in range(50)} == {"news", "recipes"}
