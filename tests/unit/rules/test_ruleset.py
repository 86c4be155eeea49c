"""Rule sets: from settings and files, with versions that are kept in the crawl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gossamer.crawl import Crawl
from gossamer.errors import CorruptError, SettingsError
from gossamer.rules.ruleset import RuleSet, load_rules, newest_version, read_rules, rules_from
from gossamer.settings import load_settings
from gossamer.storage.files import Exists
from gossamer.urls.chain import url_chain


class Ears:
    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def tell(self, event: dict[str, Any]) -> None:
        self.heard.append(event)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Crawl.init(str(tmp_path / "crawl")).close()
    return tmp_path / "crawl"


def load(root: Path, *sets: str, seeds: tuple[str, ...] = ()) -> RuleSet:
    with Crawl(str(root), sets=sets) as crawl:
        return load_rules(crawl, seeds)


def test_the_same_content_has_the_same_version(root: Path):
    (root / "conf").mkdir()
    (root / "conf/mine.txt").write_text("+a\n")
    sets = ("filters.regex_files=conf/mine.txt",)
    assert load(root).version == 1
    assert load(root).version == 1
    first = load(root, *sets)
    assert first.version == 2
    assert load(root, *sets) == first
    (root / "conf/mine.txt").write_text("+b\n")
    assert load(root, *sets).version == 3
    (root / "conf/mine.txt").write_text("+a\n")
    assert load(root, *sets).version == 4  # versions tell what was in force, and it was not in force in between
    assert sorted(path.name for path in (root / "rules").iterdir()) == ["1.json", "2.json", "3.json", "4.json"]


def test_a_stored_version_is_read_back(root: Path):
    (root / "r.txt").write_text("-(a)\\1\n> a.org\n+x\n<\n-.*(/[^/]+)/[^/]+\\1/[^/]+\\1/\n+.")
    (root / "p.txt").write_text("http://\n-http://a/")
    (root / "s.txt").write_text("+I\n.gif")
    sets = ("filters.regex_files=r.txt", "filters.prefix_files=p.txt", "filters.suffix_files=s.txt")
    made = load(root, *sets, "filters.scope=domain", "filters.scope_list=a.org", 'urls.www={"a.org" = "with"}')
    with Crawl(str(root)) as crawl:
        assert read_rules(crawl.files, made.version) == made
    assert made.problems[0].line == 1
    assert json.loads((root / "rules/1.json").read_bytes())["version"] == 1


def test_two_that_store_at_once_get_two_versions(root: Path, monkeypatch: pytest.MonkeyPatch):
    with Crawl(str(root)) as crawl:
        create, calls = crawl.files.create, []

        def raced(path: str, data: bytes) -> None:
            calls.append(path)
            if len(calls) == 1:  # another process is faster, with other rules
                create(path, data.replace(b'"max_depth": -1', b'"max_depth": 9'))
                raise Exists(path)
            create(path, data)

        monkeypatch.setattr(crawl.files, "create", raced)
        assert load_rules(crawl).version == 2
        assert newest_version(crawl.files) == 2
        assert read_rules(crawl.files, 1).max_depth == 9


def test_seeds_are_remembered(root: Path):
    scope = "filters.scope=domain"
    assert load(root, scope, seeds=("http://www.example.org/a",)).scope.seeds == ("www.example.org",)
    assert load(root, scope, seeds=("http://example.com/",)).scope.seeds == ("example.com", "www.example.org")
    assert load(root, scope).version == 2
    with Crawl(str(root), sets=[scope]) as crawl:
        found = url_chain(crawl).filter(pa.array(["http://b.example.org/", "http://example.net/"]), "parse")
    assert found.to_pylist() == [None, "out of scope"]


def test_refused_lines_are_told_once(root: Path):
    (root / "r.txt").write_text("-(a)\\1\n+.")
    for expected in (
        [{"event": "note", "text": "r.txt:1: -(a)\\1 is refused: a back-reference is not possible in linear time"}],
        [],
    ):
        ears = Ears()
        with Crawl(str(root), sets=["filters.regex_files=r.txt"], reporter=ears) as crawl:
            load_rules(crawl)
        assert ears.heard == expected


@pytest.mark.parametrize(
    ("sets", "why"),
    [
        ("filters.regex_files=gone.txt", r"^filters.regex_files: gone.txt: .*; correct the path"),
        ("filters.prefix_files=/no/such/file", r"^filters.prefix_files: /no/such/file: No such file or directory"),
        ("filters.suffix_files=latin.txt", r"^filters.suffix_files: latin.txt: not UTF-8 at byte 1"),
        ('urls.www={"a.org" = "maybe"}', r"^urls.www: a.org = 'maybe' does not fit"),
    ],
)
def test_what_is_wrong_is_named(root: Path, sets: str, why: str):
    (root / "latin.txt").write_bytes(b".\xe9")
    with pytest.raises(SettingsError, match=why):
        load(root, sets)


def test_a_damaged_version_is_named(root: Path):
    load(root)
    (root / "rules/1.json").write_text('{"version": "x"}')
    with pytest.raises(CorruptError, match=r"rules/1.json: not a rule set"):
        load(root)


def test_files_without_rules_filter_nothing():
    settings = load_settings(environment={}, sets=[f"filters.{kind}_files=x" for kind in ("regex", "prefix", "suffix")])
    rules = rules_from(settings.settings, lambda _: b"# nothing\n\n")
    assert (rules.regexes, rules.prefixes, rules.suffixes) == ((), (), ())
