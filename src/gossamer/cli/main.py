"""`gossamer`: the command and its options; the commands themselves are in the neighbours of this file."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import typer

from gossamer import __version__
from gossamer.cli import config, crawl, snapshots, stages, tables
from gossamer.cli.context import Options
from gossamer.errors import GossamerError

app = typer.Typer(
    name="gossamer",
    help="A web-scale crawler, link graph and search engine. One crawl is one directory (or s3:// prefix) of open files.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gossamer {__version__}")
        raise typer.Exit


@app.callback()
def before(
    context: typer.Context,
    crawl: Annotated[
        str,
        typer.Option(
            "-C",
            "--crawl",
            envvar="GOSSAMER_CRAWL",
            metavar="DIR",
            help="The crawl: a directory or s3://bucket/prefix.",
        ),
    ] = ".",
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a setting for this call; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines for programs.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options in front of every command."""
    context.obj = Options(crawl, tuple(sets or ()), as_json, quiet)


crawl.add_to(app)
stages.add_to(app)
tables.add_to(app)
snapshots.add_to(app)
config.add_to(app)


def main() -> None:
    """Run the command line; every error of ours is one line and an exit code."""
    try:
        app(standalone_mode=True)
    except GossamerError as error:
        message = " ".join(str(error).split())
        if "--json" in sys.argv:
            sys.stdout.write(json.dumps({"event": "error", "error": message, "exit_code": error.exit_code}) + "\n")
        sys.stderr.write(f"gossamer: {message}\n")
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        sys.stderr.write("gossamer: interrupted; run the same command again to go on\n")
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
