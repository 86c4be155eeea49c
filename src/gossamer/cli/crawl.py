"""init, status, runs, graph: making a crawl and looking at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gossamer.cli.context import options

if TYPE_CHECKING:
    from gossamer.crawl import Crawl


def add_to(app: typer.Typer) -> None:
    """Register these commands."""
    app.command()(init)
    app.command()(status)
    app.command()(runs)
    app.command()(graph)


def init(
    context: typer.Context,
    directory: Annotated[str | None, typer.Argument(help="Where; the directory of -C if left out.")] = None,
    shards: Annotated[int, typer.Option(help="Shards of the large tables; a power of two.")] = 16,
) -> None:
    """Make an empty crawl."""
    from gossamer.crawl import Crawl

    chosen = options(context)
    root = directory or chosen.crawl
    with Crawl.init(root, shards=shards, sets=chosen.sets) as crawl:
        if chosen.json:
            from gossamer.cli.show import print_json_lines

            print_json_lines([{"event": "done", "crawl": crawl.files.root, "snapshot": 0, "shards": shards}])
        elif not chosen.quiet:
            typer.echo(f"Made a crawl at {crawl.files.root} with {shards} shards; its settings are in gossamer.toml.")


def status(context: typer.Context) -> None:
    """Show tables, segments, running and interrupted jobs."""
    from gossamer.cli import show
    from gossamer.events import harmless

    chosen = options(context)
    with chosen.open() as crawl:
        facts = crawl_status(crawl)
    if chosen.json:
        show.print_json_lines([facts])
        return
    typer.echo(f"{facts['crawl']} · snapshot {facts['snapshot']} of {facts['at']} · {facts['shards']} shards")
    if facts["tables"]:
        show.print_table(
            ("table", "rows stored", "of them in change sets", "files", "MB", "note"),
            (
                (
                    t["table"],
                    f"{t['rows']:,}",
                    f"{t['delta_rows']:,}",
                    f"{t['files']:,}",
                    f"{t['bytes'] / 1e6:,.1f}",
                    t["note"],
                )
                for t in facts["tables"]
            ),
        )
    else:
        typer.echo("No tables yet.")
    for name, stages in facts["segments"].items():
        typer.echo(f"segment {harmless(name)}: {' → '.join(stages)}")
    for holder in facts["running"]:
        typer.echo(f"running: {holder['name']} (process {holder['pid']} on {holder['host']} since {holder['since']})")
    for run in facts["interrupted"]:
        typer.echo(f"interrupted: {run}; the same command resumes it")


def crawl_status(crawl: Crawl) -> dict[str, Any]:
    """What `status` shows, as data."""
    from gossamer.stages.rewrite.job import due, outdated
    from gossamer.storage import leases
    from gossamer.storage import runs as records

    snapshot = crawl.snapshot
    specs = crawl.tables_at(snapshot)
    old = {name for name, _ in outdated(snapshot, specs)}
    tables = []
    for name, sets in sorted(snapshot.tables.items()):
        notes = ["older schema: run `gossamer migrate`"] if name in old else []
        called_for = due(snapshot, name, crawl.settings.storage)
        notes += [f"due for `gossamer {called_for}`"] if called_for else []
        tables.append(
            {
                "table": name,
                "rows": sum(s.rows for s in sets),
                "delta_rows": sum(s.rows for s in sets if s.delta),
                "sets": len(sets),
                "files": sum(s.files for s in sets),
                "bytes": sum(s.bytes for s in sets),
                "note": "; ".join(notes),
            }
        )
    running = leases.live(crawl.files)
    busy = {holder.get("run") for holder in running}
    begun = [name for name in records.names(crawl.files) if name.startswith(f"{snapshot.id:08d}-") and name not in busy]
    cut = [name for name in begun if (r := records.load(crawl.files, name)) and r.state == records.RUNNING]
    return {
        "crawl": crawl.files.root,
        "snapshot": snapshot.id,
        "at": snapshot.at,
        "shards": snapshot.shards,
        "tables": tables,
        "segments": snapshot.segments,
        "running": running,
        "interrupted": cut,
    }


def runs(
    context: typer.Context,
    run: Annotated[str | None, typer.Argument(help="One run, for everything about it.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the latest runs to list.")] = 20,
) -> None:
    """List what ran, or show one run."""
    from dataclasses import asdict

    from gossamer.cli import show
    from gossamer.errors import UsageError
    from gossamer.storage import runs as records

    chosen = options(context)
    with chosen.open() as crawl:
        known = records.names(crawl.files)
        wanted = [name for name in known if name == run] if run else known[-limit:]
        found = [record for name in wanted if (record := records.load(crawl.files, name)) is not None]
    if run and not found:
        raise UsageError(f"there is no run {run}; see `gossamer runs`")
    if chosen.json:
        show.print_json_lines(asdict(record) for record in found)
    elif run:
        show.print_table(("", ""), asdict(found[0]).items())
    else:
        show.print_table(
            ("run", "state", "snapshot", "started", "s", "counters"),
            (
                (
                    r.run,
                    r.state,
                    r.published,
                    r.started,
                    f"{sum(r.phases.values()):.1f}",
                    r.error or ", ".join(f"{k} {v:,}" for k, v in r.counters.items()),
                )
                for r in found
            ),
        )


def graph(context: typer.Context) -> None:
    """Print the map: every stage, what it reads and writes, and its balance."""
    from dataclasses import asdict

    from gossamer.cli import show
    from gossamer.pipeline import ANY, STAGES

    if options(context).json:
        show.print_json_lines(asdict(stage) for stage in STAGES.values())
        return

    def words(tables: tuple[str, ...], none: str) -> str:
        return "any table" if tables == ANY else ", ".join(tables) or none

    show.print_table(
        ("stage", "reads", "writes", "balance", "what it does"),
        ((s.name, words(s.reads, "files"), words(s.writes, "nothing"), s.balance, s.doc) for s in STAGES.values()),
    )
