"""generate, update, batches: the commands of a round."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated

import typer

from gossamer.cli.context import Options, options
from gossamer.pipeline import STAGES

HOSTS = 20  # shown to a person; --json gives all


def add_to(app: typer.Typer) -> None:
    """Register these commands."""
    app.command("crawl")(rounds)
    app.command(help=STAGES["generate"].doc)(generate)
    app.command(help=STAGES["fetch"].doc)(fetch)
    app.command(help=STAGES["update"].doc)(update)
    app.command(help=STAGES["purge"].doc)(purge)
    below = typer.Typer(no_args_is_help=True, help="List batches, or give some up.")
    below.command("list")(list_batches)
    below.command("drop", help=STAGES["drop"].doc)(drop)
    app.add_typer(below, name="batches")


def rounds(
    context: typer.Context,
    rounds: Annotated[int, typer.Option(min=1, help="How many rounds.")] = 1,
    top: Annotated[int | None, typer.Option(min=1, help="URLs in a batch, at most; else generate.top.")] = None,
    hours: Annotated[
        float, typer.Option(min=0, help="Take no more of a host than can be fetched politely in so many hours.")
    ] = 0.0,
) -> None:
    """Crawl: generate a batch, fetch it and update the crawldb, again and again. The same command goes on after an interruption."""
    from dataclasses import asdict

    from gossamer.cli import show

    chosen = options(context)
    done = []
    with chosen.open() as crawl:
        for one in crawl.rounds(rounds, top=top, hours=hours):
            done.append(one)
            if chosen.json:
                show.print_json_lines([{"event": "round", **asdict(one)}])
    if chosen.json or chosen.quiet:
        return
    if not done:
        typer.echo("Nothing is due; see `gossamer generate --dry-run` for why.")
        return
    show.print_table(
        ("round", "batch", "URLs", "fetched", "failed", "new URLs", "URLs known", "seconds", "of it fetching"),
        (
            (
                f"{r.round}/{r.of}",
                r.segment,
                f"{r.urls:,}",
                f"{r.fetched:,}",
                f"{r.failed:,}",
                f"{r.fresh:,}",
                f"{r.known:,}",
                f"{r.seconds:.1f}",
                f"{r.seconds_fetching:.1f}",
            )
            for r in done
        ),  # fmt: skip
    )


def generate(
    context: typer.Context,
    top: Annotated[int | None, typer.Option(min=1, help="URLs in a batch, at most; else generate.top.")] = None,
    batches: Annotated[int, typer.Option(min=1, max=1000, help="How many batches to make.")] = 1,
    hours: Annotated[
        float, typer.Option(min=0, help="Take no more of a host than can be fetched politely in so many hours.")
    ] = 0.0,
    urls: Annotated[
        str | None, typer.Option(metavar="FILE", help="Choose from these URLs only, one a line, due or not.")
    ] = None,
    frequency: Annotated[
        str | None,
        typer.Option(
            "--class", help="Only pages of this class (new, hot, warm, cold); reads only their part of the crawldb."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be chosen of each host, and why the rest would not.")
    ] = False,
) -> None:
    """Choose what to fetch next."""
    chosen = options(context)
    with chosen.open(answers=dry_run) as crawl:
        if dry_run:
            fates = crawl.plan(top=top, batches=batches, hours=hours, urls=urls, frequency=frequency)
            _show_plan(chosen, fates)
            return
        made = crawl.generate(top=top, batches=batches, hours=hours, urls=urls, frequency=frequency)
    if chosen.json:
        from gossamer.cli.show import print_json_lines

        print_json_lines([{"event": "made", "batches": made}])
    elif not chosen.quiet:
        typer.echo(
            f"Made {', '.join(made)}." if made else "No URL can be chosen; see `gossamer generate --dry-run` for why."
        )


def _show_plan(chosen: Options, fates: dict[tuple[str, str], int]) -> None:
    """The plan host by host, those with most chosen URLs first."""
    from gossamer.cli import show

    by_host: dict[str, dict[str, int]] = defaultdict(dict)
    for (host, fate), count in fates.items():
        if count:
            by_host[host][fate] = count
    ranked = sorted(by_host.items(), key=lambda item: (-item[1].get("chosen", 0), item[0]))
    if chosen.json:
        show.print_json_lines({"host": host, **counts} for host, counts in ranked)
        return
    names = sorted({fate for counts in by_host.values() for fate in counts} - {"chosen"})
    rows = [[host, *(counts.get(n, 0) for n in ("chosen", *names))] for host, counts in ranked[:HOSTS]]
    total = [sum(counts.get(n, 0) for counts in by_host.values()) for n in ("chosen", *names)]
    show.print_table(("host", "chosen", *names), [*rows, [f"all {len(by_host):,} hosts", *total]])


def fetch(
    context: typer.Context,
    segment: Annotated[
        str | None, typer.Argument(help="The batch; the oldest that waits if left out.", metavar="[BATCH]")
    ] = None,
) -> None:
    """Fetch a batch; the same command again goes on where it was interrupted."""
    chosen = options(context)
    with chosen.open() as crawl:
        done = crawl.fetch(segment)
    if done is None and not (chosen.json or chosen.quiet):
        typer.echo("No batch waits to be fetched; make one with `gossamer generate`.")


def update(
    context: typer.Context,
    segments: Annotated[
        list[str] | None, typer.Argument(help="Segments; those fetched and not applied yet if left out.")
    ] = None,
) -> None:
    """Apply fetched segments to the crawldb."""
    chosen = options(context)
    with chosen.open() as crawl:
        done = crawl.update(*(segments or ()))
    if done is None and not (chosen.json or chosen.quiet):
        typer.echo("Nothing to apply: no segment has been fetched and not applied; name one to apply it again.")


def purge(context: typer.Context) -> None:
    """Take out URLs that are gone and unlinked for long."""
    with options(context).open() as crawl:
        crawl.run("purge")


def list_batches(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Also those that have been applied or dropped.")] = False,
) -> None:
    """List batches and whether they still hold their URLs."""
    from dataclasses import asdict

    from gossamer.cli import show
    from gossamer.stages.generate.batches import DROPPED, UPDATED
    from gossamer.stages.generate.batches import batches as find

    chosen = options(context)
    with chosen.open() as crawl:
        found = find(crawl.files, crawl.snapshot, crawl.clock().now)
    if not everything:
        found = [batch for batch in found if batch.state not in (UPDATED, DROPPED)]
    if chosen.json:
        show.print_json_lines(asdict(batch) for batch in found)
    elif found:
        show.print_table(
            ("batch", "state", "URLs", "made", "holds its URLs until", "stages"),
            ((b.segment, b.state, f"{b.urls:,}", b.made_at, b.expires_at, " → ".join(b.stages)) for b in found),
        )
    elif not chosen.quiet:
        typer.echo("No batch is waiting; `--all` lists the finished ones too.")


def drop(context: typer.Context, segments: Annotated[list[str], typer.Argument(help="Batches to give up.")]) -> None:
    """Give up batches."""
    with options(context).open() as crawl:
        crawl.run("drop", segments=segments)
