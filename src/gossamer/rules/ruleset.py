"""The rule set: everything the URL chains need, from settings and rule files, as one immutable value with a version.

Each new content is kept in the crawl as `rules/<version>.json`, so that an output can name the rules it was made by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.errors import CorruptError, SettingsError
from gossamer.rules.lines import Problem
from gossamer.rules.prefixes import PrefixFile, parse_prefixes
from gossamer.rules.regexes import RegexFile, parse_regexes
from gossamer.rules.scope import Scope, entries, parse_scope
from gossamer.rules.suffixes import SuffixFile, parse_suffixes
from gossamer.settings import Settings
from gossamer.storage.files import Exists, Files, Missing, read_json

if TYPE_CHECKING:
    from gossamer.crawl import Crawl

FOLDER = "rules"
STAGES = ("inject", "fetch", "parse", "update", "generate")
ALIASES = {"redirect": "fetch"}  # what fetch does with URLs

Reader = Callable[[str], bytes]
Steps = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class RuleSet:
    """What the chains run, per stage, and with which rules. Small, picklable, comparable."""

    version: int = 0
    normalizers: Steps = ()
    filters: Steps = ()
    session_parameters: tuple[str, ...] = ()
    tracking_parameters: tuple[str, ...] = ()
    www: tuple[tuple[str, str], ...] = ()
    regexes: tuple[RegexFile, ...] = ()
    prefixes: tuple[PrefixFile, ...] = ()
    suffixes: tuple[SuffixFile, ...] = ()
    scope: Scope = field(default_factory=Scope)
    max_length: int = 2048
    max_depth: int = -1
    max_segments: int = 32
    max_repeats: int = 2
    problems: tuple[Problem, ...] = ()
    schemes: tuple[str, ...] = ("http", "https")


def local_file(path: str) -> bytes:
    """A rule file of this machine."""
    return Path(path).read_bytes()


def rules_from(settings: Settings, reader: Reader = local_file, seeds: Sequence[str] = ()) -> RuleSet:
    """The rule set of these settings, version 0; `reader` gives the bytes of a rule file, `seeds` are in scope."""
    urls, filters = settings.urls, settings.filters
    read = _Reading(reader)
    regexes = [parse_regexes(*file) for file in read("filters.regex_files", filters.regex_files)]
    suffixes = [parse_suffixes(*file) for file in read("filters.suffix_files", filters.suffix_files)]
    prefixes = [parse_prefixes(*file) for file in read("filters.prefix_files", filters.prefix_files)]
    listed = [entry for file in read("filters.scope_files", filters.scope_files) for entry in parse_scope(file[1])]
    return RuleSet(
        normalizers=_per_stage(urls.normalizers, urls.at, "urls.at"),
        filters=_per_stage(filters.chain, filters.at, "filters.at"),
        session_parameters=tuple(filter(None, urls.session_parameters)),
        tracking_parameters=tuple(filter(None, urls.tracking_parameters)),
        www=_www(urls.www),
        regexes=tuple(file for file, problems in regexes if file.rules or problems),
        prefixes=tuple(file for file in prefixes if file.rules),
        suffixes=tuple(file for file, _ in suffixes if file.rules or file.accept_others),
        scope=Scope() if filters.scope == "any" else _scope(filters.scope, [*listed, *filters.scope_list], seeds),
        max_length=filters.max_length,
        max_depth=filters.max_depth,
        max_segments=filters.max_segments,
        max_repeats=filters.max_repeats,
        schemes=("http", "https", *sorted({*settings.fetch.protocols} - {"http", "https"})),
        problems=tuple(problem for _, problems in (*regexes, *suffixes) for problem in problems),
    )


def load_rules(crawl: Crawl, seeds: Iterable[str] = ()) -> RuleSet:
    """The rules of a crawl, with their version: that of the newest stored ones if these say the same, else a new one.

    `seeds`, the URLs being injected, join those that earlier versions remember.
    """
    while True:
        newest = newest_version(crawl.files)
        before = read_rules(crawl.files, newest) if newest else RuleSet()
        known = {*before.scope.seeds, *entries(crawl.settings.filters.scope, seeds)}
        rules = rules_from(crawl.settings, crawl_reader(crawl.files), sorted(known))
        if newest and rules == replace(before, version=0):
            return before
        rules = replace(rules, version=newest + 1)
        with suppress(Exists):  # somebody else stored a version meanwhile: compare with that one
            crawl.files.create(f"{FOLDER}/{rules.version}.json", json.dumps(asdict(rules)).encode())
            for problem in rules.problems:
                crawl.tell({"event": "note", "text": str(problem)})
            return rules


def newest_version(files: Files) -> int:
    """The highest version stored, 0 if there is none."""
    names = (path.removeprefix(f"{FOLDER}/").removesuffix(".json") for path, _ in files.list(FOLDER))
    return max((int(name) for name in names if name.isdecimal()), default=0)


def stored_seeds(files: Files) -> tuple[str, ...]:
    """What the newest stored version knows of injected URLs."""
    newest = newest_version(files)
    return read_rules(files, newest).scope.seeds if newest else ()


def read_rules(files: Files, version: int) -> RuleSet:
    """A stored version."""
    import msgspec

    path = f"{FOLDER}/{version}.json"
    try:
        return msgspec.convert(read_json(files, path), RuleSet)
    except msgspec.ValidationError as error:
        raise CorruptError(f"{files.url(path)}: not a rule set ({error}); restore it from a copy") from error


def stage_named(name: str) -> str:
    """A stage by its name or alias."""
    stage = ALIASES.get(name, name)
    if stage not in STAGES:
        raise SettingsError(f"there is no stage {name} for URLs; choose from {', '.join(STAGES)}")
    return stage


def _per_stage(default: Sequence[str], at: dict[str, str], key: str) -> Steps:
    """The names of the steps at every stage."""
    chosen = dict.fromkeys(STAGES, tuple(default))
    for name, value in at.items():
        if ALIASES.get(name, name) not in STAGES:
            raise SettingsError(f"{key}: there is no stage {name} for URLs; choose from {', '.join(STAGES)}")
        chosen[ALIASES.get(name, name)] = tuple(value.replace(",", " ").split())
    return tuple(chosen.items())


def _www(given: dict[str, str]) -> tuple[tuple[str, str], ...]:
    for name, kind in given.items():
        if kind not in ("with", "without"):
            raise SettingsError(f'urls.www: {name} = {kind!r} does not fit; choose "with" or "without"')
    return tuple(sorted((name.lower().removeprefix("www."), kind) for name, kind in given.items()))


def _scope(kind: str, listed: Iterable[str], seeds: Sequence[str]) -> Scope:
    return Scope(kind, tuple(sorted(set(filter(None, listed)))), tuple(seeds))


def crawl_reader(files: Files) -> Reader:
    """Reads rule files by their path in the crawl, or anywhere if it is absolute."""

    def read(path: str) -> bytes:
        return local_file(path) if Path(path).is_absolute() else files.read(path)

    return read


@dataclass(frozen=True)
class _Reading:
    """Reads the files a setting names: their short names and texts."""

    reader: Reader

    def __call__(self, key: str, paths: Sequence[str]) -> list[tuple[str, str]]:
        return [(path.rsplit("/", 1)[-1], self._text(key, path)) for path in paths]

    def _text(self, key: str, path: str) -> str:
        try:
            return self.reader(path).decode()
        except (OSError, Missing) as error:
            why = error.strerror if isinstance(error, OSError) else "file is missing"
            raise SettingsError(f"{key}: {path}: {why}; correct the path or make the file readable") from error
        except UnicodeDecodeError as error:
            raise SettingsError(f"{key}: {path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
