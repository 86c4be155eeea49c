"""read: any table or part of it, filtered, as a table, JSON lines or CSV; statistics and single URLs of the crawldb."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gossamer.cli.context import options

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.crawl import Crawl
    from gossamer.errors import UsageError
    from gossamer.tables.read import Source
    from gossamer.tables.spec import Table

PAGE = 20  # rows shown to a person who did not ask for more
SORTED = (("rowkey",), ("src_rowkey",), ("host_key",))  # how the order of a table begins that can be searched by prefix


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"


def add_to(app: typer.Typer) -> None:
    """Register these commands."""
    app.command()(read)


@dataclass(frozen=True)
class Part:
    """Which part of a table is wanted; at most one of these is given."""

    prefix: str | None = None
    host: str | None = None
    domain: str | None = None
    tld: str | None = None
    url: str | None = None


def read(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="The table, as in docs/tables.md.")],
    where: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            help="Only rows for which this SQL condition holds, such as \"status = 'fetched' AND inlinks > 3\".",
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Only these columns, in this order.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, help=f"At most so many rows; {PAGE} when printing a table, else all.")
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="How to print; --json means jsonl.")] = Format.TABLE,
    prefix: Annotated[
        str | None,
        typer.Option(
            help="Only row keys or URLs with this prefix, such as org.apache or https://example.org/news/; "
            "like the next three, reads only their part."
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Only this host.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only this domain and all hosts below it.")] = None,
    tld: Annotated[str | None, typer.Option(help="Only this top-level domain.")] = None,
    url: Annotated[str | None, typer.Option(help="Everything the crawldb knows of one URL.")] = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Count the crawldb by status, host, domain and TLD instead.")
    ] = False,
    top: Annotated[int | None, typer.Option(min=1, help="The so many rows with the largest --by.")] = None,
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help="What --top compares; inlinks if left out.")] = None,
    segment: Annotated[str | None, typer.Option(help="Only this segment.")] = None,
    snapshot: Annotated[int | None, typer.Option(help="As of this snapshot.")] = None,
) -> None:
    """Print rows of a table, or what they amount to."""
    from gossamer.cli import crawldb, show
    from gossamer.errors import UsageError

    chosen = options(context)
    form = Format.JSONL if chosen.json else output
    part = Part(prefix, host, domain, tld, url)
    refuse_combinations(
        table, part, {"--stats": stats, "--top": top, "--by": by, "--limit": limit, "--columns": columns}
    )
    with chosen.open() as crawl:
        source = crawl.source(snapshot)
        spec = source.tables.get(table)
        if spec is None:
            raise UsageError(f"there is no table {table}; choose from {', '.join(sorted(source.tables))}")
        refuse_segment(source, spec, segment)
        rows = labelled(part_of(crawl, source, spec, part, segment), spec)
        rows = rows if where is None else filtered(rows, where)
        if stats:
            if form is Format.CSV:
                raise UsageError("--stats is printed as tables or, with --json, as JSON lines; leave out --format csv")
            crawldb.print_stats(crawl, rows, limit, as_json=form is Format.JSONL)
            return
        rows = narrowed(largest(rows, spec, top, by) if top is not None else rows, spec, columns)
        if form is Format.TABLE and limit is None and top is None:
            limit = PAGE
        if limit is not None:
            rows = rows.limit(limit)
        batches = crawl.batches(rows, small=top is not None or (limit is not None and limit <= 100_000))
        found: Iterable[dict[str, Any]] = (row for batch in batches for row in batch.to_pylist(maps_as_pydicts="lossy"))
        if url is not None:
            found = known(found, url)
        if form is Format.JSONL:
            show.print_json_lines(found)
        elif form is Format.CSV:
            show.print_csv(rows.columns, found)
        elif url is not None:
            for row in found:
                crawldb.print_record(row, {column.name: column.doc for column in spec.columns})
        else:
            show.print_table(rows.columns, (list(row.values()) for row in found))


def refuse_combinations(table: str, part: Part, others: dict[str, Any]) -> None:
    """Raise if options contradict each other."""
    from gossamer.errors import UsageError

    parts = [f"--{f.name}" for f in fields(part) if getattr(part, f.name) is not None]
    given = [name for name, value in others.items() if value not in (None, False)]
    if len(parts) > 1:
        raise UsageError(f"{parts[0]} and {parts[1]} exclude each other; give one of them")
    for option in ("--stats", "--url"):
        if option in (*given, *parts) and table != "crawldb":
            raise UsageError(f"{option} is about the crawldb, not {table}; leave it out")
    for one, other in (
        *(("--stats", name) for name in ("--top", "--columns", "--url")),
        *(("--url", name) for name in ("--top", "--limit")),
        ("--top", "--limit"),
    ):
        if one in (*given, *parts) and other in (*given, *parts):
            raise UsageError(f"{one} and {other} do not go together; leave one out")
    if "--by" in given and "--top" not in given:
        raise UsageError("--by says what --top compares; give --top N too")


def part_of(crawl: Crawl, source: Source, spec: Table, part: Part, segment: str | None) -> ir.Table:
    """The rows of a table that lie in the part wanted."""
    from gossamer.cli import crawldb
    from gossamer.errors import UsageError
    from gossamer.tables.ranges import domain_ranges, host_ranges, prefix_ranges

    if part.url is not None:
        return crawldb.url_rows(crawl, source, part.url)
    option = next((f.name for f in fields(part) if getattr(part, f.name) is not None), None)
    if option is None:
        return source.table(spec.name, segment=segment)
    if spec.order[:1] not in (SORTED if option == "prefix" else SORTED[:2]):
        raise UsageError(f"{spec.name} is not sorted by row key, so --{option} cannot be used; use --where")
    text = getattr(part, option)
    if option == "prefix":
        keys = prefix_ranges(text) if text else None
    else:
        name = crawldb.host_of(text, f"--{option}")
        keys = host_ranges(name) if option == "host" else domain_ranges(name)
    return source.table(spec.name, segment=segment, keys=keys)


def known(rows: Iterable[dict[str, Any]], url: str) -> list[dict[str, Any]]:
    """The rows of a URL, if there are any."""
    from gossamer.errors import UsageError

    found = list(rows)
    if not found:
        raise UsageError(f"--url {url}: the crawldb does not know it; see --host or --domain for what it knows")
    return found


def largest(rows: ir.Table, spec: Table, count: int, by: str | None) -> ir.Table:
    """The rows with the largest values of a column; those without a value come last."""
    import ibis

    from gossamer.errors import UsageError

    column = by or "inlinks"
    if column not in rows.columns:
        raise UsageError(f"{spec.name} has no column {column}; choose --by from {', '.join(rows.columns)}")
    if rows[column].type().is_nested():
        raise UsageError(f"--by {column}: {rows[column].type()} has no largest; choose another column")
    ties = [ibis.asc(name, nulls_first=True) for name in spec.key if name != column]
    return rows.order_by(ibis.desc(column, nulls_first=False), *ties).limit(count)


def refuse_segment(source: Source, spec: Table, segment: str | None) -> None:
    """Raise if a table was asked for a segment that it cannot have."""
    from gossamer.errors import UsageError
    from gossamer.tables.spec import Kind

    if segment is None:
        return
    if spec.kind is not Kind.SEGMENT:
        raise UsageError(f"{spec.name} is not a table of segments; leave out --segment")
    known = sorted({s.segment for s in source.snapshot.sets(spec.name) if s.segment})
    if segment not in known:
        raise UsageError(f"{spec.name} has no segment {segment}; it has {', '.join(known[-10:]) or 'none'}")


def labelled(rows: ir.Table, spec: Table) -> ir.Table:
    """Codes replaced by their names, as people write and read them; a code without a name stays a number."""
    coded = {c.name: c.labels for c in spec.columns if c.labels is not None}
    names = {
        name: rows[name].cases(
            *((label.value, label.name.lower()) for label in labels), else_=rows[name].cast("string")
        )
        for name, labels in coded.items()
    }
    return rows.mutate(**names) if names else rows


def narrowed(rows: ir.Table, spec: Table, columns: str | None) -> ir.Table:
    """Some columns of the rows."""
    from gossamer.errors import UsageError

    if columns is None:
        return rows
    names = list(dict.fromkeys(name.strip() for name in columns.split(",") if name.strip()))
    unknown = [name for name in names if name not in rows.columns]
    if unknown:
        raise UsageError(f"{spec.name} has no column {unknown[0]}; it has {', '.join(rows.columns)}")
    if not names:
        raise UsageError(f"--columns names none; {spec.name} has {', '.join(rows.columns)}")
    return rows.select(*names)


def filtered(rows: ir.Table, where: str) -> ir.Table:
    """Rows for which a SQL condition over their columns holds."""
    import sqlglot
    from sqlglot import exp

    from gossamer.errors import UsageError

    try:
        queries = sqlglot.parse(f"SELECT 1 FROM t WHERE {where}", read="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise _no_condition(where, error) from error
    query = queries[0]
    known = ("kind", "expressions", "from_", "from", "where")
    plain = isinstance(query, exp.Select) and not any(query.args[key] for key in query.args if key not in known)
    clause = query.args.get("where") if plain and query is not None else None
    if len(queries) > 1 or clause is None or clause.find(exp.Select, exp.Table):
        raise UsageError(f"--where {where}: write a condition over the table's columns only")
    unknown = [c.name for c in clause.find_all(exp.Column) if c.name not in rows.columns]
    if unknown:
        raise UsageError(f"--where {where}: there is no column {unknown[0]}; there are {', '.join(rows.columns)}")
    condition = clause.this.sql("duckdb")
    try:
        return rows.alias("rows_to_filter").sql(f"SELECT * FROM rows_to_filter WHERE {condition}", dialect="duckdb")
    except Exception as error:
        raise _no_condition(where, error) from error


def _no_condition(where: str, error: Exception) -> UsageError:
    from gossamer.errors import UsageError

    reason = str(error).strip().split("\n")[0]
    return UsageError(f'--where {where}: not a SQL condition ({reason}); write one like "inlinks > 3"')
