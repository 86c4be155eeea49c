"""verify: whether all files are what they were when they were written."""

from __future__ import annotations

from typing import Annotated

import typer

from gossamer.cli.context import options


def add_to(app: typer.Typer) -> None:
    """Register these commands."""
    app.command()(verify)


def verify(
    context: typer.Context,
    tables: Annotated[list[str] | None, typer.Argument(help="Tables; all if left out.")] = None,
    snapshot: Annotated[int | None, typer.Option(help="The files of this snapshot; the latest if left out.")] = None,
) -> None:
    """Read every file of the crawl and compare its checksum with the one taken when it was written."""
    from gossamer.cli import show
    from gossamer.errors import CorruptError
    from gossamer.events import harmless

    chosen = options(context)
    with chosen.open() as crawl:
        found = list(crawl.verify(*(tables or ()), snapshot=snapshot))
    bad = [entry for entry in found if entry["error"]]
    if chosen.json:
        show.print_json_lines(found)
    elif not chosen.quiet:
        for entry in bad:
            typer.echo(harmless(entry["error"]))
        size = sum(entry["bytes"] for entry in found)
        typer.echo(
            f"{len(found) - len(bad):,} of {len(found):,} files ({size / 1e6:,.1f} MB) are as they were written."
        )
    if bad:
        raise CorruptError(
            f"{len(bad)} of {len(found)} files are damaged; restore them from a copy, or go back with `gossamer snapshots rollback`"
        )
