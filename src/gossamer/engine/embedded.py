"""The embedded engine: DuckDB for relations, a process pool for Python functions, scratch files between them.

DuckDB runs in memory over files with an explicit memory limit and spills to scratch. Rows for `map_batches` are sorted
by DuckDB, spooled per partition as Arrow files, and mapped by the pool while later partitions are still being spooled.
"""

from __future__ import annotations

import itertools
import os
import queue
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir
import pyarrow as pa

from gossamer.engine.base import (
    BatchFunction,
    Ordered,
    SortKey,
    TaskFunction,
    canonical,
    files_behind,
    fitted,
    one_result,
    ordered,
)
from gossamer.engine.calls import one_table, title
from gossamer.engine.pool import Pool
from gossamer.engine.scratch import Scratch
from gossamer.engine.worker import SHARD, Piece, by_shard, conformed, map_spool, unique, write_pieces
from gossamer.errors import EngineError, GossamerError, StorageError, storage_error
from gossamer.storage.disk import Disk
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import FileEntry, Target, blame, entries_of, entries_table, write_part

BATCH_ROWS = 64 * 1024
CHUNK_BATCHES = 4  # of unordered rows that map_batches deals out to the workers at a time
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
        self._folder = Scratch(scratch)
        self._scratch = LocalFiles(self._folder.path, Unsynced())
        self._ibis = ibis.duckdb.connect(
            threads=threads or cores,
            memory_limit=f"{memory_mb}MB",
            temp_directory=f"{self._folder.path}/spill",
            preserve_insertion_order=False,
        )
        self._duckdb: duckdb.DuckDBPyConnection = self._ibis.con
        self._duckdb.execute("SET GLOBAL TimeZone='UTC'; SET enable_progress_bar=false")  # for cursors too
        self._pool = Pool(self.workers)
        self._names = itertools.count()
        self._files: dict[str, Sequence[str]] = {}  # behind each table read, to blame a damaged one

    def read(self, files: Sequence[str], schema: pa.Schema) -> ir.Table:
        if not files:
            return self.values(schema.empty_table())
        if any(f.startswith("s3://") for f in files):
            self._mount_s3()
        source = f"read_parquet([{', '.join(_pattern(f) for f in files)}], hive_partitioning=false)"
        present = {row[0] for row in self._execute(f"DESCRIBE SELECT * FROM {source}", files).fetchall()}
        types = self._ibis.compiler.type_mapper
        columns = [
            f"CAST({_name(name) if name in present else 'NULL'} AS {types.to_string(dtype)}) AS {_name(name)}"
            for name, dtype in ibis.Schema.from_pyarrow(schema).items()
        ]
        view = f"files_{next(self._names)}"
        self._execute(f"CREATE VIEW {view} AS SELECT {', '.join(columns)} FROM {source}", files)
        self._files[view] = files
        return self._ibis.table(view)

    def values(self, table: pa.Table) -> ir.Table:
        name = f"values_{next(self._names)}"
        self._duckdb.register("incoming", table)
        self._execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        self._duckdb.unregister("incoming")
        return self._ibis.table(name)

    def collect(self, table: ir.Table) -> pa.Table:
        return conformed(pa.Table.from_batches(*self._stream(self._ibis.compile(table), table)), canonical(table))

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
        calls = (partial(map_spool, fn, spool, target, task) for task, spool in enumerate(spools))
        entries = entries_of(pa.concat_tables([entries_table(()), *self._pool.run(calls, fn)]))
        return self.read([self._scratch.url(entry.path) for entry in entries], schema)

    def run_tasks(self, tasks: Sequence[Any], fn: TaskFunction) -> pa.Table:
        results = self._pool.run((partial(one_table, fn, task) for task in tasks), fn)
        return one_result(tasks, results, title(fn))

    def write(self, table: ir.Table, target: Target) -> list[FileEntry]:
        rows = f"SELECT * FROM ({self._ibis.compile(fitted(table, target))})"
        order = [f"{_name(name)} NULLS FIRST" for name in target.order]
        pieces: Iterator[Piece]
        if target.shard_by is None:
            sql = f"{rows} ORDER BY {', '.join(order)}" if order else rows
            pieces = _by_size(unique(self._stream(sql, table)[0], target.key if order else ()))
        else:
            shard = f"CAST(coalesce({_name(target.shard_by)}, 0) & {target.shards - 1} AS INTEGER) AS {SHARD}"
            sql = f"SELECT *, {shard} FROM ({rows}) ORDER BY {', '.join([SHARD, *order])}"
            pieces = ((n, 0, batch) for n, batch in by_shard(unique(self._stream(sql, table)[0], target.key)))
        return self._write_side_by_side(target, pieces) if self.workers else write_pieces(target, pieces)

    def close(self) -> None:
        self._pool.close()
        self._duckdb.close()
        self._folder.remove()

    def _write_side_by_side(self, target: Target, pieces: Iterator[Piece]) -> list[FileEntry]:
        """Write each run of pieces as one file, several files at a time."""
        with ThreadPoolExecutor(self.workers) as threads:
            writers: list[Future[FileEntry | None]] = []
            for (shard, task), run in itertools.groupby(pieces, key=lambda piece: piece[:2]):
                waiting: Waiting = queue.Queue(QUEUE_BATCHES)
                writer = threads.submit(write_part, target, _taken(waiting), shard, task)
                writers.append(writer)
                try:
                    while (piece := next(run, None)) and _put(waiting, piece[2], writer):
                        pass
                except BaseException as error:
                    _put(waiting, error, writer)  # or the writer would wait for ever
                    raise
                _put(waiting, None, writer)
                if writer.done():
                    writer.result()
            return [entry for writer in writers if (entry := writer.result()) is not None]

    def _spool_keys(self, plan: Ordered, folder: str, partitions: int | None) -> Iterator[str]:
        """Sort by partition, key and order; one Arrow file per partition, given out as soon as it is full."""
        count = partitions or 2 * max(1, self.workers)
        order = [PART, *(f"{name} NULLS FIRST" for name in plan.by)]
        order += [f"{name} {'ASC NULLS FIRST' if up else 'DESC NULLS LAST'}" for name, up in plan.sort]
        own = ", ".join(_name(name) for name in plan.names)
        part = f"CAST(hash({', '.join(plan.by)}) % {count} AS INTEGER)"
        inner = f"SELECT *, {part} AS {PART} FROM ({self._ibis.compile(plan.table)})"
        sql = f"SELECT {own}, {PART} AS {SHARD} FROM ({inner}) ORDER BY {', '.join(order)}"
        pieces = by_shard(self._stream(sql, plan.table)[0])
        for number, run in itertools.groupby(pieces, key=lambda piece: piece[0]):
            yield from self._spool(plan, f"{folder}/in-{number}", (rows for _, rows in run), 1)

    def _spool_rows(self, plan: Ordered, folder: str, partitions: int | None) -> Iterator[str]:
        """Unordered rows, dealt out: a chunk at a time to all workers, or all rows to so many partitions."""
        batches = self._stream(self._ibis.compile(plan.table), plan.table)[0]
        if partitions:
            yield from self._spool(plan, f"{folder}/in", batches, partitions)
            return
        for number in itertools.count():
            chunk = list(itertools.islice(batches, CHUNK_BATCHES))
            if not chunk:
                return
            yield from self._spool(plan, f"{folder}/in-{number}", chunk, max(1, self.workers))

    def _spool(self, plan: Ordered, path: str, batches: Iterable[pa.RecordBatch], count: int) -> list[str]:
        """Deal rows out to so many Arrow files."""
        schema = canonical(plan.table, plan.names)
        paths = [self._scratch.url(f"{path}-{n}") for n in range(count)]
        Path(paths[0]).parent.mkdir(exist_ok=True)
        with ExitStack() as stack:
            files = itertools.cycle([stack.enter_context(_spool_file(full, schema)) for full in paths])
            for batch in batches:
                step = -(-batch.num_rows // count)
                for start in range(0, batch.num_rows, step):
                    next(files).write_batch(conformed(batch.slice(start, step), schema))
        return paths

    def _stream(self, sql: str, table: ir.Table) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
        """Run a query over a table and hand its rows over batch by batch."""
        cursor = self._duckdb.cursor()
        try:
            reader = cursor.execute(sql).to_arrow_reader(BATCH_ROWS)
        except duckdb.Error as error:
            raise self._explain(error, files_behind(table, self._files)) from error
        return self._guarded(cursor, reader, table), reader.schema

    def _guarded(
        self, cursor: duckdb.DuckDBPyConnection, reader: pa.RecordBatchReader, table: ir.Table
    ) -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise self._explain(error, files_behind(table, self._files)) from error
        finally:
            cursor.close()

    def _execute(self, sql: str, files: Sequence[str] = ()) -> duckdb.DuckDBPyConnection:
        try:
            return self._duckdb.execute(sql)
        except duckdb.Error as error:
            raise self._explain(error, files) from error

    def _explain(self, error: Exception, files: Sequence[str]) -> GossamerError:
        """What went wrong and its cure: memory, the disk, a damaged or missing file, or what DuckDB says."""
        reason = " ".join(str(error).split())[:400]
        if "Out of Memory" in reason:
            details = reason.split(" Possible solutions")[0]
            return EngineError(
                f"{details}; raise engine.memory_mb, and see that {self._folder.path} has space to spill to"
            )
        if "No space left on device" in reason:
            return StorageError(
                f"{self._folder.path}: the disk is full; free some space and run the same command again"
            )
        return blame(list(files), error) or EngineError(f"query failed: {reason}")

    def _mount_s3(self) -> None:
        from gossamer.storage.s3 import filesystem

        if not self._duckdb.filesystem_is_registered("s3"):
            self._duckdb.register_filesystem(filesystem())


Waiting = queue.Queue[pa.RecordBatch | BaseException | None]


def _put(waiting: Waiting, item: pa.RecordBatch | BaseException | None, writer: Future[Any]) -> bool:
    """Hand something to a writer's thread; false if that has ended, so nobody waits for it for ever."""
    while not writer.done():
        try:
            waiting.put(item, timeout=0.2)
        except queue.Full:
            continue
        return True
    return False


def _taken(waiting: Waiting) -> Iterator[pa.RecordBatch]:
    """What was put, up to None; an error ends the writer."""
    while (item := waiting.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        yield item


@contextmanager
def _spool_file(path: str, schema: pa.Schema) -> Iterator[Any]:
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            yield writer
    except OSError as error:
        raise storage_error(error, path) from error


def _by_size(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    """Number the batches of a table without shards so that no file grows too large."""
    rows = 0
    for batch in batches:
        yield 0, rows // FILE_ROWS, batch
        rows += batch.num_rows


def _pattern(path: str) -> str:
    """A path as an SQL literal that matches only itself, though DuckDB takes it for a pattern."""
    return "'" + "".join(f"[{c}]" if c in "*?[" else c for c in path).replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
