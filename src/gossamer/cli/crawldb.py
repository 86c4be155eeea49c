"""What `read crawldb` knows beyond rows: statistics, and everything about one URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.crawl import Crawl
    from gossamer.tables.read import Source

TOP = 20  # hosts, domains and TLDs shown to a person who did not ask for more


def print_stats(crawl: Crawl, rows: ir.Table, limit: int | None, *, as_json: bool) -> None:
    """Counts of some rows of the crawldb; a person sees the largest groups, a program all of them."""
    from gossamer.cli import show
    from gossamer.tables import stats

    counts = stats.counted(crawl.engine, rows, crawl.clock().now)
    totals = crawl.engine.collect(stats.total(counts)).to_pylist()[0]
    if as_json:
        show.print_json_lines([{"group": "total"} | totals])
    else:
        show.print_table(("total", ""), ((name, _count(value)) for name, value in totals.items()))
    for group in stats.GROUPS:
        found = stats.grouped(counts, group)
        if as_json:
            few = found if limit is None else found.limit(limit)
            batches = crawl.batches(few, small=limit is not None)
            show.print_json_lines({"group": group} | row for batch in batches for row in batch.to_pylist())
        else:
            _print_group(crawl, found, group, TOP if limit is None else limit)


def _print_group(crawl: Crawl, found: ir.Table, group: str, limit: int) -> None:
    """The first rows of a group, and how many there are."""
    from gossamer.cli import show

    rows = crawl.engine.collect(found.limit(limit)).to_pylist()
    size = crawl.engine.collect(found.aggregate(n=found.count())).to_pylist()[0]["n"]
    more = f" (the first {len(rows):,} of {size:,})" if size > len(rows) else ""
    typer.echo()
    show.print_table(
        (f"{group}{more}", *found.columns[1:]), ([row[group], *map(_count, list(row.values())[1:])] for row in rows)
    )


def _count(value: Any) -> Any:
    return f"{value:,}" if isinstance(value, int) else value


def url_rows(crawl: Crawl, source: Source, url: str) -> ir.Table:
    """The crawldb's rows of a URL, which is normalised first; without a scheme it may be http or https."""
    import pyarrow as pa

    from gossamer.errors import UsageError
    from gossamer.rules.ruleset import crawl_reader, rules_from
    from gossamer.stages.inject.lines import with_scheme
    from gossamer.urls.chain import make_chain
    from gossamer.urls.keys import prefix_range, rowkeys

    given = with_scheme(pa.array([url], pa.string()))[0].as_py()
    spellings = [given] if given == url else [given, f"https://{url}"]
    chain = make_chain(rules_from(crawl.settings, crawl_reader(crawl.files)), crawl.plugins)  # reading stores no rules
    checked = chain.normalize(pa.array(spellings, pa.string()), "inject")
    if checked.url.null_count:
        raise UsageError(f"--url {url}: {checked.reason[0].as_py()}; write it like https://example.org/path")
    keys = rowkeys(checked.url).to_pylist()
    rows = source.table("crawldb", keys=tuple(map(prefix_range, keys)))
    return rows.filter(rows.rowkey.isin(keys) & rows.url.isin(checked.url.to_pylist()))


def host_of(host: str, option: str) -> str:
    """A host, domain or TLD in the form the crawldb has it: lower case, A-labels."""
    import pyarrow as pa

    from gossamer.errors import UsageError
    from gossamer.urls.keys import hosts
    from gossamer.urls.parse import parse

    name = host.strip().strip(".")
    href = None if set(name) & set("/?#@\\ ") else parse(f"http://{name}/")[0]
    if href is None:
        raise UsageError(f"{option} {host}: that is no name of a host; write it like example.org")
    return str(hosts(pa.array([href]))[0].as_py())


def print_record(row: dict[str, Any], docs: dict[str, str]) -> None:
    """One row, a line for each column, with what the columns mean."""
    from gossamer.cli import show

    lines = ((name, value, docs.get(name, "").split(". ")[0].rstrip(".")) for name, value in row.items())
    show.print_table(("column", "value", "meaning"), lines)
