"""The rows of a fetchlist: for the URLs that were chosen, the columns that did not decide.

A task reads only row groups in which something was chosen. URLs are made from row keys, which are read twice as fast;
where that does not give the URL back (one loaded with a password in it), the URL itself is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.stages.generate.candidates import FACTS, ROW
from gossamer.storage.parquet import DELETED, FileEntry, Target, entries_table, write_part
from gossamer.tables.fold import ShardFiles, finished, fold, key_pairs, marked, opened, read_columns
from gossamer.tables.spec import Table
from gossamer.urls import keys

KEY = ("domain_fp", "url_fp")


@dataclass(frozen=True)
class Form:
    """How the rows of a fetchlist are made from those of the crawldb."""

    segment: str
    per: str  # what politeness queues go by: host, domain or ip
    partitions: int
    rules_version: int
    scorers: tuple[str, ...]


@dataclass(frozen=True)
class RowsTask:
    """The chosen URLs of one group of shards."""

    number: int
    shard: ShardFiles
    table: Table  # the crawldb
    chosen: FileEntry
    schema: pa.Schema  # of the chosen
    target: Target
    form: Form


NAMED = {"fetched_in": "segment"}  # a column of the crawldb that has another name in a fetchlist


def make_rows(task: RowsTask) -> pa.Table:
    """Write the chosen rows, complete, to scratch."""
    schema = task.target.schema
    chosen = read_columns(task.target.files, [task.chosen], task.schema.names, task.schema).sort_by(ROW)
    carried = [NAMED.get(name, name) for name in schema.names if name != "segment"]
    names = [n for n in carried if n in task.table.names and n not in FACTS and n not in ("host", "url", *KEY)]
    rest = chosen_rows(task.shard, task.table, chosen, names)
    at = pc.index_in(rest.column(ROW), chosen.column(ROW).combine_chunks())
    whole = chosen.take(at)
    for name in names:
        whole = whole.append_column(name, rest.column(name))
    urls = _urls(task.shard, task.table, whole)
    unknown = pc.equal(whole.column("host"), "")
    hosts = pc.if_else(unknown, keys.hosts(urls), whole.column("host")) if pc.any(unknown).as_py() else whole["host"]
    whole = whole.set_column(whole.column_names.index("host"), "host", hosts)
    rows = _listed(whole.append_column("url", urls), task.form, schema)
    entry = write_part(task.target, [rows], 0, task.number)
    return entries_table([entry] if entry else [])


def _listed(rows: pa.Table, form: Form, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a fetchlist: partition by registered domain (or address), a queue, a random position, the score's parts."""
    count = rows.num_rows
    domains = rows.column("domain_fp").to_numpy()
    queue = rows.column("host")
    if form.per != "host":
        domain = keys.url_columns(rows.column("url").combine_chunks())["domain"]
        queue = domain if form.per == "domain" else pc.coalesce(rows.column("address").combine_chunks(), domain)
    if form.per == "ip":
        cut_by = rows.column("group").to_numpy()
    else:
        cut_by = domains
    parts = (
        np.stack([rows.column(f"part_{name}").to_numpy() for name in form.scorers], axis=1)
        if form.scorers
        else np.empty((count, 0))
    )
    given = {
        **{n: rows.column(n) for n in rows.column_names if n in schema.names and n != "segment"},
        "fetched_in": rows.column("segment"),
        "segment": pa.repeat(form.segment, count),
        "partition": pa.array((cut_by.view(np.uint64) >> np.uint64(33)) % np.uint64(form.partitions)).cast(pa.int32()),
        "queue": queue,
        "position": keys.positions(rows.column("url_fp").combine_chunks(), form.segment),
        "parts": pa.MapArray.from_arrays(
            np.arange(count + 1, dtype=np.int32) * len(form.scorers),
            pa.array(list(form.scorers) * count, pa.string()),
            pa.array(parts.reshape(-1)),
        ),
        "rules_version": pa.repeat(pa.scalar(form.rules_version, pa.int64()), count),
    }
    columns = [c.combine_chunks() if isinstance(c := given[f.name], pa.ChunkedArray) else c for f in schema]
    return pa.RecordBatch.from_arrays([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def chosen_rows(shard: ShardFiles, table: Table, chosen: pa.Table, names: list[str]) -> pa.Table:
    """Some columns of chosen rows, folded; `chosen` has their places and keys."""
    wanted = list(dict.fromkeys([*KEY, *names, *((table.version_by,) if table.version_by else ())]))
    narrow = table.narrowed(tuple(wanted))
    places = chosen.column(ROW).to_numpy()
    base_rows = sum(entry.rows for entry in shard.base)
    base = _at_places(shard, narrow, wanted, places[places < base_rows])
    deltas = _deltas_of(shard, narrow, wanted, chosen)
    old = base.drop_columns([ROW])
    rows = old if deltas is None else finished(fold(narrow, old, deltas))
    by_key = key_pairs(chosen)
    found = pc.index_in(key_pairs(rows), by_key)
    keep = found.is_valid()
    rows = rows.filter(keep).append_column(ROW, chosen.column(ROW).take(found.drop_null()))
    _, first = np.unique(rows.column(ROW).to_numpy(), return_index=True)
    return rows.take(pa.array(np.sort(first)))


def _deltas_of(shard: ShardFiles, table: Table, names: list[str], chosen: pa.Table) -> pa.Table | None:
    """What the change sets say of the chosen URLs."""
    wanted = chosen.column("url_fp").combine_chunks()
    whole: pa.Table | None = None
    for entries in shard.deltas:
        if not entries:
            continue
        delta = read_columns(shard.files, entries, [*names, DELETED], table.schema)
        delta = marked(delta.filter(pc.is_in(delta.column("url_fp"), wanted)))
        whole = delta if whole is None else fold(table, whole, delta)
    return whole


def _at_places(shard: ShardFiles, table: Table, names: list[str], places: np.ndarray) -> pa.Table:
    """Rows of the base by their places; `places` grow."""
    parts: list[pa.Table] = []
    start = 0
    for entry in shard.base:
        inside = places[(places >= start) & (places < start + entry.rows)]
        parts += _of_file(shard, entry, table, names, inside - start, start)
        start += entry.rows
    schema = pa.schema([*(pa.field(n, table.column(n).type) for n in names), pa.field(ROW, pa.int64())])
    return pa.concat_tables([schema.empty_table(), *parts])


def _of_file(
    shard: ShardFiles, entry: FileEntry, table: Table, names: list[str], places: np.ndarray, start: int
) -> Iterator[pa.Table]:
    """Rows of one file by their places in it, a row group at a time."""
    if not len(places):
        return
    with opened(shard.files, entry) as stream, pq.ParquetFile(stream, pre_buffer=False) as file:
        there = [name for name in names if name in file.schema_arrow.names]
        first = 0
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            here = places[(places >= first) & (places < first + group.num_rows)]
            if len(here):
                filled = [name for name in there if not _empty(group, name)]
                rows = file.read_row_group(number, filled, use_threads=False).take(pa.array(here - first))
                columns = [
                    rows.column(n) if n in filled else pa.chunked_array([pa.nulls(len(here), table.column(n).type)])
                    for n in names
                ]
                yield pa.table([*columns, pa.array(here + start)], [*names, ROW])
            first += group.num_rows


def _empty(group: pq.RowGroupMetaData, name: str) -> bool:
    """Whether a flat column of a row group holds nothing but NULLs."""
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == name:
            known = column.statistics
            return known is not None and known.has_null_count and known.num_values == 0
    return False


def urls_of(shard: ShardFiles, table: Table, chosen: pa.Table) -> pa.Array:
    """URLs of some rows of `deciding_rows`, in their order."""
    ordered = chosen.select([*KEY, "host", ROW]).sort_by(ROW)
    rest = chosen_rows(shard, table, ordered, ["rowkey"])
    at = pc.index_in(chosen.column(ROW), rest.column(ROW).combine_chunks())
    return _urls(shard, table, rest.take(at).append_column("host", chosen.column("host").cast(pa.string())))


def _urls(shard: ShardFiles, table: Table, rows: pa.Table) -> pa.Array:
    """URLs of rows with host and row key."""
    urls = keys.hrefs(rows.column("rowkey").combine_chunks(), rows.column("host").combine_chunks())
    wrong = pc.not_equal(keys.fingerprints(urls), rows.column("url_fp").combine_chunks()).fill_null(True)
    at = np.flatnonzero(wrong.to_numpy(zero_copy_only=False))
    if not len(at):
        return urls
    some = rows.select([*KEY, ROW]).take(pa.array(at)).sort_by(ROW)
    stored = chosen_rows(shard, table, some, ["url"])
    found = pc.index_in(rows.column(ROW).take(pa.array(at)), stored.column(ROW).combine_chunks())
    right = stored.column("url").take(found).combine_chunks()
    return pc.replace_with_mask(urls, wrong, right)
