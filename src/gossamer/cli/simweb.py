"""simweb: a simulated web to try things on: serve it, write down the truth about it, describe it, export it, judge who crawled it."""

from __future__ import annotations

import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gossamer.cli.context import options

if TYPE_CHECKING:
    from gossamer.simweb.config import WebConfig

simweb_app = typer.Typer(
    help="A simulated web with a clock and the truth about it: try a configuration here before it touches the real one.",
    no_args_is_help=True,
)

File = Annotated[
    Path | None, typer.Option("--web", metavar="FILE", help="A TOML file that describes the web; see docs/simweb.md.")
]
Seed = Annotated[int | None, typer.Option(help="Another seed is another web of the same sort.")]
Hosts = Annotated[int | None, typer.Option(min=1, help="How many sites there are.")]
Pages = Annotated[
    int | None, typer.Option(min=1, help="About how many URLs there are when the web starts, traps aside.")
]
Https = Annotated[float | None, typer.Option(min=0, max=1, help="Share of sites whose own URLs are https.")]
Calm = Annotated[bool, typer.Option("--calm", help="No host is slow, failing, silent or limiting.")]
Since = Literal["start", "end"]
At = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="The simulated time, such as 2026-03-01T12:00; the start of the web if not given."
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register these commands."""
    app.add_typer(simweb_app, name="simweb")


def _config(file: Path | None, calm: bool, **given: Any) -> WebConfig:
    from gossamer.simweb.config import load_web

    return load_web(file, **given, calm=calm or None)


def _moment(text: str | None, config: WebConfig) -> int:
    from gossamer.clock import parse_time
    from gossamer.errors import UsageError

    try:
        moment: datetime = parse_time(text) if text else config.start
    except ValueError as error:
        raise UsageError(f"{text!r} is no time; write it like 2026-03-01T12:00") from error
    return int(moment.timestamp())


@simweb_app.command()
def serve(
    context: typer.Context,
    file: File = None,
    seed: Seed = None,
    hosts: Hosts = None,
    pages: Pages = None,
    https: Https = None,
    calm: Calm = False,
    at: At = None,
    speed: Annotated[float, typer.Option(min=0, help="Simulated seconds per second; 0: the clock stands still.")] = 0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port for http, and as proxy; 0: a free one.")] = 8080,
    tls_port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port for https.")] = None,
    dns_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="UDP port on which names are answered with loopback addresses.")
    ] = None,
    addresses: Annotated[
        int, typer.Option(min=1, help="Listen on so many addresses, from 127.0.0.1 on; hosts are spread over them.")
    ] = 1,
    port_in_urls: Annotated[
        bool, typer.Option("--port-in-urls", help="URLs carry the ports, for clients without proxy or DNS.")
    ] = False,
    log: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the access log here.")] = None,
    ca: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the certificate authority is kept; clients trust DIR/ca.pem.")
    ] = Path("simweb-ca"),
) -> None:
    """Serve the web on loopback until interrupted.

    Use it as a proxy (`http_proxy=http://127.0.0.1:8080 wget -r http://…`), by its DNS, or by Host header.
    """
    from gossamer.cli import show
    from gossamer.errors import UsageError
    from gossamer.simweb.serving.serve import Serving
    from gossamer.simweb.serving.serve import serve as run
    from gossamer.simweb.web import Web

    chosen = options(context)
    given: dict[str, Any] = {"seed": seed, "hosts": hosts, "pages": pages, "https": https}
    if port_in_urls:
        if port == 0 or tls_port == 0:
            raise UsageError("URLs can carry only ports that are known beforehand; give --port and --tls-port")
        given |= {"port": port, "tls_port": tls_port or 0}
    config = _config(file, calm, **given)
    web = Web(config)
    moment = _moment(at, config)

    def tell(said: dict[str, object]) -> None:
        first = [web.site(index).origin for index in range(min(3, web.hosts))]
        if chosen.json:
            show.print_json_lines([{"event": "serving", **said, "first": first}])
            sys.stdout.flush()
        elif not chosen.quiet:
            known = said["addresses"]
            where = f"{known[0]} to {known[-1]}" if isinstance(known, list) and len(known) > 1 else "127.0.0.1"
            ports = ", ".join(
                f"{name.removesuffix('_port').replace('port', 'http')} {value}"
                for name, value in said.items()
                if name != "addresses"
            )
            typer.echo(
                f"Serving {web.hosts:,} sites on {where} ({ports}); the first are {', '.join(first)}. Ctrl-C ends it."
            )

    run(web, Serving(moment, speed, port, tls_port, dns_port, addresses, log, ca, tell))


@simweb_app.command()
def truth(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the tables.")],
    file: File = None,
    seed: Seed = None,
    hosts: Hosts = None,
    pages: Pages = None,
    https: Https = None,
    calm: Calm = False,
    at: At = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Tell all changes up to then; without it, how things are --at.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port in http URLs, if served with --port-in-urls.")
    ] = 0,
    tls_port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port in https URLs, if served with --port-in-urls.")
    ] = 0,
    seeds: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Seeds from which distances are counted; else the ten largest sites."),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0: one per core.")] = 0,
) -> None:
    """Write the truth as Parquet: hosts, urls, states and links, with the times in which they hold."""
    from gossamer.cli import show
    from gossamer.errors import UsageError
    from gossamer.simweb.truth.tables import Span, write_truth

    chosen = options(context)
    config = _config(
        file, calm, seed=seed, hosts=hosts, pages=pages, https=https, port=port or None, tls_port=tls_port or None
    )
    start = _moment(at, config)
    try:
        named = seeds.read_text(encoding="utf-8-sig").split() if seeds else []
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the seeds {seeds}: {getattr(error, 'strerror', None) or error}") from error
    if seeds and not named:
        raise UsageError(f"{seeds} has no URLs")
    tell = (lambda _: None) if chosen.quiet or chosen.json else (lambda line: typer.echo(line, err=True))
    counts = write_truth(config, folder, Span(start, _moment(until, config) if until else start), named, workers, tell)
    if chosen.json:
        show.print_json_lines([counts])
    elif not chosen.quiet:
        show.print_table(("table", "rows"), ((name, f"{rows:,}") for name, rows in counts.items()))


@simweb_app.command()
def describe(
    context: typer.Context,
    url: Annotated[str | None, typer.Argument(help="One URL: what it is, at the time given.")] = None,
    file: File = None,
    seed: Seed = None,
    hosts: Hosts = None,
    pages: Pages = None,
    https: Https = None,
    calm: Calm = False,
    at: At = None,
    kinds: Annotated[bool, typer.Option("--kinds", help="The kinds of site, with their pages.")] = False,
    traits: Annotated[bool, typer.Option("--traits", help="The traits of hosts.")] = False,
    digest: Annotated[
        bool, typer.Option("--digest", help="A checksum over many answers: equal where the web is the same.")
    ] = False,
) -> None:
    """Describe the web: its sites, or its kinds, its traits, or one URL."""
    from gossamer.cli import show
    from gossamer.simweb.truth import describe as words
    from gossamer.simweb.web import Web

    chosen = options(context)
    config = _config(file, calm, seed=seed, hosts=hosts, pages=pages, https=https)
    if kinds:
        rows = words.kinds(config)
    elif traits:
        rows = words.traits(config)
    elif digest:
        rows = words.digest(Web(config), _moment(at, config))
    elif url:
        rows = words.url(Web(config), url, _moment(at, config))
    else:
        rows = words.sites(Web(config), _moment(at, config))
    if chosen.json:
        show.print_json_lines(rows)
    else:
        show.print_table(tuple(rows[0]), (tuple(map(str, row.values())) for row in rows))


@simweb_app.command()
def export(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the files and nginx.conf.")],
    file: File = None,
    seed: Seed = None,
    hosts: Hosts = None,
    pages: Pages = None,
    at: At = None,
    most: Annotated[int, typer.Option("--most", min=1, help="Stop after so many pages.")] = 1_000_000,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port nginx is to listen on.")] = 8081,
) -> None:
    """Write the web as files that nginx serves, as it stands at one moment; calm, by http and under the sites' own names only."""
    from gossamer.cli import show
    from gossamer.simweb.truth.export import export as run
    from gossamer.simweb.web import Web

    chosen = options(context)
    config = _config(file, True, seed=seed, hosts=hosts, pages=pages)
    done = run(Web(config), folder, _moment(at, config), most, port)
    if chosen.json:
        show.print_json_lines([done])
    elif not chosen.quiet:
        typer.echo(
            f"{done['pages']:,} pages and {done['redirects']:,} redirects; serve them with `nginx -p {shlex.quote(str(folder))} -c nginx.conf`"
        )


