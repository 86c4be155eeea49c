"""Finding plugins, and living with broken ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.errors import PluginError
from gossamer.plugins.manager import (
    BUILTIN,
    load_plugins,
    plugin_columns,
    tell_plugins,
    url_filters,
    url_normalizers,
)
from gossamer.settings import PluginSettings

HEAD = (
    "from gossamer.plugins.hookspecs import hookimpl\nfrom gossamer.tables.spec import Column\nimport pyarrow as pa\n"
)
COLUMNS = HEAD + "@hookimpl\ndef gossamer_columns():\n    return [Column('price', pa.int64(), 'Price.')]\n"
LISTENER = HEAD + "heard = []\n@hookimpl\ndef gossamer_event(event):\n    heard.append(event)\n"
RAISER = HEAD + "@hookimpl\ndef gossamer_event(event):\n    raise RuntimeError('no more')\n"

Module = Callable[[str, str], None]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """Makes importable modules, which are forgotten after the test."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def make(name: str, source: str) -> None:
        (tmp_path / f"{name}.py").write_text(source)

    yield make
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def installed(tmp_path: Path, module: Module) -> Callable[[str, str], None]:
    """Installs a plugin the way pip does: a dist-info with an entry point."""

    def install(name: str, value: str) -> None:
        folder = tmp_path / f"gossamer_{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: gossamer-{name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[gossamer]\n{name} = {value}\n")

    return install


def names(settings: PluginSettings) -> list[str]:
    """Those that are not ours."""
    return [name for name, _ in load_plugins(settings).list_name_plugin() if name not in BUILTIN]


def test_no_plugins():
    manager = load_plugins(PluginSettings())
    assert plugin_columns(manager) == []
    assert tell_plugins(manager, {"event": "start"}) == {}


def test_ours_are_plugins_like_any_other():
    assert [step.name for step in url_filters(load_plugins(PluginSettings()))][:2] == ["length", "depth"]
    manager = load_plugins(PluginSettings(disable=["filters"]))
    assert url_filters(manager) == ()
    assert [step.name for step in url_normalizers(manager)][:2] == ["encoding", "sessions"]


def test_a_step_of_the_same_name_takes_the_place(module: Module):
    source = "from gossamer.urls.steps import Filter\ndef mine(batch, rules): ...\n@hookimpl\ndef gossamer_filters():\n    return [Filter('scope', mine)]\n"
    module("shop_plugin", HEAD + source)
    steps = {step.name: step.run for step in url_filters(load_plugins(PluginSettings(load=["shop_plugin"])))}
    assert steps["scope"].__module__ == "shop_plugin"
    assert len(steps) == 8


@pytest.mark.parametrize("body", ["raise KeyError('x')", "return None", "return ['scope']"])
def test_steps_must_be_steps(module: Module, body: str):
    module("broken", f"{HEAD}@hookimpl\ndef gossamer_normalizers():\n    {body}\n")
    with pytest.raises(PluginError, match=r"^plugin broken: gossamer_normalizers failed \(.*\); it must give a list"):
        url_normalizers(load_plugins(PluginSettings(load=["broken"])))


def test_an_installed_plugin_is_found(module: Module, installed: Callable[[str, str], None]):
    module("shop_plugin", COLUMNS)
    installed("shop", "shop_plugin")
    (column,) = plugin_columns(load_plugins(PluginSettings()))
    assert (column.name, column.plugin) == ("price", "shop")


def test_an_installed_plugin_can_be_disabled(module: Module, installed: Callable[[str, str], None]):
    module("shop_plugin", "raise RuntimeError('never imported')")
    installed("shop", "shop_plugin")
    assert names(PluginSettings(disable=["shop"])) == []


def test_a_module_or_an_attribute_of_it_can_be_named(module: Module):
    source = f"{HEAD}class Shop:\n    @hookimpl\n    def gossamer_columns(self):\n        return []\nshop = Shop()\n"
    module("shop_plugin", source)
    module("other_plugin", COLUMNS)
    assert names(PluginSettings(load=["shop_plugin:shop", "other_plugin"])) == ["shop_plugin:shop", "other_plugin"]


@pytest.mark.parametrize(
    ("source", "spelled", "why"),
    [
        ("raise RuntimeError('boom')", "broken", r"RuntimeError: boom"),
        ("import sys; sys.exit(3)", "broken", r"SystemExit: 3"),
        ("this is no Python", "broken", r"SyntaxError"),
        ("", "nowhere_to_be_found", r"ModuleNotFoundError"),
        ("", "broken:nothing", r"AttributeError"),
        (
            f"{HEAD}@hookimpl\ndef gossamer_colums(): ...",
            "broken",
            r"PluginValidationError: unknown hook 'gossamer_colums'",
        ),
        (f"{HEAD}@hookimpl\ndef gossamer_event(evnt): ...", "broken", r"PluginValidationError"),
    ],
)
def test_a_broken_plugin_is_named_with_its_cure(module: Module, source: str, spelled: str, why: str):
    module("broken", source)
    with pytest.raises(
        PluginError, match=rf"(?s)^plugin {spelled} cannot be loaded \(.*{why}.*take it out of plugins\.load"
    ):
        load_plugins(PluginSettings(load=[spelled]))


def test_the_cure_for_an_installed_plugin_is_to_disable_it(module: Module, installed: Callable[[str, str], None]):
    installed("shop", "no_such_module")
    with pytest.raises(PluginError, match=r"^plugin shop cannot be loaded .* add it to plugins\.disable$"):
        load_plugins(PluginSettings())


@pytest.mark.parametrize("body", ["raise KeyError('x')", "return None", "return ['price']", "return 3"])
def test_columns_must_be_columns(module: Module, body: str):
    module("broken", f"{HEAD}@hookimpl\ndef gossamer_columns():\n    {body}\n")
    with pytest.raises(
        PluginError, match=r"^plugin broken: gossamer_columns failed \(.*\); it must give a list of Column$"
    ):
        plugin_columns(load_plugins(PluginSettings(load=["broken"])))


def test_plugins_hear_events_and_cannot_change_them(module: Module):
    module("ears", LISTENER)
    module("vandal", f"{HEAD}@hookimpl\ndef gossamer_event(event):\n    event['counters'].clear()\n")
    event: dict[str, Any] = {"event": "done", "counters": {"rows": 3}}
    manager = load_plugins(PluginSettings(load=["ears", "vandal"]))
    assert tell_plugins(manager, event) == {}
    assert event == {"event": "done", "counters": {"rows": 3}}
    assert sys.modules["ears"].heard == [event]


def test_a_hook_may_leave_out_its_argument(module: Module):
    module("ears", f"{HEAD}heard = []\n@hookimpl\ndef gossamer_event():\n    heard.append(1)\n")
    assert tell_plugins(load_plugins(PluginSettings(load=["ears"])), {"event": "done"}) == {}
    assert sys.modules["ears"].heard == [1]


def test_a_raising_listener_keeps_nobody_from_hearing(module: Module):
    module("ears", LISTENER)
    module("raiser", RAISER)
    module("leaver", f"{HEAD}import sys\n@hookimpl\ndef gossamer_event(event):\n    sys.exit(1)\n")
    module("more_ears", LISTENER)
    manager = load_plugins(PluginSettings(load=["ears", "raiser", "leaver", "more_ears"]))
    assert tell_plugins(manager, {"event": "done"}) == {"raiser": "RuntimeError: no more", "leaver": "SystemExit: 1"}
    assert sys.modules["ears"].heard == sys.modules["more_ears"].heard == [{"event": "done"}]
