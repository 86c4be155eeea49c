"""The settings of a crawl: a small tree of dataclasses, each field with its prose.

Values come from, later wins: the defaults here, `gossamer.toml`, environment variables (`GOSSAMER_ENGINE__WORKERS=4`),
`--set engine.workers=4`. Unknown keys are refused, and every value knows where it came from.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

from gossamer.errors import SettingsError

FILE = "gossamer.toml"
PREFIX = "GOSSAMER_"
OUTSIDE = {"GOSSAMER_CRAWL", "GOSSAMER_DEBUG"}  # read by the command line, not a setting


def setting(default: Any, doc: str, least: float | None = None, most: float | None = None) -> Any:
    """A field with its default, its prose and, for numbers, the least and the most that make sense."""
    known = {"doc": doc, "least": least, "most": most}
    if isinstance(default, dict | list):
        return field(default_factory=lambda: type(default)(default), metadata=known)
    return field(default=default, metadata=known)


@dataclass(frozen=True)
class EngineSettings:
    """Where jobs run."""

    kind: Literal["embedded", "spark"] = setting("embedded", "`embedded` (this machine) or `spark`.")
    workers: int = setting(
        -1, "Worker processes of the embedded engine; -1: one per core, 0: none, all in one process.", least=-1
    )
    memory_mb: int = setting(4096, "Memory DuckDB may use before it spills to disk.", least=64, most=1 << 30)
    scratch: str = setting("", "Directory for temporary files of the embedded engine; empty: the system's.")
    spark_master: str = setting("local[*]", "Spark master URL.")
    spark_conf: dict[str, str] = setting({}, "Further Spark properties, such as `spark.executor.memory`.")


@dataclass(frozen=True)
class StorageSettings:
    """What is kept."""

    keep_snapshots: int = setting(
        20, "Snapshots that remain after a collection; you can roll back to any of them.", least=1
    )
    compact_at: float = setting(
        0.2, "Compact a keyed table when its change sets hold this share of its base's rows.", least=0
    )
    compact_sets: int = setting(8, "Make one change set of all when there are so many.", least=2)
    verify_reads: bool = setting(
        False,
        "Compare the checksum of every file before its first use; rewriting tables and `gossamer verify` always do.",
    )


@dataclass(frozen=True)
class ScheduleSettings:
    """When pages are fetched again."""

    kind: Literal["adaptive", "fixed"] = setting(
        "adaptive", "`adaptive` (pages that change are fetched more often) or `fixed`."
    )
    interval_s: int = setting(2_592_000, "Seconds between two fetches of a page, at first.", least=60, most=7_776_000)
    min_interval_s: int = setting(3_600, "The adaptive schedule goes no lower.", least=60, most=7_776_000)
    max_interval_s: int = setting(7_776_000, "The adaptive schedule goes no higher.", least=60, most=7_776_000)
    grow: float = setting(0.4, "An unchanged page's interval grows by this share.", least=0, most=10)
    shrink: float = setting(0.2, "A changed page's interval shrinks by this share.", least=0, most=0.99)
    max_failures: int = setting(5, "A URL that failed so often in a row is gone.", least=1, most=1000)


@dataclass(frozen=True)
class LinkSettings:
    """Which links of a page are followed and counted."""

    max_per_page: int = setting(1_000, "Links taken from one page, the first ones; 0: all.", least=0)
    max_new_per_page: int = setting(200, "URLs one page may add that the crawl did not know; 0: any number.", least=0)
    follow_nofollow: bool = setting(False, "Follow and count links marked nofollow, ugc or sponsored.")


@dataclass(frozen=True)
class GenerateSettings:
    """How a batch is chosen."""

    top: int = setting(50_000, "URLs in a batch, at most.", least=1)
    per: Literal["host", "domain", "ip"] = setting("host", "What max_per and politeness queues go by.")
    max_per: int = setting(0, "URLs of one host (or domain, or address) in a batch, at most; 0: any number.", least=0)
    partitions: int = setting(
        8, "Parts a batch is cut into, by registered domain, to be fetched side by side.", least=1
    )
    lease_hours: float = setting(72.0, "A batch that was not updated after so long no longer blocks its URLs.", least=0)
    filter: bool = setting(False, "Check every due URL against the filters of today.")
    delay_ms: int = setting(1_000, "Delay between two requests to a host that names none, for --hours.", least=0)


@dataclass(frozen=True)
class ScoreSettings:
    """What makes a URL come early."""

    chain: list[str] = setting(["inlinks", "cash", "depth", "rank", "freshness", "useful"], "Scorers, in order.")
    weights: dict[str, float] = setting(
        {}, "How much each built-in scorer counts, 0 to 1; those not named count fully."
    )
    useful_yes: float = setting(1.0, "The useful scorer multiplies useful URLs by this.", least=0)
    useful_no: float = setting(0.2, "… and others by this.", least=0)


@dataclass(frozen=True)
class PluginSettings:
    """Which plugins run."""

    load: list[str] = setting([], "Plugins to load besides the installed ones, as `module` or `module:attribute`.")
    disable: list[str] = setting([], "Names of installed plugins not to load.")


@dataclass(frozen=True)
class UrlSettings:
    """How URLs are normalised; see docs/urls.md."""

    normalizers: list[str] = setting(
        ["encoding", "sessions", "tracking", "query", "www"],
        "Normalisers in their order, after parsing by the WHATWG standard. There are also `index` and `slashes`.",
    )
    at: dict[str, str] = setting(
        {},
        'Other normalisers at a stage (`inject`, `fetch`, `parse`, `update`, `generate`), such as `generate = "www"`.',
    )
    session_parameters: list[str] = setting(
        [
            *("sid", "_sid", "jsid", "lsid", "bv_sid", "oscsid", "sessid", "phpsessid", "sessionid", "_sessionid"),
            *("jsessionid", "_jsessionid", "lsessionid", "bv_sessionid", "session_id", "aspsessionid*"),
            *("cfid", "cftoken", "zenid"),
        ],
        "Parameters that `sessions` takes out of path and query; any case, `*` stands for anything.",
    )
    tracking_parameters: list[str] = setting(
        [
            *("utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "twclid"),
            *("ttclid", "igshid", "mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi", "mkt_tok", "vero_id"),
        ],
        "Parameters that `tracking` takes out of the query; any case, `*` stands for anything.",
    )
    www: dict[str, str] = setting({}, "Domains whose canonical host is known: `with` or `without` the `www.` in front.")


@dataclass(frozen=True)
class FilterSettings:
    """Which URLs are taken; see docs/urls.md."""

    chain: list[str] = setting(
        ["length", "depth", "segments", "repeats", "scope", "prefix", "suffix", "regex"],
        "Filters in their order; the first that rejects a URL gives the reason.",
    )
    at: dict[str, str] = setting({}, 'Other filters at a stage, such as `fetch = "scope regex"`.')
    regex_files: list[str] = setting(
        [], "Files of regular expressions in Nutch's syntax, relative to the crawl; each must accept a URL."
    )
    prefix_files: list[str] = setting([], "Files of URL prefixes; `-` before one excludes, the longest decides.")
    suffix_files: list[str] = setting([], "Files of URL suffixes in Nutch's syntax.")
    scope: Literal["any", "host", "domain", "seed"] = setting(
        "any", "Where a crawl stays: on the hosts, in the domains or below the URLs that were injected or are listed."
    )
    scope_files: list[str] = setting([], "Files with hosts, domains or URLs that are in scope, one a line.")
    scope_list: list[str] = setting([], "Hosts, domains or URLs that are in scope.")
    max_length: int = setting(2048, "Longest URL, in bytes.", least=16, most=65536)
    max_depth: int = setting(-1, "Most links between a seed and a page; -1: any number.", least=-1)
    max_segments: int = setting(32, "Most segments in a path.", least=1)
    max_repeats: int = setting(
        2, "How often a directory may come in a path, others between, before it is taken for a loop; 0: any.", least=0
    )


@dataclass(frozen=True)
class Settings:
    """Everything that can be set."""

    engine: EngineSettings = field(default_factory=EngineSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    links: LinkSettings = field(default_factory=LinkSettings)
    generate: GenerateSettings = field(default_factory=GenerateSettings)
    score: ScoreSettings = field(default_factory=ScoreSettings)
    plugins: PluginSettings = field(default_factory=PluginSettings)
    urls: UrlSettings = field(default_factory=UrlSettings)
    filters: FilterSettings = field(default_factory=FilterSettings)


@dataclass(frozen=True)
class Origins:
    """Settings, and for each dotted key where its value came from."""

    settings: Settings
    origin: dict[str, str]


def load_settings(
    text: str = "", file: str = FILE, environment: Mapping[str, str] | None = None, sets: Sequence[str] = ()
) -> Origins:
    """Settings from the text of a TOML file, the environment and `key=value` pairs."""
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    layers = [
        _from_toml(text, file),
        _from_environment(os.environ if environment is None else environment),
        _from_sets(sets),
    ]
    for key, value, where in (entry for layer in layers for entry in layer):
        values[key] = _checked(key, value, where)
        origin[key] = where
    return Origins(_build(Settings, "", values), {key: origin.get(key, "default") for key, _, _ in walk()})


def walk(kind: type = Settings, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Every dotted key with its type and prose."""
    hints = _hints(kind)
    for f in fields(kind):
        if is_dataclass(hints[f.name]):
            yield from walk(hints[f.name], f"{prefix}{f.name}.")
        else:
            yield f"{prefix}{f.name}", hints[f.name], f.metadata["doc"]


