"""All Parquet of a crawl is written here, by pyarrow, inside the worker or executor that made the rows.

Row keys and URLs are prefix-compressed (DELTA_BYTE_ARRAY): in row-key order that is smaller and faster to write than a
dictionary. Files are sorted and their row groups carry statistics, so a look-up of one domain reads a few row groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from xxhash import xxh3_64

from gossamer.errors import CorruptError, GossamerError, StorageError, storage_error
from gossamer.storage.files import Files, Writer, open_files

ROW_GROUP_ROWS = 64 * 1024
BUFFER_BYTES = 1 << 20
PREFIXED = ("rowkey", "url", "src_rowkey", "src_url", "host_key", "node")  # sorted or nearly so: prefix-compressed
PLAIN_KEYS = ("url_fp", "src_url_fp", "node_fp", "signature", "simhash", "payload_digest", "main", "full", "etag")
ENTRY_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("deletes", pa.int64(), nullable=False),
        pa.field("checksum", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
    ]
)
DELETED = "_deleted"  # change sets may carry this column: true takes the key out of the table


@dataclass(frozen=True)
class FileEntry:
    """One written file, as a manifest names it."""

    path: str
    shard: int
    rows: int
    bytes: int
    deletes: int = 0  # rows that take their key out of the table
    checksum: str = ""  # xxh3-64 of the file's bytes
    kind: str = ""  # what its rows have in common, such as a frequency class; empty: nothing


@dataclass(frozen=True)
class Target:
    """Where a table's rows go and in which form; travels to the workers that write."""

    files: Files
    folder: str
    schema: pa.Schema
    order: tuple[str, ...] = ()
    shard_by: str | None = None
    shards: int = 1
    attempt: int = 1
    key: tuple[str, ...] = ()  # checked to be unique, when given; `order` must begin with it or contain all of it
    metadata: dict[str, str] = field(default_factory=dict)

    def path(self, shard: int, task: int) -> str:
        """The name of one part."""
        return f"{self.folder}/part-{shard:05d}-{task:05d}-{self.attempt:03d}.parquet"


class PartWriter:
    """One Parquet file growing batch by batch."""

    def __init__(self, target: Target, shard: int, task: int) -> None:
        self.target, self.shard = target, shard
        self.path = target.path(shard, task)
        self.rows = self.deletes = 0
        self._raw = target.files.writer(self.path)
        self._sink = _Sink(self._raw)
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        schema = target.schema.with_metadata({k: v.encode() for k, v in target.metadata.items()} or None)
        names = set(schema.names)
        try:
            self._parquet = pq.ParquetWriter(
                self._sink,
                schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[n for n in schema.names if n not in PREFIXED and n not in PLAIN_KEYS],
                column_encoding={n: "DELTA_BYTE_ARRAY" for n in PREFIXED if n in names},
                write_statistics=True,
                store_schema=True,
                write_page_checksum=True,  # zstd frames as Parquet writes them carry none
            )
        except BaseException:
            self.abort()
            raise

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; they reach the file a row group at a time."""
        self.rows += batch.num_rows
        if DELETED in batch.schema.names:
            self.deletes += batch.column(DELETED).true_count
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        if self._pending_rows >= ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            table = pa.Table.from_batches(self._pending, self.target.schema)
            self._pending, self._pending_rows = [], 0
            self._parquet.write_table(table, row_group_size=ROW_GROUP_ROWS)

    def close(self) -> FileEntry:
        """Finish the file durably and name it."""
        self._flush()
        self._parquet.close()
        self._sink.drain()
        self._raw.close()
        return FileEntry(self.path, self.shard, self.rows, self._sink.bytes, self.deletes, self._sink.hash.hexdigest())

    def abort(self) -> None:
        """Drop the file; used when something failed before `close`."""
        self._sink.dropped = True  # pyarrow writes a footer whenever a writer is let go
        self._raw.abort()


class _Sink:
    """A write-only file object over one of our writers, for pyarrow, which writes in many small pieces."""

    closed = False

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self.hash = xxh3_64()
        self.bytes = 0
        self.dropped = False

    def write(self, data: bytes) -> int:
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        self.bytes += len(data)
        if self._waiting_bytes >= BUFFER_BYTES:
            self.drain()
        return len(data)

    def drain(self) -> None:
        """Pass on what was gathered."""
        data = b"".join(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        self.hash.update(data)
        if data and not self.dropped:
            self._writer.write(data)

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        """Bytes are made durable on close, not before."""

    def close(self) -> None:
        """The writer behind is closed by its owner."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly this schema; NULLs where they are not allowed, and unknown or missing columns, are errors."""
    missing = [f.name for f in schema if f.name not in batch.schema.names]
    if missing:
        raise StorageError(f"column {missing[0]} is missing; the rows do not fit the table's schema")
    unknown = [name for name in batch.schema.names if name not in schema.names]
    if unknown:
        raise StorageError(f"column {unknown[0]} is not one of the table's; the rows do not fit its schema")
    columns = []
    for f in schema:
        column = _cast(batch.column(f.name), f)
        if not f.nullable and column.null_count:
            raise StorageError(f"column {f.name} must not be NULL, but {column.null_count} rows have none")
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, f: pa.Field) -> pa.Array:
    """A column in its stored width; other kinds of value, and values that do not fit, are errors."""
    if column.type.equals(f.type):
        return column
    given, wanted = _kind(column.type), _kind(f.type)
    if given not in (wanted, "null") and (given, wanted) != ("integer", "float"):
        raise StorageError(f"column {f.name} holds {f.type}, not {column.type}; the rows do not fit the table's schema")
    try:
        return column.cast(f.type)
    except pa.ArrowInvalid as error:
        raise StorageError(f"column {f.name} holds {f.type}, which a value does not fit ({error})") from error


