"""Finding plugins: installed ones by the entry point group `gossamer`, others by the setting `plugins.load`."""

from __future__ import annotations

import importlib
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any

import pluggy

from gossamer.errors import PluginError
from gossamer.plugins import hookspecs
from gossamer.settings import PluginSettings
from gossamer.tables.spec import Column


def load_plugins(settings: PluginSettings) -> pluggy.PluginManager:
    """A manager with every plugin that is to run."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    for entry in entry_points(group=hookspecs.PROJECT):
        if entry.name not in settings.disable:
            _register(manager, entry.name, entry.value)
    for spelled in settings.load:
        _register(manager, spelled, spelled)
    return manager


def _register(manager: pluggy.PluginManager, name: str, spelled: str) -> None:
    """Import one plugin; a broken one stops the command, because running without it would decide differently."""
    module, _, attribute = spelled.partition(":")
    try:
        plugin: Any = importlib.import_module(module)
        plugin = getattr(plugin, attribute) if attribute else plugin
        manager.register(plugin, name)
        manager.check_pending()
    except Exception as error:
        raise PluginError(
            f"plugin {name} cannot be loaded ({type(error).__name__}: {error}); fix it or add it to plugins.disable"
        ) from error


def plugin_columns(manager: pluggy.PluginManager) -> list[Column]:
    """The columns all plugins declare, each marked with its plugin."""
    columns: list[Column] = []
    for implementation in manager.hook.gossamer_columns.get_hookimpls():
        name = implementation.plugin_name
        try:
            declared: list[Column] = implementation.function()  # type: ignore[assignment]
        except Exception as error:
            raise PluginError(f"plugin {name}: gossamer_columns failed ({type(error).__name__}: {error})") from error
        columns += [replace(column, plugin=name) for column in declared]
    return columns
