"""Printing for people and programs: tables, JSON lines, CSV. What comes from the web is made harmless first."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from gossamer.clock import format_time

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """Text in which control characters and direction marks are spelled out, so a terminal does not obey them."""
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):
            return {str(key): plain(item) for key, item in value}
        return [plain(item) for item in value]
    return value


def cell(value: Any) -> str:
    """A value as a person reads it in a table."""
    if value is None:
        return ""
    value = plain(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return harmless(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def print_json_lines(rows: Iterable[dict[str, Any]]) -> None:
    """One object per line."""
    for row in rows:
        sys.stdout.write(json.dumps({k: plain(v) for k, v in row.items()}, ensure_ascii=False) + "\n")


def print_csv(names: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """RFC 4180 with a header; lists and maps are JSON."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        values = (plain(row[name]) for name in names)
        writer.writerow([json.dumps(v, ensure_ascii=False) if isinstance(v, list | dict) else v for v in values])


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
