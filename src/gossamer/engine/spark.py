"""The Spark engine: Spark SQL for relations, executors for Python functions, scratch files on shared storage.

Tasks are never tried a second time (`spark.task.maxFailures=1`, no speculation): a dead executor is an error, and the
same command resumes. Output of `map_batches` goes to files rather than Spark's cache, which could lose it and run the
function again behind our back.
"""

from __future__ import annotations

import itertools
import os
import pickle
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from gossamer.engine.base import BatchFunction, SortKey, TaskFunction, canonical, conformed, one_result, ordered
from gossamer.engine.pool import failed, title
from gossamer.engine.worker import SHARD, map_part, write_shards
from gossamer.errors import EngineError, GossamerError
from gossamer.storage.files import Files
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import ENTRY_SCHEMA, FileEntry, Target, blame, entries_of, entries_table

ERROR = "error"  # column in which a worker sends back a pickled exception
RESULT_SCHEMA = ENTRY_SCHEMA.append(pa.field(ERROR, pa.binary()))
CONF = {
    "spark.task.maxFailures": "1",
    "spark.speculation": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
LOCAL_CONF = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def start_session(master: str, conf: dict[str, str] | None = None) -> SparkSession:
    """A session with the settings Gossamer relies on; `conf` may add to them."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = master.startswith("local")
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("gossamer")
    for key, value in (CONF | (LOCAL_CONF if local else {}) | (conf or {})).items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise EngineError(f"Spark at {master} did not start: {_first_line(error)}; is Java 17 or later installed?") from error


class SparkEngine:
    """A Spark cluster, or Spark on this machine."""

    name = "spark"

    def __init__(self, master: str = "local[*]", scratch: Files | None = None, conf: dict[str, str] | None = None) -> None:
        self._spark = start_session(master, conf)
        self._ibis = ibis.pyspark.connect(self._spark)
        self._temporary = None if scratch else tempfile.mkdtemp(prefix="gossamer-")
        self._scratch: Files = scratch or LocalFiles(str(self._temporary))
        self._folder = f"scratch/{uuid.uuid4().hex}"
        self.workers = self._spark.sparkContext.defaultParallelism
        self._names = itertools.count()
        self._files: dict[str, None] = {}

    def read(self, files: Sequence[str], schema: pa.Schema) -> ir.Table:
        if not files:
            return self.values(schema.empty_table())
        self._files |= dict.fromkeys(files)
        nullable = pa.schema([f.with_nullable(True) for f in schema])
        with self._told():
            frame = self._spark.read.schema(from_arrow_schema(nullable)).parquet(*(_hadoop(f) for f in files))
            return self._named(frame)

    def values(self, table: pa.Table) -> ir.Table:
        with self._told():
            return self._named(self._spark.createDataFrame(table))

    def collect(self, table: ir.Table) -> pa.Table:
        with self._told():
            return conformed(self._frame(table).toArrow(), canonical(table))

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
        frame = self._frame(plan.table)
        if plan.by:
            frame = frame.repartition(partitions or 2 * self.workers, *plan.by)
            up = [F.col(name).asc_nulls_first() for name in plan.by]
            order = [F.col(n).asc_nulls_first() if asc else F.col(n).desc_nulls_last() for n, asc in plan.sort]
            frame = frame.sortWithinPartitions(*up, *order)
        elif partitions:
            frame = frame.repartition(partitions)
        target = Target(self._scratch, f"{self._folder}/map_{next(self._names)}", schema)
        entries = self._run_parts(frame, partial(_map, fn, canonical(table), target), fn)
        return self.read([self._scratch.url(entry.path) for entry in entries], schema)

    def run_tasks(self, tasks: Sequence[Any], fn: TaskFunction) -> pa.Table:
        numbered = list(enumerate(tasks))
        with self._told(fn):
            context = self._spark.sparkContext
            answers = context.parallelize(numbered, max(1, len(numbered))).map(partial(_task, fn)).collect()
        results = {}
        for number, result in answers:
            if isinstance(result, Exception):
                raise _own(result, fn)
            results[number] = pa.ipc.open_stream(result).read_all()
        return one_result(tasks, [results[number] for number in sorted(results)])

    def write(self, table: ir.Table, target: Target) -> list[FileEntry]:
        frame = self._frame(table.select(*target.schema.names))
        order = [F.col(name).asc_nulls_first() for name in target.order]
        if target.shard_by is None:
            frame = frame.withColumn(SHARD, F.lit(0))
            if order:
                frame = frame.repartitionByRange(*order).sortWithinPartitions(*order)
        else:
            frame = frame.withColumn(SHARD, F.col(target.shard_by).bitwiseAND(target.shards - 1).cast("int"))
            frame = frame.repartition(min(target.shards, 4 * self.workers), SHARD).sortWithinPartitions(SHARD, *order)
        return self._run_parts(frame, partial(_write, target), write_shards)

    def close(self) -> None:
        for path, _ in self._scratch.list(self._folder):
            self._scratch.delete(path)
        self._spark.stop()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _run_parts(self, frame: DataFrame, work: Callable[..., Any], fn: Any) -> list[FileEntry]:
        """Run `work` once on every partition, in one job, and take in the files it wrote."""
        with self._told(fn):
            rows = frame.mapInArrow(partial(_reporting, work), from_arrow_schema(RESULT_SCHEMA)).toArrow()
        for error in rows.column(ERROR).drop_null().to_pylist():
            raise _own(pickle.loads(error), fn)
        return entries_of(rows.drop_columns([ERROR]).cast(ENTRY_SCHEMA))

    def _frame(self, table: ir.Table) -> DataFrame:
        return self._spark.sql(self._ibis.compile(table))

    def _named(self, frame: DataFrame) -> ir.Table:
        name = f"gossamer_{uuid.uuid4().hex[:8]}_{next(self._names)}"
        frame.createOrReplaceTempView(name)
        return self._ibis.table(name)

    def _told(self, fn: Any = None) -> _Told:
        return _Told(list(self._files), fn)


class _Told:
    """Turn Spark's errors into ours: a damaged file, a dead executor, or what Spark says."""

    def __init__(self, files: list[str], fn: Any) -> None:
        self.files, self.fn = files, fn

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        from py4j.protocol import Py4JError

        if isinstance(error, PySparkException | Py4JError):
            text = str(error)
            if "ExecutorLostFailure" in text or "exited unexpectedly" in text or "Connection reset" in text:
                during = f" while running {title(self.fn)}" if self.fn else ""
                raise EngineError(
                    f"a Spark executor or its Python worker died{during} (killed, or out of memory); nothing was "
                    "published: give executors more memory, then run the same command again"
                ) from error
            raise blame(self.files, error) or EngineError(f"Spark job failed: {_first_line(error)}") from error


def _own(error: Exception, fn: Any) -> GossamerError:
    """The error of a worker as one of ours."""
    return error if isinstance(error, GossamerError) else failed(title(fn), error)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:400]


