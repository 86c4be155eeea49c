"""read: any table, filtered, as a table, JSON lines or CSV."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gossamer.cli.context import options

if TYPE_CHECKING:
    import ibis.expr.types as ir

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
        str | None, typer.Option(help="Only row keys with this prefix, such as org.apache; reads only their part.")
    ] = None,
    segment: Annotated[str | None, typer.Option(help="Only this segment.")] = None,
    snapshot: Annotated[int | None, typer.Option(help="As of this snapshot.")] = None,
) -> None:
    """Print rows of a table."""
    from gossamer.cli import show
    from gossamer.errors import UsageError
    from gossamer.urls.keys import prefix_range

    chosen = options(context)
    form = Format.JSONL if chosen.json else output
    with chosen.open() as crawl:
        source = crawl.source(snapshot)
        spec = source.tables.get(table)
        if spec is None:
            raise UsageError(f"there is no table {table}; choose from {', '.join(sorted(source.tables))}")
        if prefix is not None and spec.order[:1] not in SORTED:
            raise UsageError(f"{table} is not sorted by row key, so --prefix cannot be used; use --where")
        refuse_segment(source, spec, segment)
        rows = labelled(source.table(table, segment=segment, keys=(prefix_range(prefix),) if prefix else None), spec)
        rows = narrowed(rows, spec, where, columns)
        if form is Format.TABLE and limit is None:
            limit = PAGE
        if limit is not None:
            rows = rows.limit(limit)
        batches = crawl.batches(rows, small=limit is not None and limit <= 100_000)
        found = (row for batch in batches for row in batch.to_pylist(maps_as_pydicts="lossy"))
        if form is Format.JSONL:
            show.print_json_lines(found)
        elif form is Format.CSV:
            show.print_csv(rows.columns, found)
        else:
            show.print_table(rows.columns, (list(row.values()) for row in found))


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


def narrowed(rows: ir.Table, spec: Table, where: str | None, columns: str | None) -> ir.Table:
    """Rows that meet a condition, and some of their columns."""
    from gossamer.errors import UsageError

    if where is not None:
        rows = filtered(rows, where)
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
