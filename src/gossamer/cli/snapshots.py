"""snapshots list, diff, rollback, collect: the history of a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gossamer.cli.context import options

if TYPE_CHECKING:
    from gossamer.crawl import Crawl
    from gossamer.storage.snapshots import Snapshot

snapshots_app = typer.Typer(help="List, compare, roll back and collect versions of the crawl.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register these commands."""
    app.add_typer(snapshots_app, name="snapshots")


@snapshots_app.command("list")
def list_(context: typer.Context) -> None:
    """List snapshots, newest last."""
    from gossamer.cli import show
    from gossamer.storage import snapshots

    chosen = options(context)
    with chosen.open() as crawl:
        found = [_facts_of(crawl, number) for number in snapshots.numbers(crawl.files)]
    if chosen.json:
        show.print_json_lines(found)
        return
    show.print_table(
        ("snapshot", "stage", "run", "clock", "rows", "MB", "note"),
        (
            (s["snapshot"], s["stage"], s["run"], s["at"], f"{s['rows']:,}", f"{s['bytes'] / 1e6:,.1f}", s["note"])
            for s in found
        ),
    )


def _facts_of(crawl: Crawl, number: int) -> dict[str, Any]:
    """What is known of a snapshot; that it is damaged, if so: the list shows where one can roll back to."""
    from gossamer.errors import CorruptError
    from gossamer.storage import snapshots

    try:
        return _facts(snapshots.load(crawl.files, number))
    except CorruptError as error:
        return _facts(snapshots.Snapshot(number, None, "", "", "", 0, note=f"damaged: {error}"))


def _facts(snapshot: Snapshot) -> dict[str, Any]:
    sets = [s for table in snapshot.tables.values() for s in table]
    return {
        "snapshot": snapshot.id,
        "parent": snapshot.parent,
        "stage": snapshot.stage,
        "run": snapshot.run,
        "at": snapshot.at,
        "shards": snapshot.shards,
        "rows": sum(s.rows for s in sets),
        "bytes": sum(s.bytes for s in sets),
        "tables": {name: sum(s.rows for s in sets) for name, sets in snapshot.tables.items()},
        "note": snapshot.note or ", ".join(f"{k} {v:,}" for k, v in snapshot.counters.items()),
    }


@snapshots_app.command()
def diff(
    context: typer.Context,
    old: Annotated[int, typer.Argument(help="A snapshot.")],
    new: Annotated[int | None, typer.Argument(help="Another; the latest if left out.")] = None,
    rows: Annotated[str | None, typer.Option(metavar="TABLE", help="Compare this table row by row.")] = None,
) -> None:
    """Show what changed between two snapshots."""
    from gossamer.cli import show
    from gossamer.storage import snapshots

    chosen = options(context)
    with chosen.open() as crawl:
        before = snapshots.load(crawl.files, old)
        after = crawl.snapshot if new is None else snapshots.load(crawl.files, new)
        changes = list(_set_changes(before, after)) if rows is None else crawl.row_changes(rows, before.id, after.id)
    if chosen.json:
        show.print_json_lines(changes)
    elif not changes:
        typer.echo(f"Nothing changed from snapshot {before.id} to {after.id}.")
    else:
        show.print_table(tuple(changes[0]), (list(change.values()) for change in changes))


def _set_changes(before: Snapshot, after: Snapshot) -> list[dict[str, Any]]:
    """File sets that came and went, per table."""
    changes = []
    for table in sorted(before.tables.keys() | after.tables.keys()):
        old, new = before.sets(table), after.sets(table)
        for sign, sets in (("-", [s for s in old if s not in new]), ("+", [s for s in new if s not in old])):
            changes += [
                {
                    "change": sign,
                    "table": table,
                    "kind": "change set" if s.delta else "base",
                    "rows": s.rows,
                    "bytes": s.bytes,
                    "folder": s.folder,
                }
                for s in sets
            ]
    return changes


@snapshots_app.command()
def rollback(
    context: typer.Context, snapshot: Annotated[int, typer.Argument(help="The snapshot to return to.")]
) -> None:
    """Publish an older snapshot again, as the newest; nothing is deleted."""
    from gossamer.cli import show
    from gossamer.clock import format_time
    from gossamer.storage import snapshots

    chosen = options(context)
    with chosen.open() as crawl:
        made = snapshots.rollback(crawl.files, snapshot, format_time(crawl.clock().now))
    if chosen.json:
        show.print_json_lines([_facts(made)])
    elif not chosen.quiet:
        typer.echo(f"Snapshot {made.id} holds what snapshot {snapshot} held.")


@snapshots_app.command()
def collect(
    context: typer.Context,
    keep: Annotated[
        int | None, typer.Option(min=1, help="Newest snapshots to keep; storage.keep_snapshots if left out.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Drop old snapshots and the files only they name."""
    from dataclasses import asdict

    from gossamer.cli import show
    from gossamer.storage.collect import collect as collect_files

    chosen = options(context)
    with chosen.open() as crawl:
        gone = collect_files(crawl.files, keep or crawl.settings.storage.keep_snapshots, dry_run=dry_run)
    if chosen.json:
        show.print_json_lines([asdict(gone) | {"dry_run": dry_run}])
    elif not chosen.quiet:
        verb = "Would drop" if dry_run else "Dropped"
        typer.echo(f"{verb} {len(gone.snapshots)} snapshots and {gone.files:,} files ({gone.bytes / 1e6:,.1f} MB).")
