"""The stages as commands; names and help come from the map in pipeline.py."""

from __future__ import annotations

from typing import Annotated

import typer

from gossamer.cli.context import options
from gossamer.pipeline import STAGES


def add_to(app: typer.Typer) -> None:
    """Register these commands."""
    for command in (inject, load, compact, fold, migrate, reshard):
        app.command(help=STAGES[command.__name__].doc)(command)


def inject(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Seed lists, plain or gzip, - for stdin; lines are `url`, `url<TAB>key=value…` or `host<TAB>url<TAB>url…`."
        ),
    ],
    source: Annotated[
        str | None, typer.Option(metavar="TAG", help="Source tag of the seeds; the file's name if left out.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Give known URLs the interval and metadata of their lines.")
    ] = False,
    errors: Annotated[str | None, typer.Option(metavar="FILE", help="Write all bad lines to this file.")] = None,
) -> None:
    """Add seeds."""
    with options(context).open() as crawl:
        crawl.inject(*paths, source=source, update=update, errors=errors)


def load(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="The table, as in docs/tables.md.")],
    paths: Annotated[list[str], typer.Argument(help="Files ending in .parquet, .csv, .json, .jsonl or .ndjson.")],
    segment: Annotated[str | None, typer.Option(help="The segment, for tables of segments.")] = None,
) -> None:
    """Add rows from files to a table; keys that follow from `url` and `domain` may be left out."""
    with options(context).open() as crawl:
        crawl.load(table, *paths, segment=segment)


def compact(
    context: typer.Context,
    tables: Annotated[
        list[str] | None, typer.Argument(help="Tables; if left out, what is due for each is done.")
    ] = None,
) -> None:
    """Fold change sets into the base."""
    chosen = options(context)
    with chosen.open() as crawl:
        done = crawl.compact(*(tables or ()))
    if not done and not (chosen.json or chosen.quiet):
        typer.echo("No table is due; name one to compact it anyway.")


def fold(context: typer.Context, table: Annotated[str, typer.Argument(help="The table.")]) -> None:
    """Make one change set of all."""
    with options(context).open() as crawl:
        crawl.fold(table)


def migrate(context: typer.Context) -> None:
    """Bring files of older schema versions up to date."""
    with options(context).open() as crawl:
        crawl.run("migrate")


def reshard(context: typer.Context, shards: Annotated[int, typer.Argument(help="A power of two.")]) -> None:
    """Change the number of shards."""
    with options(context).open() as crawl:
        crawl.run("reshard", shards=shards)
