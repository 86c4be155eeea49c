"""check: what the URL chain or a robots.txt makes of the URLs on stdin, for people and for conformance tests."""

from __future__ import annotations

import json
import sys
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain as joined
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gossamer.cli.context import Options, options

if TYPE_CHECKING:
    from gossamer.stages.fetch.robots import Robots
    from gossamer.urls.chain import UrlChain

check_app = typer.Typer(
    help="Try rules on URLs from stdin, one a line. Prints result, URL as given and why, separated by tabs.",
    no_args_is_help=True,
)
BATCH = 50_000
AROUND = "".join(map(chr, range(0x21)))  # what the URL standard strips from both ends

Stage = Annotated[str, typer.Option(help="The stage whose chain runs: inject, fetch, parse, update or generate.")]
Explain = Annotated[bool, typer.Option("--explain", help="Below each URL, what every step does, in order.")]


class Answer(NamedTuple):
    """What is said about one line."""

    result: str
    why: str
    steps: Sequence[tuple[str, str]] = ()  # each step's name and effect


def add_to(app: typer.Typer) -> None:
    """Register these commands."""
    app.add_typer(check_app, name="check")


@check_app.command()
def normalize(context: typer.Context, stage: Stage = "parse", explain: Explain = False) -> None:
    """Print each URL normalised, or `-`; why: the normalisers that changed it, or what it is rejected for."""
    chosen = options(context)
    chain = _chain(chosen, {})
    for lines in _batches():
        _print(chosen, lines, _normalized(chain, list(map(_text, lines)), stage), explain)
    _tell_failures(chain)


@check_app.command("filter")
def filter_(
    context: typer.Context,
    stage: Stage = "parse",
    explain: Explain = False,
    normal: Annotated[bool, typer.Option("--normalize", help="Normalise before filtering.")] = False,
    regex: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Regex rules to try.")] = None,
    prefix: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Prefix rules to try.")] = None,
    suffix: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Suffix rules to try.")] = None,
    domains_file: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Hosts and domains to stay in (scope `domain`).")
    ] = None,
) -> None:
    """Print `+` for each URL that the filters keep, else `-`; why: the lines that accept it, or what it is rejected for."""
    chosen = options(context)
    given = {"regex_files": regex, "prefix_files": prefix, "suffix_files": suffix, "scope_files": domains_file}
    chain = _chain(chosen, {key: [str(path.absolute()) for path in paths] for key, paths in given.items() if paths})
    for lines in _batches():
        texts = [_text(line).strip(AROUND) for line in lines]
        _print(chosen, lines, _filtered(chain, texts, stage, normal), explain)
    _tell_failures(chain)


@check_app.command()
def domain(context: typer.Context) -> None:
    """Print the registered domain of each host or URL, or `-`; why: its public suffix, or why there is none."""
    from gossamer.urls.domains import explain_domain

    for lines in _batches():
        found = map(explain_domain, map(_text, lines))
        _print(options(context), lines, (Answer(name or "-", why) for name, why in found), False)


@check_app.command()
def robots(
    context: typer.Context,
    file: Annotated[Path, typer.Option(metavar="FILE", help="The robots.txt to try.")],
    agent: Annotated[str, typer.Option(help="Who asks: a name, or a whole User-Agent header.")] = "gossamer",
    explain: Annotated[bool, typer.Option("--explain", help="Below each URL: the group, its delay, sitemaps.")] = False,
) -> None:
    """Print `allow` or `disallow` for each URL; why: the line that decides, nothing if none does, or what is wrong with the URL."""
    from gossamer.errors import UsageError
    from gossamer.stages.fetch.robots import LONGEST, parse_robots

    try:
        with file.open("rb") as opened:
            found = parse_robots(opened.read(LONGEST + 1), agent)
    except OSError as error:
        raise UsageError(f"--file {file}: {error.strerror}; check the path") from error
    for lines in _batches():
        _print(options(context), lines, _decided(found, map(_text, lines)), explain)


def _chain(chosen: Options, files: dict[str, Any]) -> UrlChain:
    """The chain of the crawl, or of the defaults if there is none; `files` take the place of those in the settings."""
    from dataclasses import replace

    from gossamer.crawl import Crawl
    from gossamer.errors import CrawlMissing
    from gossamer.plugins.manager import load_plugins
    from gossamer.rules.ruleset import crawl_reader, local_file, rules_from, stored_seeds
    from gossamer.settings import load_settings
    from gossamer.urls.chain import make_chain

    try:
        with Crawl(chosen.crawl, sets=chosen.sets) as crawl:
            settings, reader, seeds = crawl.settings, crawl_reader(crawl.files), stored_seeds(crawl.files)
    except CrawlMissing:
        settings, reader, seeds = load_settings(sets=chosen.sets).settings, local_file, ()
    if files:
        scope = "domain" if "scope_files" in files else settings.filters.scope
        settings = replace(settings, filters=replace(settings.filters, **files, scope=scope))
    rules = rules_from(settings, reader, seeds)
    for problem in rules.problems:
        _tell(str(problem))
    return make_chain(rules, load_plugins(settings.plugins))