@cache  # thousands of times in every command
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def value_of(settings: Settings, key: str) -> Any:
    """The value behind a dotted key."""
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


def template() -> str:
    """A new crawl's gossamer.toml: every setting with its prose, commented out at its default."""
    lines = ["# Settings of this crawl. `gossamer config show` tells what is in force and why.", ""]
    section = ""
    for key, _, doc in walk():
        head, name = key.rsplit(".", 1)
        if head != section:
            section = head
            lines += [f"[{section}]"]
        lines += [f"# {doc}", f"# {name} = {toml_value(value_of(Settings(), key))}", ""]
    return "\n".join(lines)


def toml_value(value: Any) -> str:
    """A value as TOML spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_value(k)} = {toml_value(v)}" for k, v in value.items()) + "}"
    return str(value)


def _from_toml(text: str, file: str) -> Iterator[tuple[str, Any, str]]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: not valid TOML: {error}; correct that line") from error
    yield from ((key, value, file) for key, value in _flatten(document, "", file))


def _flatten(document: Mapping[str, Any], prefix: str, file: str) -> Iterator[tuple[str, Any]]:
    """Dotted keys of a nested document, stopping at what is a setting even if it is a table."""
    known = {key for key, _, _ in walk()}
    for name, value in document.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key not in known:
            if not any(k.startswith(f"{key}.") for k in known):
                raise _unknown(key, file)
            yield from _flatten(value, f"{key}.", file)
        else:
            yield key, value


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    for name, text in sorted(environment.items()):
        if name.startswith(PREFIX) and name not in OUTSIDE:
            key = name.removeprefix(PREFIX).lower().replace("__", ".")
            yield key, _from_text(key, text, f"environment variable {name}"), f"environment variable {name}"


def _from_sets(sets: Sequence[str]) -> Iterator[tuple[str, Any, str]]:
    for entry in sets:
        key, equals, text = entry.partition("=")
        if not equals:
            raise SettingsError(f"--set {entry}: write it as key=value, for example --set engine.workers=4")
        yield key.strip(), _from_text(key.strip(), text.strip(), "--set"), "--set"


def _from_text(key: str, text: str, where: str) -> Any:
    """A value given as plain text: as TOML if it is that, else a string, or strings separated by commas."""
    kind = _type_of(key, where)
    if kind is str:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return [part.strip() for part in text.split(",")] if kind == list[str] else text


def _type_of(key: str, where: str) -> Any:
    for known, kind, _ in walk():
        if known == key:
            return kind
    raise _unknown(key, where)


def _unknown(key: str, where: str) -> SettingsError:
    close = difflib.get_close_matches(key, [k for k, _, _ in walk()], 1, 0.5)
    cure = f"did you mean {close[0]}?" if close else "see `gossamer config show` for all settings"
    return SettingsError(f"{where}: unknown setting {key}; {cure}")


def _checked(key: str, value: Any, where: str) -> Any:
    """The value if it fits its field's type and is not too small."""
    import msgspec

    kind = _type_of(key, where)
    try:
        fitting = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason = str(error).replace("`", "")
        choices = " or ".join(toml_value(choice) for choice in get_args(kind) if isinstance(choice, str))
        cure = f"choose {choices}" if choices else f"the default is {toml_value(value_of(Settings(), key))}"
        raise SettingsError(f"{where}: {key} = {value!r} does not fit: {reason}; {cure}") from error
    least, most = _limits(key)
    if least is not None and not fitting >= least:
        raise SettingsError(f"{where}: {key} = {value!r} is too small; it must be at least {least}")
    if most is not None and not fitting <= most:
        raise SettingsError(f"{where}: {key} = {value!r} is too large; it must be at most {most}")
    return fitting


def _limits(key: str) -> tuple[float | None, float | None]:
    """The smallest and the largest value a setting may have, if it is a number."""
    *sections, name = key.split(".")
    kind: Any = Settings
    for section in sections:
        kind = _hints(kind)[section]
    known = next(f.metadata for f in fields(kind) if f.name == name)
    return known["least"], known["most"]


def _build(kind: type, prefix: str, values: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    given = {}
    for f in fields(kind):
        key = f"{prefix}{f.name}"
        if is_dataclass(hints[f.name]):
            given[f.name] = _build(hints[f.name], f"{key}.", values)
        elif key in values:
            given[f.name] = values[key]
    return kind(**given)
