"""The Spark engine: Spark SQL for relations, executors for Python functions, scratch files on shared storage.

Tasks are never tried a second time (`spark.task.maxFailures=1`, no speculation): a dead executor is an error, and the
same command resumes. Output of `map_batches` goes to files rather than Spark's cache, which could lose it and run the
function again behind our back.
"""

from __future__ import annotations

import itertools
import os
import pickle
import re
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as sf
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from gossamer.engine.base import (
    BatchFunction,
    SortKey,
    TaskFunction,
    canonical,
    files_behind,
    fitted,
    one_result,
    ordered,
)
from gossamer.engine.calls import accept, title
from gossamer.engine.executor import ERROR, RESULT_SCHEMA, map_partition, run_task, write_partition
from gossamer.engine.scratch import Scratch
from gossamer.engine.worker import SHARD, conformed, write_shards
from gossamer.errors import EngineError, GossamerError
from gossamer.storage.files import Files, open_files
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import ENTRY_SCHEMA, FileEntry, Target, blame, corrupt, entries_of

DEFAULTS = {
    "spark.python.daemon.module": "gossamer.engine.daemon",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
REQUIRED = {
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
    "spark.sql.session.timeZone": "UTC",
}
DEATHS = ("ExecutorLostFailure", "exited unexpectedly", "FetchFailed")


def start_session(master: str, conf: dict[str, str]) -> SparkSession:
    """A session with the settings Gossamer relies on; `conf` may add to them."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = master.startswith("local")
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("gossamer")
    for key, value in (DEFAULTS | (LOCAL if local else {}) | conf | REQUIRED).items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise EngineError(
            f"Spark at {master} did not start: {_reason(error)}; check that Java 17 or later is installed and the master up"
        ) from error


class SparkEngine:
    """A Spark cluster, or Spark on this machine."""

    name = "spark"

    def __init__(
        self, master: str = "local[*]", scratch: Files | None = None, conf: dict[str, str] | None = None
    ) -> None:
        self._borrowed = SparkSession.getActiveSession() is not None
        self._spark = start_session(master, conf or {})
        self._ibis = ibis.pyspark.connect(self._spark)
        self._temporary = None if scratch else Scratch()
        self._scratch: Files = scratch or LocalFiles(self._temporary.path if self._temporary else "")
        self._folder = f"scratch/{uuid.uuid4().hex}"
        self._names = itertools.count()
        self._files: dict[str, Sequence[str]] = {}  # behind each table read, to blame a damaged one

    @property
    def workers(self) -> int:
        return int(self._spark.sparkContext.defaultParallelism)

    def read(self, files: Sequence[str], schema: pa.Schema) -> ir.Table:
        if not files:
            return self.values(schema.empty_table())
        _refuse_empty(files)
        wanted = from_arrow_schema(pa.schema([f.with_nullable(True) for f in schema]))
        stored = _stored(files[0])
        present = from_arrow_schema(pa.schema([stored.field(n) for n in schema.names if n in stored.names]))
        as_stored = [present[f.name] if f.name in present.names else f for f in wanted]
        with self._told(files):
            frame = self._spark.read.schema(type(wanted)(as_stored)).parquet(*(_hadoop(f) for f in files))
            return self._named(frame.select(*(sf.col(f"`{f.name}`").cast(f.dataType) for f in wanted)), files)

    def values(self, table: pa.Table) -> ir.Table:
        with self._told():
            return self._named(self._spark.createDataFrame(table))

    def collect(self, table: ir.Table) -> pa.Table:
        with self._told(files_behind(table, self._files)):
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
        target = Target(self._scratch, f"{self._folder}/map_{next(self._names)}", schema)
        with self._told(files_behind(table, self._files), fn):
            frame = self._frame(plan.table)
            if plan.by:
                frame = frame.repartition(partitions or 2 * self.workers, *plan.by)
                up = [sf.col(name).asc_nulls_first() for name in plan.by]
                order = [sf.col(n).asc_nulls_first() if asc else sf.col(n).desc_nulls_last() for n, asc in plan.sort]
                frame = frame.sortWithinPartitions(*up, *order)
            elif partitions:
                frame = frame.repartition(partitions)
            entries = _entries(frame, partial(map_partition, fn, canonical(table), target))
        return self.read([self._scratch.url(entry.path) for entry in entries], schema)

    def run_tasks(self, tasks: Sequence[Any], fn: TaskFunction) -> pa.Table:
        numbered = list(enumerate(tasks))
        with self._told(fn=fn):
            context = self._spark.sparkContext
            answers = context.parallelize(numbered, max(1, len(numbered))).map(partial(run_task, fn)).collect()
        results = {number: pa.ipc.open_stream(accept(result)).read_all() for number, result in answers}
        return one_result(tasks, [results[number] for number in sorted(results)], title(fn))

    def write(self, table: ir.Table, target: Target) -> list[FileEntry]:
        rows = fitted(table, target)
        with self._told(files_behind(table, self._files), write_shards):
            frame = self._frame(rows)
            order = [sf.col(name).asc_nulls_first() for name in target.order]
            if target.shard_by is None:
                frame = frame.withColumn(SHARD, sf.lit(0))
                if order:
                    # Rows that differ only in what follows the key meet in one partition, where the key is checked.
                    until_key = max((target.order.index(name) + 1 for name in target.key), default=len(order))
                    frame = frame.repartitionByRange(*order[:until_key]).sortWithinPartitions(*order)
            else:
                shard = sf.coalesce(sf.col(target.shard_by), sf.lit(0)).bitwiseAND(target.shards - 1).cast("int")
                frame = frame.withColumn(SHARD, shard).repartition(min(target.shards, 4 * self.workers), SHARD)
                frame = frame.sortWithinPartitions(SHARD, *order)
            return _entries(frame, partial(write_partition, target))

    def close(self) -> None:
        self._scratch.delete(*(path for path, _ in self._scratch.list(self._folder)))
        if not self._borrowed:
            with suppress(Py4JError, ConnectionError):  # it has died before
                self._spark.stop()
        if self._temporary:
            self._temporary.remove()

    def _frame(self, table: ir.Table) -> DataFrame:
        return self._spark.sql(self._ibis.compile(table))

    def _named(self, frame: DataFrame, files: Sequence[str] = ()) -> ir.Table:
        name = f"gossamer_{uuid.uuid4().hex[:8]}_{next(self._names)}"
        frame.createOrReplaceTempView(name)
        self._files[name] = files
        return self._ibis.table(name)

    @contextmanager
    def _told(self, files: Sequence[str] = (), fn: Any = None) -> Iterator[None]:
        """Turn Spark's errors into ours: a dead driver or executor, a damaged file, or what Spark says."""
        try:
            yield
        except (PySparkException, Py4JError, ConnectionError, EOFError) as error:
            raise _explained(error, files, fn) from error


def _explained(error: Exception, files: Sequence[str], fn: Any) -> GossamerError:
    text = str(error)
    during = f" while running {title(fn)}" if fn else ""
    if isinstance(error, Py4JNetworkError | ConnectionError | EOFError):
        return EngineError(
            f"Spark's driver died{during} (killed, or out of memory); nothing was published: raise spark.driver.memory, "
            "then run the same command again"
        )
    if unknown := re.search(r"No module named '?([\w.]+)", text):
        return EngineError(
            f"Spark's executors cannot import {unknown[1]}; install Gossamer and your plugins in their Python, which "
            "PYSPARK_PYTHON names"
        )
    if any(death in text for death in DEATHS):
        return EngineError(
            f"a Spark executor or its Python worker died{during} (killed, or out of memory); nothing was "
            "published: give executors more memory, then run the same command again"
        )
    return blame(list(files), error) or EngineError(f"Spark job failed: {_reason(error)}")


def _reason(error: BaseException) -> str:
    """The innermost cause a Java stack trace names, or the first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    told = causes[-1:] or [line.removeprefix(": ") for line in lines if not line.startswith("An error occurred while")]
    return (told or lines)[0][:400]


def _entries(frame: DataFrame, work: Callable[..., Iterator[pa.RecordBatch]]) -> list[FileEntry]:
    """Run `work` once on every partition, in one job, and take in the files it wrote."""
    rows = frame.mapInArrow(work, from_arrow_schema(RESULT_SCHEMA)).toArrow()
    for error in rows.column(ERROR).drop_null().to_pylist():
        accept(pickle.loads(error))
    return entries_of(rows.drop_columns([ERROR]).cast(ENTRY_SCHEMA))


def _stored(url: str) -> pa.Schema:
    """The schema a file was written with: Spark would read a number into a narrower column without a word."""
    folder, name = url.rsplit("/", 1)
    with open_files(folder).open(name) as stream:
        try:
            return pq.read_schema(stream)
        except (pa.ArrowException, OSError) as error:
            raise corrupt(url, error) from error


def _refuse_empty(urls: Sequence[str]) -> None:
    """Spark passes over a file of no bytes as if it held no rows."""
    for folder, group in itertools.groupby(sorted(urls), key=lambda url: url.rsplit("/", 1)[0]):
        sizes = dict(open_files(folder).list(""))
        for url in group:
            if sizes.get(url.rsplit("/", 1)[1]) == 0:
                raise corrupt(url, EOFError("it is empty"))


def _hadoop(url: str) -> str:
    """A path as Hadoop's file systems spell it, matching only itself though Spark takes it for a pattern."""
    path = "".join(f"\\{c}" if c in "\\*?[]{}" else c for c in url)
    return "s3a://" + path.removeprefix("s3://") if url.startswith("s3://") else f"file://{path}"
