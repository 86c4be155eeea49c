"""Base + deltas: what a keyed table holds, as one expression over its file sets.

Two rows of one key, an older and a newer, combine column by column after the table's merge rules. That is associative,
so change sets are folded among themselves first (they are small) and meet the base in a single join.
"""

from __future__ import annotations

from collections.abc import Sequence

import ibis
import ibis.expr.types as ir

from gossamer.storage.parquet import DELETED
from gossamer.tables.fold import GONE, WIPE
from gossamer.tables.spec import Column, Merge, Table

NEWER = "_newer_"


def merge(table: Table, base: ir.Table | None, deltas: Sequence[ir.Table]) -> ir.Table:
    """The rows of a keyed table; deltas are in the order they were published and may carry `_deleted`."""
    if not deltas:
        if base is None:
            raise ValueError("nothing to merge")
        return base.select(*table.names)
    marks = any(DELETED in delta.columns for delta in deltas)
    folded = _fold(table, [_marked(table, delta, marks) for delta in deltas], marks)
    if base is not None:
        folded = combine(table, _marked(table, base, marks), folded, marks)
    if marks:
        folded = folded.filter(~folded[GONE])
    return folded.select(*table.names)


def _marked(table: Table, rows: ir.Table, marks: bool) -> ir.Table:
    """The rows with the two marks, when any change set deletes."""
    if not marks:
        return rows.select(*table.names)
    deleted = rows[DELETED].fill_null(False) if DELETED in rows.columns else ibis.literal(False)
    return rows.select(*table.names, deleted.name(WIPE), deleted.name(GONE))


def _fold(table: Table, deltas: list[ir.Table], marks: bool) -> ir.Table:
    """All change sets as one, combined pairwise so the work grows with their total size."""
    while len(deltas) > 1:
        pairs = [deltas[i : i + 2] for i in range(0, len(deltas), 2)]
        deltas = [combine(table, p[0], p[1], marks) if len(p) == 2 else p[0] for p in pairs]
    return deltas[0]


def combine(table: Table, older: ir.Table, newer: ir.Table, marks: bool = False) -> ir.Table:
    """One row per key of two tables whose keys are unique."""
    renamed = newer.rename({f"{NEWER}{name}": name for name in newer.columns})
    joined = older.outer_join(renamed, [(k, f"{NEWER}{k}") for k in table.key])
    only_newer, only_older = joined[table.key[0]].isnull(), joined[f"{NEWER}{table.key[0]}"].isnull()
    takes_newer = only_newer
    if marks:
        takes_newer = takes_newer | (joined[f"{NEWER}{WIPE}"] | joined[GONE]).fill_null(False) & ~only_older
    newest = takes_newer
    if table.version_by:
        version, theirs = joined[table.version_by], joined[f"{NEWER}{table.version_by}"]
        newest = takes_newer | theirs.notnull() & (version.isnull() | (theirs >= version))
    columns = [
        _column(c, joined[c.name], joined[NEWER + c.name], takes_newer, newest).name(c.name) for c in table.columns
    ]
    if marks:
        wipe = joined[WIPE].fill_null(False) | joined[f"{NEWER}{WIPE}"].fill_null(False)
        gone = ibis.ifelse(only_older, joined[GONE], joined[f"{NEWER}{GONE}"].fill_null(False))
        columns += [wipe.name(WIPE), gone.name(GONE)]
    return joined.select(*columns).view()  # Ibis would take the next join into this chain and lose the computed columns


def _column(
    column: Column, older: ir.Value, newer: ir.Value, takes_newer: ir.BooleanValue, newest: ir.BooleanValue
) -> ir.Value:
    """One column of the combined row; `takes_newer` rows have no valid older row."""
    if column.merge is Merge.KEY:
        return ibis.coalesce(older, newer)
    if column.merge is Merge.NEWEST:
        return ibis.ifelse(newest, newer, older)
    both = {
        Merge.KEEP: lambda: ibis.coalesce(older, newer),
        Merge.SUM: lambda: ibis.coalesce(older + newer, older, newer).cast(older.type()),
        Merge.MAX: lambda: ibis.coalesce(ibis.ifelse(newer > older, newer, older), older, newer),
        Merge.MIN: lambda: ibis.coalesce(ibis.ifelse(newer < older, newer, older), older, newer),
    }[column.merge]()
    return ibis.ifelse(takes_newer, newer, both)
