"""Printing for people and programs: tables, JSON lines, CSV. What comes from the web is made harmless first."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from gossamer.clock import format_time
from gossamer.events import CONTROL, harmless


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def cell(value: Any) -> str:
    """A value as a person reads it in a table."""
    if value is None:
        return ""
    value = plain(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return harmless(value if isinstance(value, str) else as_json(value))


def as_json(value: Any) -> str:
    """JSON in one line whatever splits lines or obeys controls later: those stay escaped, other scripts are readable."""
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(plain(value), ensure_ascii=False))


def print_json_lines(rows: Iterable[dict[str, Any]]) -> None:
    """One object per line."""
    for row in rows:
        sys.stdout.write(as_json(row) + "\n")


def print_csv(names: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """RFC 4180 with a header; lists and maps are JSON. A terminal gets no control characters, a file gets them all."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    shown = cell if sys.stdout.isatty() else _field
    for row in rows:
        writer.writerow([shown(row[name]) for name in names])


def _field(value: Any) -> Any:
    value = plain(value)
    return as_json(value) if isinstance(value, list | dict) else value


def print_table(names: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """A table as wide as the terminal, or as wide as it needs when it goes into a pipe."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=10_000)
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    cells = [[cell(value) for value in row] for row in rows]
    for number, name in enumerate(names):
        numeric = bool(cells) and all(re.fullmatch(r"[-\d,.]*", row[number]) for row in cells)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(value) for value in row))
    console.print(table)