def _normalized(chain: UrlChain, texts: list[str], stage: str) -> Iterator[Answer]:
    """What becomes of each URL."""
    import pyarrow as pa

    states = [(name, now.url.to_pylist(), now.reason) for name, now in chain.normalizing(pa.array(texts), stage)]
    reasons = states[-1][2].to_pylist()
    for row, text in enumerate(texts):
        steps, before = [], text
        for name, urls, _ in states:
            if urls[row] != before and before is not None:
                steps.append((name, urls[row] or "rejected"))
            before = urls[row]
        changed = ", ".join(dict.fromkeys(name for name, _ in steps))
        yield Answer(before or "-", reasons[row] or changed, steps)


def _filtered(chain: UrlChain, texts: list[str], stage: str, normal: bool) -> Iterator[Answer]:
    """Whether each URL is kept, and what every filter says about it."""
    import pyarrow as pa

    urls = pa.array(texts, pa.string())
    against: list[tuple[str, list[str | None]]] = []
    if normal:
        checked = chain.normalize(urls, stage)
        urls, against = checked.url, [("normalize", checked.reason.to_pylist())]
    against += [(name, said.to_pylist()) for name, said in chain.filtering(urls, stage)]
    favour = {name: said.to_pylist() for name, said in chain.filtering(urls, stage, accepted=True)}
    for row in range(len(texts)):
        reason = next((said[row] for _, said in against if said[row]), None)
        accepted = {name: said[row] for name, said in favour.items() if said[row]}
        steps = [(name, said[row] or accepted.get(name) or "kept") for name, said in against]
        yield Answer("-" if reason else "+", reason or ", ".join(accepted.values()), steps)


def _decided(robots: Robots, texts: Iterable[str]) -> Iterator[Answer]:
    """Whether each URL may be fetched, and what else the file says to the agent."""
    from gossamer.urls.parse import parse

    delay = "none" if robots.crawl_delay is None else f"{robots.crawl_delay:g} s"
    said = [("group", robots.group or "none"), ("crawl-delay", delay), *(("sitemap", at) for at in robots.sitemaps)]
    for text in texts:
        href, reason = parse(text)
        if href is None:
            yield Answer("disallow", reason or "")
            continue
        verdict = robots.decide(href)
        yield Answer("allow" if verdict.allowed else "disallow", verdict.line or "", said)


def _batches() -> Iterator[list[bytes]]:
    """The lines of stdin, many at a time."""
    ends = (line.removesuffix(b"\n").removesuffix(b"\r") for line in sys.stdin.buffer)
    lines = joined((line.removeprefix(BOM_UTF8) for line in islice(ends, 1)), ends)
    while batch := list(islice(lines, BATCH)):
        yield batch


def _text(line: bytes) -> str:
    """A line as text; bytes that are no UTF-8 become what browsers make of them."""
    return line.decode("utf-8", "replace")


def _print(chosen: Options, lines: list[bytes], answers: Iterator[Answer], explain: bool) -> None:
    """One line per URL, and with `explain` one per step below it."""
    from gossamer.events import harmless

    out: list[str] = []
    for line, answer in zip(lines, answers, strict=True):
        url = line.decode("utf-8", "surrogateescape")
        if chosen.json:
            row = {"result": answer.result, "url": harmless(url), "why": answer.why}
            out.append(json.dumps(row | ({"steps": answer.steps} if explain else {})))
            continue
        out.append("\t".join(map(harmless, (answer.result, url, answer.why))))
        if explain:
            out += [f"\t{harmless(name)}\t{harmless(effect)}" for name, effect in answer.steps]
    sys.stdout.write("\n".join(out) + "\n")
    sys.stdout.flush()


def _tell_failures(chain: UrlChain) -> None:
    for failure, count in chain.failures.items():
        _tell(f"{failure} ({count:,} URLs went on without it)")


def _tell(text: str) -> None:
    from gossamer.events import harmless

    sys.stderr.write(f"gossamer: {harmless(text)}\n")
