"""Reading the files given to load: Parquet, CSV and JSON lines as batches of plain columns.

Types come from the table, not from what a file's first lines look like: an ETag `007` stays a text, a column that is
empty for the first million lines may still hold numbers later, and a name that first appears there is not lost.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import csv, json

from gossamer.errors import UsageError

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
JSON_CHUNK = 8 << 20  # lines of so many bytes are parsed at once; each chunk has the columns found in it


def format_of(path: str) -> str:
    """The format a file's name says."""
    for suffix, name in FORMATS.items():
        if path.lower().endswith(suffix):
            return name
    raise UsageError(f"{path}: unknown kind of file; give it one of the endings {', '.join(FORMATS)}")


def stamp_of(path: str) -> str:
    """Size and time of a local file, so that a changed file is another job."""
    try:
        known = Path(path).stat()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; check the path") from error
    format_of(path)
    return f"{known.st_size} {known.st_mtime_ns}"


def batches(path: str, types: pa.Schema, codes: Collection[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a file whose columns will have these types; the values of `codes` may be spelled as names."""
    kind = format_of(path)
    try:
        if kind == "parquet":
            yield from ds.dataset(path, format="parquet").to_batches()
        elif kind == "csv":
            yield from _csv(path, {f.name: pa.string() if f.name in codes else _spelled(f.type) for f in types})
        else:
            yield from _json(path, pa.schema([(f.name, f.type) for f in types if f.type == pa.string()]))
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file; check the path") from error
    except (pa.ArrowException, OSError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{path}: cannot be read as {kind} ({reason}); check the file") from error


def _spelled(kind: pa.DataType) -> pa.DataType:
    """What a CSV cell of a type is read as: numbers and truth as such, all else as text."""
    simple = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return kind if simple else pa.string()


def _csv(path: str, types: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    convert = csv.ConvertOptions(
        column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    parse = csv.ParseOptions(newlines_in_values=True)
    with csv.open_csv(path, parse_options=parse, convert_options=convert) as reader:
        yield from reader


def _json(path: str, texts: pa.Schema) -> Iterator[pa.RecordBatch]:
    parse = json.ParseOptions(explicit_schema=texts)
    with Path(path).open("rb") as stream:
        while lines := stream.read(JSON_CHUNK):
            lines += stream.readline()
            if lines.strip():
                whole = json.ReadOptions(block_size=len(lines) + 1)  # one block: all its lines tell the types
                table = json.read_json(io.BytesIO(lines), whole, parse)
                yield from table.combine_chunks().to_batches()
