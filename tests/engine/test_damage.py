"""A damaged or missing file behind a table: every verb names the file and the cure, on every engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.engine.base import Engine
from gossamer.errors import CorruptError, EngineError
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import Target
from tests.engine.functions import echo

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
CURE = "restore it|rollback"


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def cut_to_nothing(path: Path) -> None:
    path.write_bytes(b"")


def not_parquet(path: Path) -> None:
    path.write_bytes(b"<html>404</html>" * 100)


def scratched(path: Path) -> None:
    """The footer is fine, the rows are not."""
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 2
    whole[middle - 5000 : middle + 5000] = b"\xa5" * 10000
    path.write_bytes(whole)


def missing(path: Path) -> None:
    path.unlink()


DAMAGES: list[Callable[[Path], None]] = [cut_short, cut_to_nothing, not_parquet, scratched, missing]


def collect(engine: Engine, table: ir.Table, folder: Path) -> None:
    engine.collect(table.filter(table.text != "none"))


def map_batches(engine: Engine, table: ir.Table, folder: Path) -> None:
    engine.map_batches(table, echo, SCHEMA)


def map_keys(engine: Engine, table: ir.Table, folder: Path) -> None:
    engine.map_batches(table, echo, SCHEMA, by="id")


def write(engine: Engine, table: ir.Table, folder: Path) -> None:
    engine.write(table, Target(LocalFiles(str(folder)), "out", SCHEMA, ("id",), "id", 4))


VERBS: list[Callable[[Engine, ir.Table, Path], None]] = [collect, map_batches, map_keys, write]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three files of random text, which no compression makes small."""
    texts = np.random.default_rng(7).integers(0, 2**62, (3, 20_000))
    paths = [tmp_path / f"part-{n}.parquet" for n in range(3)]
    for path, numbers in zip(paths, texts, strict=True):
        rows = pa.table({"id": range(len(numbers)), "text": [f"{n:x}" for n in numbers]}, schema=SCHEMA)
        pq.write_table(rows, path, compression="zstd", use_dictionary=False, row_group_size=5000)
    return paths


@pytest.mark.parametrize("which", [0, 2], ids=["first", "last"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_from_the_start(engine: Engine, files: list[Path], damage: Callable[[Path], None], which: int) -> None:
    damage(files[which])
    with pytest.raises(CorruptError, match=CURE) as caught:
        engine.collect(engine.read([str(path) for path in files], SCHEMA))
    assert str(caught.value).startswith(f"{files[which]}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
@pytest.mark.parametrize("damage", [scratched, missing], ids=lambda damage: damage.__name__)
def test_damage_while_a_table_is_in_use(
    engine: Engine,
    files: list[Path],
    tmp_path: Path,
    damage: Callable[[Path], None],
    verb: Callable[[Engine, ir.Table, Path], None],
) -> None:
    table = engine.read([str(path) for path in files], SCHEMA)
    damage(files[1])
    with pytest.raises(CorruptError, match=CURE) as caught:
        verb(engine, table, tmp_path)
    assert str(caught.value).startswith(f"{files[1]}: ")


def test_a_file_the_query_does_not_read_is_not_blamed(engine: Engine, files: list[Path]) -> None:
    engine.read([str(files[0])], SCHEMA)
    sound = engine.read([str(files[1])], SCHEMA)
    missing(files[0])
    with pytest.raises(EngineError, match=r"(?i)cast"):
        engine.collect(sound.mutate(text=sound.text.cast("int64")))
