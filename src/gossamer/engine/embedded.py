"""The embedded engine: DuckDB for relations, a process pool for Python functions, scratch files between them.

DuckDB runs in memory over files with an explicit memory limit and spills to scratch. Rows for `map_batches` are sorted
by DuckDB, spooled per partition as Arrow files, and mapped by the pool while later partitions are still being spooled.
"""

from __future__ import annotations

import itertools
import os
import queue
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir
import pyarrow as pa

from gossamer.engine.base import BatchFunction, Ordered, SortKey, TaskFunction, canonical, conformed, one_result, ordered
from gossamer.engine.pool import Pool
from gossamer.engine.worker import SHARD, by_shard, map_part, unique, write_shards
from gossamer.errors import EngineError, GossamerError
from gossamer.storage.disk import Disk
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import FileEntry, Target, blame, entries_of, entries_table, write_part

BATCH_ROWS = 64 * 1024
CHUNK_BATCHES = 4  # of unordered rows per partition of map_batches
FILE_ROWS = 4_000_000  # per file, of tables without shards
QUEUE_BATCHES = 4  # waiting for each shard's writer
PART = "__part"


class Unsynced(Disk):
    """Scratch files need not survive a power cut."""

    def sync(self, fd: int) -> None:
        """Nothing."""

    def sync_dir(self, path: str) -> None:
        """Nothing."""


