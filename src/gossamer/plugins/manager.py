"""Finding plugins: ours, installed ones by the entry point group `gossamer`, others by the setting `plugins.load`."""

from __future__ import annotations

import copy
import importlib
from dataclasses import replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import pluggy

from gossamer.errors import PluginError
from gossamer.plugins import hookspecs
from gossamer.settings import PluginSettings
from gossamer.tables.spec import Column

if TYPE_CHECKING:
    from gossamer.stages.fetch.protocols import FetchProtocol
    from gossamer.stages.generate.score import Scorer
    from gossamer.urls.steps import Filter, Normalizer

BUILTIN = {name: f"gossamer.plugins.builtin.{name}" for name in ("normalizers", "filters", "scorers", "protocols")}


def load_plugins(settings: PluginSettings) -> pluggy.PluginManager:
    """A manager with every plugin that is to run."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    for name, module in BUILTIN.items():
        if name not in settings.disable:
            _register(manager, name, module)
    for entry in entry_points(group=hookspecs.PROJECT):
        if entry.name not in settings.disable:
            _register(manager, entry.name, entry.value)
    for spelled in settings.load:
        _register(manager, spelled, spelled, chosen=True)
    return manager


def _register(manager: pluggy.PluginManager, name: str, spelled: str, *, chosen: bool = False) -> None:
    """Import one plugin; a broken one stops the command, because running without it would decide differently."""
    module, _, attribute = spelled.partition(":")
    try:
        plugin: Any = importlib.import_module(module)
        plugin = getattr(plugin, attribute) if attribute else plugin
        manager.register(plugin, name)
        manager.check_pending()
    except (Exception, SystemExit) as error:
        cure = "take it out of plugins.load" if chosen else "add it to plugins.disable"
        raise PluginError(
            f"plugin {name} cannot be loaded ({type(error).__name__}: {error}); fix it or {cure}"
        ) from error


def plugin_columns(manager: pluggy.PluginManager) -> list[Column]:
    """The columns all plugins declare, each marked with its plugin."""
    columns: list[Column] = []
    for implementation in manager.hook.gossamer_columns.get_hookimpls():
        name = implementation.plugin_name
        try:
            declared: Any = implementation.function()
            columns += [replace(column, plugin=name) for column in declared]
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            raise PluginError(
                f"plugin {name}: gossamer_columns failed ({reason}); it must give a list of Column"
            ) from error
    return columns


def named_steps(manager: pluggy.PluginManager, hook: str) -> list[Any]:
    """What all plugins hand over for a chain; a later step of the same name takes an earlier one's place."""
    steps: dict[str, Any] = {}
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        try:
            given: Any = implementation.function()
            steps |= {step.name: step for step in given}
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            raise PluginError(
                f"plugin {implementation.plugin_name}: {hook} failed ({reason}); it must give a list of steps"
            ) from error
    return list(steps.values())


def url_normalizers(manager: pluggy.PluginManager) -> tuple[Normalizer, ...]:
    """The normalisers all plugins hand over."""
    return tuple(named_steps(manager, "gossamer_normalizers"))


def url_filters(manager: pluggy.PluginManager) -> tuple[Filter, ...]:
    """The filters all plugins hand over."""
    return tuple(named_steps(manager, "gossamer_filters"))


def scorers(manager: pluggy.PluginManager) -> tuple[Scorer, ...]:
    """The scorers all plugins hand over."""
    return tuple(named_steps(manager, "gossamer_scorers"))


def fetch_protocols(manager: pluggy.PluginManager) -> tuple[FetchProtocol, ...]:
    """The protocols all plugins hand over."""
    return tuple(named_steps(manager, "gossamer_protocols"))


def tell_plugins(manager: pluggy.PluginManager, event: dict[str, Any]) -> dict[str, str]:
    """Hand each plugin a copy of an event; a plugin that raises disturbs nobody: its name and why are returned."""
    failures: dict[str, str] = {}
    for implementation in manager.hook.gossamer_event.get_hookimpls():
        try:
            implementation.function(*(copy.deepcopy(event) for _ in implementation.argnames))
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever it is, it is told and counted
            failures[implementation.plugin_name] = f"{type(error).__name__}: {error}"
    return failures