def _kind(kind: pa.DataType) -> str:
    """What a type holds, whatever its width."""
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):  # DuckDB sums in 128 bits
        return "integer"
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return str(kind).removeprefix("large_")
    if pa.types.is_map(kind):
        return f"map {_kind(kind.key_type)} {_kind(kind.item_type)}"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list {_kind(kind.value_type)}"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp without zone"
    return "float" if pa.types.is_floating(kind) else str(kind)


def write_part(target: Target, batches: Iterable[pa.RecordBatch], shard: int, task: int) -> FileEntry | None:
    """Write one stream of rows as one file; nothing is written for no rows."""
    writer: PartWriter | None = None
    try:
        for batch in batches:
            if batch.num_rows:
                writer = writer or PartWriter(target, shard, task)
                writer.write(conform(batch, target.schema))
        return writer.close() if writer else None
    except BaseException:
        if writer:
            writer.abort()
        raise


def entries_table(entries: Iterable[FileEntry]) -> pa.Table:
    """File entries as rows, the way workers return them."""
    return pa.Table.from_pylist([asdict(entry) for entry in entries], ENTRY_SCHEMA)


def entries_of(table: pa.Table) -> list[FileEntry]:
    """The file entries workers returned, in a stable order."""
    return sorted((FileEntry(**row) for row in table.to_pylist()), key=lambda entry: (entry.shard, entry.path))


def corrupt(path: str, error: Exception) -> CorruptError:
    """The error for a damaged file."""
    reason = " ".join(str(error).split())[:200]
    return CorruptError(
        f"{path}: damaged Parquet file ({reason}); restore it from a copy, or go back with `gossamer snapshots rollback`"
    )


def verify(files: Files, entry: FileEntry) -> None:
    """Raise unless a file's bytes are those that were written; reads them all, at the speed of the disk."""
    digest, size = xxh3_64(), 0
    with files.open(entry.path) as stream:
        while piece := stream.read(BUFFER_BYTES):
            digest.update(piece)
            size += len(piece)
    if size != entry.bytes or (entry.checksum and digest.hexdigest() != entry.checksum):
        found = f"{size:,} bytes instead of {entry.bytes:,}" if size != entry.bytes else "its checksum is wrong"
        raise corrupt(files.url(entry.path), ValueError(found))


def blame(urls: list[str], error: Exception) -> GossamerError | None:
    """Find the file behind a failed query: the first one that is missing or cannot be read through."""
    if "out of memory" in str(error).lower():
        return None
    for url in urls:
        files, path = open_files(url.rsplit("/", 1)[0]), url.rsplit("/", 1)[1]
        try:
            with files.open(path) as stream, pq.ParquetFile(stream, page_checksum_verification=True) as parquet:
                for _ in parquet.iter_batches(ROW_GROUP_ROWS):
                    pass
        except GossamerError as known:
            return known
        except (pa.ArrowException, EOFError) as damage:
            return corrupt(url, damage)
        except OSError as damage:  # pyarrow's own carry no number, those of the device do
            return storage_error(damage, url) if damage.errno else corrupt(url, damage)
    return None


def read_batches(files: Files, entry: FileEntry) -> Iterator[pa.RecordBatch]:
    """Stream the rows of one file."""
    with files.open(entry.path) as stream, pq.ParquetFile(stream) as parquet:
        yield from parquet.iter_batches(ROW_GROUP_ROWS)
