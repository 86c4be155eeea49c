"""`gossamer`: the command and its options; the commands themselves are in the neighbours of this file."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated

import typer

from gossamer import __version__
from gossamer.cli import batches, check, config, crawl, simweb, snapshots, stages, tables, verify
from gossamer.cli.context import Options
from gossamer.errors import GossamerError

INTERRUPTED = 130
CALLED_WRONG: type[Exception] = typer.BadParameter.__mro__[1]  # the base of all errors about arguments and options

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
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print nothing but errors and what was asked for.")
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options in front of every command."""
    context.obj = Options(crawl, tuple(sets or ()), as_json, quiet)


crawl.add_to(app)
stages.add_to(app)
batches.add_to(app)
tables.add_to(app)
snapshots.add_to(app)
verify.add_to(app)
check.add_to(app)
simweb.add_to(app)
config.add_to(app)


def main() -> None:
    """Run the command line; every error is one line and an exit code."""
    code = run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _unheard()
    raise SystemExit(code)


def run() -> int:
    """The exit code of one call; typer is told to leave its errors, interrupts and broken pipes to us."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that is not UTF-8 is no reason to stop
    try:
        code: int = app(prog_name="gossamer", standalone_mode=False) or 0
    except GossamerError as error:
        return _failed(str(error), error.exit_code)
    except CALLED_WRONG as error:
        return _failed(_usage(error), 2)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        return _unheard()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer gives 1, as if something had failed
            return _unheard()
        raise
    except Exception as error:
        if os.environ.get("GOSSAMER_DEBUG"):
            raise
        told = f"unexpected {type(error).__name__}: {error}; please report this with what GOSSAMER_DEBUG=1 shows"
        return _failed(told, 1)
    if code == INTERRUPTED:
        sys.stderr.write("gossamer: interrupted; run the same command again to go on\n")
    return code


def _failed(message: str, code: int) -> int:
    """Say what went wrong, in one line that no terminal obeys."""
    from gossamer.events import harmless

    line = harmless(" ".join(message.split()))
    if line and "--json" in sys.argv:
        with suppress(BrokenPipeError):
            sys.stdout.write(json.dumps({"event": "error", "error": line, "exit_code": code}) + "\n")
    if line:
        sys.stderr.write(f"gossamer: {line}\n")
    return code


def _usage(error: Exception) -> str:
    """What is wrong with the command line, and where to read how it is right; nothing if the help was printed."""
    message = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    path = getattr(getattr(error, "ctx", None), "command_path", "gossamer")
    return f"{message}; see `{path} --help`" if message else ""


def _unheard() -> int:
    """The reader of our output has seen enough, which is no error; what is still buffered goes nowhere."""
    with suppress(OSError, ValueError):  # no descriptor behind it: nothing to redirect
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return 0
