"""What runs on a Spark executor: our functions around the user's, on one partition or task.

Kept apart from `spark.py` so that executors import neither Ibis nor Spark SQL.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext

from gossamer.engine.calls import attempt, one_table, title
from gossamer.engine.worker import conformed, map_part, write_shards
from gossamer.errors import EngineError, GossamerError
from gossamer.storage.parquet import ENTRY_SCHEMA, FileEntry, Target, entries_table

if TYPE_CHECKING:
    from gossamer.engine.base import BatchFunction, TaskFunction

ERROR = "error"  # column in which an executor sends back a pickled error
RESULT_SCHEMA = ENTRY_SCHEMA.append(pa.field(ERROR, pa.binary()))


def run_task(fn: TaskFunction, numbered: tuple[int, Any]) -> tuple[int, bytes | GossamerError]:
    """One task: its number and its table as an Arrow stream, or its error."""
    number, task = numbered
    result = attempt(partial(_once, partial(one_table, fn, task)), title(fn))
    return number, result if isinstance(result, GossamerError) else to_stream(result)


def map_partition(
    fn: BatchFunction, schema: pa.Schema, target: Target, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Map one partition to a file; gives its entry."""
    rows = (conformed(batch.select(schema.names), schema) for batch in batches)
    return _reported(lambda: map_part(fn, rows, target, _partition()), title(fn))


def write_partition(target: Target, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write one partition to files, one per shard; gives their entries."""
    return _reported(lambda: write_shards(target, batches, _partition()), title(write_shards))


def _reported(work: Callable[[], list[FileEntry]], name: str) -> Iterator[pa.RecordBatch]:
    """File entries as rows, or an error as one row."""
    result = attempt(partial(_once, work), name)
    failed = isinstance(result, GossamerError)
    rows = entries_table([FileEntry("", 0, 0, 0)] if isinstance(result, GossamerError) else result)
    errors = pa.array([pickle.dumps(result) if failed else None] * rows.num_rows, pa.binary())
    yield from rows.append_column(RESULT_SCHEMA.field(ERROR), errors).to_batches()


def _once(work: Callable[[], Any]) -> Any:
    """Refuse what Spark's settings should have ruled out: a second try of a task whose executor was lost."""
    context = TaskContext.get()
    if context is not None and context.attemptNumber():
        raise EngineError(
            "a Spark executor or its Python worker died and Spark tried its task again, which was refused; nothing was "
            "published: set spark.task.maxFailures=1 and run the same command again"
        )
    return work()


def _partition() -> int:
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def to_stream(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