@simweb_app.command()
def politeness(
    context: typer.Context,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The access log of one run of `gossamer simweb serve`.")],
    delay: Annotated[
        float, typer.Option(min=0, help="Seconds between requests to a host; a longer crawl-delay counts.")
    ] = 1.0,
    since: Annotated[
        Since, typer.Option("--from", help="Count the delay from the `start` or the `end` of the request before.")
    ] = "start",
    connections: Annotated[int, typer.Option(min=0, help="Connections to a host at a time; 0: any number.")] = 1,
    per_address: Annotated[int, typer.Option(min=0, help="Connections to an address at a time; 0: any number.")] = 0,
    tolerance: Annotated[float, typer.Option(min=0, help="Seconds that times may be off.")] = 0.05,
    agent: Annotated[str, typer.Option(help="Judge only User-Agents that begin so, and requests without one.")] = "",
) -> None:
    """Judge a crawler by the access log: delays, connections, robots.txt, Retry-After. Exit code 1 if it was impolite."""
    from gossamer.simweb.serving.judge import Rules
    from gossamer.simweb.serving.politeness import judge_file, text

    rules = Rules(
        delay=delay, since=since, connections=connections, per_address=per_address, tolerance=tolerance, agent=agent
    )
    report = judge_file(log, rules)
    if options(context).json:
        import msgspec

        typer.echo(msgspec.json.encode(report).decode())
    else:
        typer.echo(text(report), nl=False)
    if report.violations:
        raise typer.Exit(1)
