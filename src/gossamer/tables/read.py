"""Reading a table at a snapshot: its file sets, migrated and merged, as one Ibis table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import ibis
import pyarrow as pa
from xxhash import xxh3_64_hexdigest

from gossamer.errors import VersionError
from gossamer.storage.parquet import DELETED, FileEntry, corrupt, verify
from gossamer.storage.snapshots import FileSet, Snapshot, read_manifest
from gossamer.tables.merge import merge
from gossamer.tables.spec import Kind, Table

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.engine.base import Engine
    from gossamer.storage.files import Files


Keys = tuple[tuple[str, str | None], ...]  # ranges: the lowest key and the first that is too high


@dataclass(frozen=True)
class Group:
    """Shards that agree in their low bits: one shard, or those that split from or join into one."""

    number: int
    groups: int  # a power of two

    def holds(self, shard: int) -> bool:
        """Whether a shard belongs here."""
        return shard & (self.groups - 1) == self.number


@dataclass(frozen=True)
class Source:
    """A version of the crawl to read from, with the tables it may hold."""

    engine: Engine
    files: Files
    snapshot: Snapshot
    tables: dict[str, Table]
    verified: set[str] | None = None  # files whose checksums were compared; None: they are taken on trust

    def table(
        self,
        name: str,
        *,
        segment: str | None = None,
        keys: Keys | None = None,
        among: ir.Table | None = None,
    ) -> ir.Table:
        """Rows of a table; `keys` limits it to a range of its leading order column before anything is merged.

        `among` is another limit that is applied before merging: a table of (some) key columns, of which only those rows
        are wanted.
        """
        table = self.tables[name]
        return self.rows(table, self.snapshot.sets(name, segment), keys=keys, among=among)

    def rows(
        self,
        table: Table,
        sets: Sequence[FileSet],
        *,
        group: Group | None = None,
        keys: Keys | None = None,
        among: ir.Table | None = None,
    ) -> ir.Table:
        """Rows of some file sets of a table, of all shards or of one group of them."""
        if table.kind is not Kind.KEYED:
            parts = self._read(table, sets, group, keys, among)
            return _union(parts).select(*table.names) if parts else self.engine.values(table.schema.empty_table())
        base = self._read(table, [s for s in sets if not s.delta], group, keys, among)
        deltas = [part for s in sets if s.delta for part in self._read(table, [s], group, keys, among)]
        if not base and not deltas:
            return self.engine.values(table.schema.empty_table())
        return merge(table, _union(base) if base else None, deltas)

    def changes(self, table: Table, file_set: FileSet, *, among: ir.Table | None = None) -> ir.Table:
        """The rows of one change set as they are stored, with their deletion marks if it has any."""
        return _union(self._read(table, [file_set], None, None, among))

    def _read(
        self,
        table: Table,
        sets: Iterable[FileSet],
        group: Group | None,
        keys: Keys | None,
        among: ir.Table | None,
    ) -> list[ir.Table]:
        """One Ibis table per layout of files, migrated to today's schema."""
        parts = []
        for _, alike in groupby(sorted(sets, key=_layout), key=_layout):
            same = list(alike)
            entries = [entry for s in same for entry in read_manifest(self.files, s)]
            if group is not None:
                entries = [entry for entry in entries if group.holds(entry.shard)]
            self._verify(entries)
            if entries:
                rows = self._migrated(table, entries, same[0])
                rows = _in_range(rows, table.order[0], keys) if keys else rows
                parts.append(rows if among is None else rows.semi_join(among, list(among.columns)).view())
        return parts

    def _verify(self, entries: list[FileEntry]) -> None:
        """Compare checksums, once per file, where that is wanted."""
        if self.verified is None:
            return
        for entry in entries:
            if entry.path not in self.verified:
                verify(self.files, entry)
                self.verified.add(entry.path)

    def _migrated(self, table: Table, entries: list[FileEntry], like: FileSet) -> ir.Table:
        if like.version > table.version:
            raise VersionError(
                f"table {table.name} has schema version {like.version}, this Gossamer knows {table.version}; "
                "upgrade with `pip install -U gossamer`"
            )
        paths = [self.files.url(entry.path) for entry in entries]
        if like.version == table.version:
            return self.engine.read(paths, _with_marks(table.schema, like))
        rows = self.engine.read(paths, stored_schema(self.files, entries[0]))
        for version in range(like.version, table.version):
            if version not in table.migrations:
                raise VersionError(
                    f"table {table.name}: schema version {version} is too old to be read; migrate it with an older release first"
                )
            rows = table.migrations[version](rows)
        schema = ibis.Schema.from_pyarrow(_with_marks(table.schema, like))
        missing = {name: ibis.null(dtype) for name, dtype in schema.items() if name not in rows.columns}
        return rows.mutate(**missing).select(*schema.names).cast(dict(schema.items()))


def _layout(file_set: FileSet) -> tuple[int, str, bool]:
    return file_set.version, file_set.layout, file_set.deletes > 0


def _with_marks(schema: pa.Schema, like: FileSet) -> pa.Schema:
    """The schema of a change set, which may also say what is deleted."""
    return schema.append(pa.field(DELETED, pa.bool_())) if like.deletes else schema


def _union(parts: Sequence[ir.Table]) -> ir.Table:
    return parts[0] if len(parts) == 1 else ibis.union(*parts)


def _in_range(rows: ir.Table, column: str, keys: Keys) -> ir.Table:
    inside = [
        rows[column] >= low if high is None else (rows[column] >= low) & (rows[column] < high) for low, high in keys
    ]
    return rows.filter(ibis.or_(*inside))


def stored_schema(files: Files, entry: FileEntry) -> pa.Schema:
    """The schema a file was written with."""
    import pyarrow.parquet as pq

    try:
        with files.open(entry.path) as stream:
            return pq.read_schema(stream).remove_metadata()
    except pa.ArrowException as error:
        raise corrupt(files.url(entry.path), error) from error


def layout_of(schema: pa.Schema) -> str:
    """A fingerprint of column names and types."""
    return xxh3_64_hexdigest("\n".join(f"{f.name} {f.type}" for f in schema).encode())
