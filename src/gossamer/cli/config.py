"""config show: every setting in force, and where it came from."""

from __future__ import annotations

from typing import Annotated

import typer

from gossamer.cli.context import options

config_app = typer.Typer(help="Look at settings.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register these commands."""
    app.add_typer(config_app, name="config")


@config_app.command()
def show(
    context: typer.Context,
    key: Annotated[str | None, typer.Argument(help="One setting or section, such as engine.workers or engine.")] = None,
) -> None:
    """Show settings with their values, origins and meaning."""
    from gossamer.cli import show as output
    from gossamer.errors import UsageError
    from gossamer.settings import toml_value, value_of, walk

    chosen = options(context)
    with chosen.open() as crawl:
        rows = [
            {"setting": name, "value": value_of(crawl.settings, name), "origin": crawl.origin[name], "meaning": doc}
            for name, _, doc in walk()
            if key is None or name == key or name.startswith(f"{key}.")
        ]
    if not rows:
        raise UsageError(f"there is no setting {key}; see `gossamer config show`")
    if chosen.json:
        output.print_json_lines(rows)
    else:
        output.print_table(
            tuple(rows[0]), ((r["setting"], toml_value(r["value"]), r["origin"], r["meaning"]) for r in rows)
        )
