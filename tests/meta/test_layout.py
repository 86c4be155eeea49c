"""The shape of the code: who may import what, how large a file may grow, one version."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import gossamer

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gossamer"
FILES = sorted(SOURCE.rglob("*.py"))
ENGINES = {"duckdb", "pyspark", "py4j"}
HEAVY = {
    "pyarrow",
    "ibis",
    "duckdb",
    "pyspark",
    "numpy",
    "pandas",
    "msgspec",
    "sqlglot",
    "pydantic",
    "pluggy",
    "ada_url",
}


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno


def test_there_is_something_to_check():
    assert len(FILES) > 40


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file(path: Path):
    inside = path.relative_to(SOURCE).parts
    for module, line in imports(path):
        assert module.split(".")[0] not in ENGINES or inside[0] == "engine", f"{path}:{line} imports {module}"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, "too large to be read; cut it in two"


@pytest.mark.parametrize(
    "line",
    [
        "import duckdb",
        "from duckdb import connect",
        "import pyspark.sql",
        "from pyspark.sql import types",
        "import ibis\n\nibis.memtable({})",
    ],
)
@pytest.mark.parametrize(("folder", "complains"), [("stages", True), ("tables", True), ("engine", False)])
def test_the_linter_keeps_engines_behind_the_seam(line: str, folder: str, complains: bool):
    name = f"src/gossamer/{folder}/scratch.py"  # it need not exist: the text comes from stdin
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--select", "TID251", "--stdin-filename", name, "-"],
        input=f"{line}\n",
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ("TID251" in done.stdout) is complains, done.stdout + done.stderr


@pytest.mark.parametrize("arguments", ["import gossamer", "import gossamer.cli.main"])
def test_starting_is_light(arguments: str):
    told = subprocess.run(
        [sys.executable, "-c", f"{arguments}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.split(".")[0] for name in told.stdout.split()}
    assert not loaded & HEAVY


def test_help_is_light():
    code = "import sys\nfrom gossamer.cli.main import run\nsys.argv = ['gossamer', '--help']\nrun()\nprint('MODULES', *sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in told.stdout.split("MODULES")[1].split()}
    assert not loaded & HEAVY


def test_there_is_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == gossamer.__version__


def test_every_module_says_what_it_is():
    silent = [str(path) for path in FILES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert [path for path in silent if not path.endswith("__init__.py")] == []


def test_nothing_of_the_tests_is_imported_by_the_package():
    assert not [
        (path, module) for path in FILES for module, _ in imports(path) if module.split(".")[0] in ("tests", "pytest")
    ]
