"""Where the value of a setting comes from.

Values come from, later wins: the defaults here, `gossamer.toml`, environment variables (`GOSSAMER_ENGINE__WORKERS=4`),
`--set engine.workers=4`. Unknown keys are refused, and every value knows where it came from.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from gossamer.errors import SettingsError
from gossamer.settings.sections import Settings

FILE = "gossamer.toml"
PREFIX = "GOSSAMER_"
OUTSIDE = {"GOSSAMER_CRAWL", "GOSSAMER_DEBUG"}  # read by the command line, not a setting


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
        head, _, name = key.rpartition(".")
        if not head:  # a list of tables
            lines += [f"# {doc}", f"# [[{name}]]", ""]
            continue
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
    if is_dataclass(value) and not isinstance(value, type):
        return toml_value({f.name: known for f in fields(value) if (known := getattr(value, f.name)) is not None})
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
    _refuse_unknown_fields(key, kind, value, where)
    try:
        fitting = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason = str(error).replace("`", "")
        choices = " or ".join(toml_value(choice) for choice in get_args(kind) if isinstance(choice, str))
        cure = f"choose {choices}" if choices else f"the default is {toml_value(value_of(Settings(), key))}"
        raise SettingsError(f"{where}: {key} = {value!r} does not fit: {reason}; {cure}") from error
    for entry in fitting if isinstance(fitting, list) else ():
        if (check := getattr(entry, "problem", None)) is not None and (problem := check()):
            raise SettingsError(f"{where}: [[{key}]] {problem}")
    least, most = _limits(key)
    if least is not None and not fitting >= least:
        raise SettingsError(f"{where}: {key} = {value!r} is too small; it must be at least {least}")
    if most is not None and not fitting <= most:
        raise SettingsError(f"{where}: {key} = {value!r} is too large; it must be at most {most}")
    return fitting


def _refuse_unknown_fields(key: str, kind: Any, value: Any, where: str) -> None:
    """Raise if a table in a list of tables has a key that means nothing."""
    of = get_args(kind)[0] if get_origin(kind) is list else None
    if not is_dataclass(of) or not isinstance(value, list):
        return
    known = [f.name for f in fields(of)]
    for name in (name for entry in value if isinstance(entry, dict) for name in entry):
        if name not in known:
            raise SettingsError(f"{where}: unknown setting {name} in [[{key}]]; choose from {', '.join(known)}")


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
