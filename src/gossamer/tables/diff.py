"""What changed in a table between two snapshots, row by row."""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from gossamer.tables.spec import META, Kind, Table

OLD = "_old_"


def changes(table: Table, before: ir.Table, after: ir.Table) -> ir.Table:
    """Counts of added, removed, changed and equal rows by key; stable columns decide what is changed."""
    names = [n for n in table.stable if not _nested(table, n)]
    key = (*table.key, "segment") if table.kind is Kind.SEGMENT else table.key  # a URL may be in many segments
    old = before.select(*names).rename({f"{OLD}{n}": n for n in names})
    joined = after.select(*names).outer_join(old, [(k, f"{OLD}{k}") for k in key])
    added, removed = joined[f"{OLD}{table.key[0]}"].isnull(), joined[table.key[0]].isnull()
    differs = ibis.literal(False)
    for name in names:
        differs = differs | ~joined[name].identical_to(joined[f"{OLD}{name}"])
    kind = ibis.cases((added, "added"), (removed, "removed"), (differs, "changed"), else_="equal")
    return joined.select(kind.name("change")).group_by("change").aggregate(rows=ibis._.count()).order_by("change")


def _nested(table: Table, name: str) -> bool:
    """Maps and lists cannot be compared on every engine."""
    kind = table.column(name).type
    return bool(kind == META or kind.num_fields > 0)