class EmbeddedEngine:
    """One machine, all its cores, no service."""

    name = "embedded"

    def __init__(
        self, workers: int | None = None, memory_mb: int = 4096, threads: int | None = None, scratch: str | None = None
    ) -> None:
        cores = os.cpu_count() or 1
        self.workers = cores if workers is None else workers
        self._folder = tempfile.mkdtemp(prefix="gossamer-", dir=scratch)
        self._scratch = LocalFiles(self._folder, Unsynced())
        self._ibis = ibis.duckdb.connect(
            threads=threads or cores,
            memory_limit=f"{memory_mb}MB",
            temp_directory=f"{self._folder}/spill",
            preserve_insertion_order=False,
        )
        self._duckdb: duckdb.DuckDBPyConnection = self._ibis.con
        self._duckdb.execute("SET TimeZone='UTC'; SET enable_progress_bar=false")
        self._pool = Pool(self.workers)
        self._names = itertools.count()
        self._files: dict[str, None] = {}  # everything ever read here, to blame a damaged one

    def read(self, files: Sequence[str], schema: pa.Schema) -> ir.Table:
        if not files:
            return self.values(schema.empty_table())
        if any(f.startswith("s3://") for f in files):
            self._mount_s3()
        self._files |= dict.fromkeys(files)
        source = f"read_parquet([{', '.join(_quote(f) for f in files)}], hive_partitioning=false)"
        present = {row[0] for row in self._execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
        types = self._ibis.compiler.type_mapper
        columns = [
            f"CAST({_name(name) if name in present else 'NULL'} AS {types.to_string(dtype)}) AS {_name(name)}"
            for name, dtype in ibis.Schema.from_pyarrow(schema).items()
        ]
        view = f"files_{next(self._names)}"
        self._execute(f"CREATE VIEW {view} AS SELECT {', '.join(columns)} FROM {source}")
        return self._ibis.table(view)

    def values(self, table: pa.Table) -> ir.Table:
        name = f"values_{next(self._names)}"
        self._duckdb.register("incoming", table)
        self._execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        self._duckdb.unregister("incoming")
        return self._ibis.table(name)

    def collect(self, table: ir.Table) -> pa.Table:
        return conformed(pa.Table.from_batches(*self._stream(self._ibis.compile(table))), canonical(table))

    def map_batches(
        self,
        table: ir.Table,
        fn: BatchFunction,
        schema: pa.Schema,
        *,
        by: SortKey | Sequence[SortKey] | None = None,
        sort: Sequence[SortKey] = (),
        partitions: int | None = None,
    ) -> ir.Table:
        plan = ordered(table, by, sort)
        folder = f"map_{next(self._names)}"
        target = Target(self._scratch, f"{folder}/out", schema)
        spools = self._spool_keys(plan, folder, partitions) if plan.by else self._spool_rows(plan, folder, partitions)
        calls = (partial(_map_spool, fn, spool, target, task) for task, spool in enumerate(spools))
        entries = entries_of(pa.concat_tables([entries_table(()), *self._pool.run(calls, fn)]))
        return self.read([self._scratch.url(entry.path) for entry in entries], schema)

    def run_tasks(self, tasks: Sequence[Any], fn: TaskFunction) -> pa.Table:
        return one_result(tasks, self._pool.run((partial(fn, task) for task in tasks), fn))

    def write(self, table: ir.Table, target: Target) -> list[FileEntry]:
        rows = table.select(*target.schema.names)
        order = [f"{_name(name)} NULLS FIRST" for name in target.order]
        if target.shard_by is None:
            sql = f"SELECT * FROM ({self._ibis.compile(rows)})" + (f" ORDER BY {', '.join(order)}" if order else "")
            pieces = _by_size(unique(self._stream(sql)[0], target.key if order else ()))
        else:
            shard = f"CAST({_name(target.shard_by)} & {target.shards - 1} AS INTEGER) AS {SHARD}"
            sql = f"SELECT *, {shard} FROM ({self._ibis.compile(rows)}) ORDER BY {', '.join([SHARD, *order])}"
            if not self.workers:
                return write_shards(target, self._stream(sql)[0], 0)
            pieces = by_shard(unique(self._stream(sql)[0], target.key))
        return self._write_pieces(pieces, target)

    def close(self) -> None:
        self._pool.close()
        self._duckdb.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write_pieces(self, pieces: Iterator[tuple[int, pa.RecordBatch]], target: Target) -> list[FileEntry]:
        """Write numbered runs of batches, each as one file, several files at a time."""
        sharded = target.shard_by is not None
        with ThreadPoolExecutor(max(1, self.workers)) as threads:
            futures: list[Future[FileEntry | None]] = []
            for number, group in itertools.groupby(pieces, key=lambda piece: piece[0]):
                waiting: queue.Queue[pa.RecordBatch | None] = queue.Queue(QUEUE_BATCHES)
                shard, task = (number, 0) if sharded else (0, number)
                future = threads.submit(write_part, target, iter(waiting.get, None), shard, task)
                futures.append(future)
                for _, batch in group:
                    _put(waiting, batch, future)
                _put(waiting, None, future)
            return [entry for future in futures if (entry := future.result()) is not None]

    def _spool_keys(self, plan: Ordered, folder: str, partitions: int | None) -> Iterator[str]:
        """Sort by partition, key and order; one Arrow file per partition, given out as soon as it is full."""
        count = partitions or 2 * max(1, self.workers)
        keys = ", ".join(plan.by)
        order = [PART, *(f"{name} NULLS FIRST" for name in plan.by)]
        order += [f"{name} {'ASC NULLS FIRST' if up else 'DESC NULLS LAST'}" for name, up in plan.sort]
        own = ", ".join(_name(name) for name in plan.names)
        part = f"CAST(hash({keys}) % {count} AS INTEGER)"
        inner = f"SELECT *, {part} AS {PART} FROM ({self._ibis.compile(plan.table)})"
        batches, _ = self._stream(f"SELECT {own}, {PART} AS {SHARD} FROM ({inner}) ORDER BY {', '.join(order)}")
        for part_number, group in itertools.groupby(by_shard(batches), key=lambda piece: piece[0]):
            yield self._spool(f"{folder}/in-{part_number}", canonical(plan.table, plan.names), (b for _, b in group))

    def _spool_rows(self, plan: Ordered, folder: str, partitions: int | None) -> Iterator[str]:
        """Unordered rows in chunks; with `partitions`, dealt out to that many."""
        batches, _ = self._stream(self._ibis.compile(plan.table))
        schema = canonical(plan.table, plan.names)
        if partitions is None:
            for number in itertools.count():
                chunk = list(itertools.islice(batches, CHUNK_BATCHES))
                if not chunk:
                    return
                yield self._spool(f"{folder}/in-{number}", schema, iter(chunk))
        dealt: list[list[str]] = [[] for _ in range(partitions)]
        for number, batch in enumerate(batches):
            dealt[number % partitions].append(self._spool(f"{folder}/in-{number}", schema, iter([batch])))
        yield from ("\n".join(spools) for spools in dealt if spools)

    def _spool(self, path: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> str:
        full = self._scratch.url(path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with pa.OSFile(full, "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(conformed(batch, schema))
        return full

    def _stream(self, sql: str) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
        """Run a query and hand its rows over batch by batch."""
        cursor = self._duckdb.cursor()
        try:
            reader = cursor.execute(sql).to_arrow_reader(BATCH_ROWS)
        except duckdb.Error as error:
            raise self._explain(error) from error
        return self._guarded(cursor, reader), reader.schema

    def _guarded(self, cursor: duckdb.DuckDBPyConnection, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise self._explain(error) from error
        finally:
            cursor.close()

    def _execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        try:
            return self._duckdb.execute(sql)
        except duckdb.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: Exception) -> GossamerError:
        """A damaged or missing file if there is one, else what DuckDB says."""
        return blame(list(self._files), error) or EngineError(f"query failed: {' '.join(str(error).split())[:400]}")

    def _mount_s3(self) -> None:
        from gossamer.storage.s3 import filesystem

        if not self._duckdb.filesystem_is_registered("s3"):
            self._duckdb.register_filesystem(filesystem())


def _put(waiting: queue.Queue[pa.RecordBatch | None], batch: pa.RecordBatch | None, writer: Future[Any]) -> None:
    """Hand a batch to a writer thread; if that has failed, raise its error instead of waiting for ever."""
    while True:
        if writer.done():
            writer.result()
            return
        try:
            waiting.put(batch, timeout=0.2)
        except queue.Full:
            continue
        return


def _by_size(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Number the batches of a table without shards so that no file grows too large."""
    rows = 0
    for batch in batches:
        yield rows // FILE_ROWS, batch
        rows += batch.num_rows


def _map_spool(fn: BatchFunction, spools: str, target: Target, task: int) -> pa.Table:
    """Map one partition from its Arrow files; runs in a worker."""
    entry = map_part(fn, _unspool(spools), target, task)
    return entries_table([entry] if entry else [])


def _unspool(spools: str) -> Iterator[pa.RecordBatch]:
    for path in spools.split("\n"):
        with pa.OSFile(path, "rb") as source, pa.ipc.open_stream(source) as reader:
            yield from reader
        os.unlink(path)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
