"""read: any table, filtered, as a table, JSON lines or CSV."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gossamer.cli.context import options

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.tables.spec import Table

PAGE = 20  # rows shown to a person who did not ask for more


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
        if prefix is not None and not spec.order[:1]:
            raise UsageError(f"{table} is not sorted, so --prefix cannot be used; use --where")
        rows = labelled(source.table(table, segment=segment, keys=prefix_range(prefix) if prefix else None), spec)
        rows = narrowed(rows, spec, where, columns)
        if form is Format.TABLE and limit is None:
            limit = PAGE
        if limit is not None:
            rows = rows.limit(limit)
        batches = crawl.batches(rows, small=limit is not None and limit <= 100_000)
        found = (row for batch in batches for row in batch.to_pylist())
        if form is Format.JSONL:
            show.print_json_lines(found)
        elif form is Format.CSV:
            show.print_csv(rows.columns, found)
        else:
            show.print_table(rows.columns, (list(row.values()) for row in found))


def labelled(rows: ir.Table, spec: Table) -> ir.Table:
    """Codes replaced by their names, as people write and read them."""
    coded = {c.name: c.labels for c in spec.columns if c.labels is not None}
    names = {
        name: rows[name].cases(*((label.value, label.name.lower()) for label in labels))
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
    names = [name.strip() for name in columns.split(",") if name.strip()]
    unknown = [name for name in names if name not in rows.columns]
    if unknown or not names:
        raise UsageError(f"{spec.name} has no column {unknown[0] if unknown else ''}; it has {', '.join(rows.columns)}")
    return rows.select(*names)


def filtered(rows: ir.Table, where: str) -> ir.Table:
    """Rows for which a SQL condition over their columns holds."""
    import sqlglot
    from sqlglot import exp

    from gossamer.errors import UsageError

    try:
        query = sqlglot.parse_one(f"SELECT 1 FROM t WHERE {where}", read="duckdb")
    except sqlglot.ParseError as error:
        raise UsageError(f"--where {where}: not a SQL condition ({error.errors[0]['description']})") from error
    clause = query.args.get("where")
    extra = [
        key
        for key, value in query.args.items()
        if value and key not in ("kind", "expressions", "from_", "from", "where")
    ]
    if not isinstance(query, exp.Select) or clause is None or extra or clause.find(exp.Select, exp.Table):
        raise UsageError(f"--where {where}: write a condition over the table's columns only")
    unknown = [c.name for c in clause.find_all(exp.Column) if c.name not in rows.columns]
    if unknown:
        raise UsageError(f"--where {where}: there is no column {unknown[0]}; there are {', '.join(rows.columns)}")
    condition = clause.this.sql("duckdb")
    return rows.alias("rows_to_filter").sql(f"SELECT * FROM rows_to_filter WHERE {condition}", dialect="duckdb")