def _hadoop(url: str) -> str:
    """A path as Hadoop's file systems spell it."""
    return "s3a://" + url.removeprefix("s3://") if url.startswith("s3://") else f"file://{url}"


def _task(fn: TaskFunction, numbered: tuple[int, Any]) -> tuple[int, Any]:
    """One task on an executor: an Arrow stream, or the exception."""
    number, task = numbered
    try:
        table = fn(task)
    except Exception as error:
        return number, _portable(error)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return number, sink.getvalue().to_pybytes()


def _reporting(work: Callable[..., list[FileEntry]], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run `work` on one partition and send back its file entries, or its exception as a row."""
    from pyspark import TaskContext

    context = TaskContext.get()
    task = context.partitionId() if context else 0
    error: bytes | None = None
    try:
        entries = work(batches, task)
    except Exception as raised:
        entries, error = [FileEntry("", 0, 0, 0)], pickle.dumps(_portable(raised))
    table = entries_table(entries)
    yield from table.append_column(RESULT_SCHEMA.field(ERROR), pa.array([error] * len(entries), pa.binary())).to_batches()


def _portable(error: Exception) -> Exception:
    """The exception itself if it can travel, else its description."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _map(
    fn: BatchFunction, schema: pa.Schema, target: Target, batches: Iterator[pa.RecordBatch], task: int
) -> list[FileEntry]:
    entry = map_part(fn, (conformed(b.select(schema.names), schema) for b in batches), target, task)
    return [entry] if entry else []


def _write(target: Target, batches: Iterator[pa.RecordBatch], task: int) -> list[FileEntry]:
    return write_shards(target, batches, task)
