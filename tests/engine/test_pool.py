"""The embedded engine's own: its worker processes, its errors, its scratch files. Much of it without worker processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.engine.base import Engine, one_result
from gossamer.engine.embedded import EmbeddedEngine
from gossamer.engine.scratch import Scratch
from gossamer.errors import CorruptError, EngineError, StorageError
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import Target
from tests.conftest import ROOT
from tests.engine.data import same, table
from tests.engine.functions import RANKED, fails, modules, ranked, square, waits
from tests.engine.processes import gone, wait_until

INT = pa.int64()
BUSY = """
import sys
from dataclasses import replace
from functools import partial
from gossamer.engine.embedded import EmbeddedEngine
from tests.engine.functions import square, waits
if __name__ == "__main__":
    engine = EmbeddedEngine(workers=3)
    engine.run_tasks([1, 2, 3], square)
    engine.run_tasks([1, 2], partial(waits, folder=sys.argv[1]))
"""


def busy_process(folder: Path) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    """A process of which two workers are at work and one is idle, and its children."""
    (folder / "busy.py").write_text(BUSY)
    marks = folder / "marks"
    marks.mkdir()
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    command = [sys.executable, str(folder / "busy.py"), str(marks)]
    parent = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, start_new_session=True)
    assert wait_until(lambda: len(list(marks.iterdir())) == 2)
    children = psutil.Process(parent.pid).children(recursive=True)
    assert {int(mark.name.split("-")[1]) for mark in marks.iterdir()} <= {child.pid for child in children}
    return parent, children


def test_workers_die_with_a_killed_parent(tmp_path: Path) -> None:
    parent, children = busy_process(tmp_path)
    parent.kill()
    parent.communicate()
    assert wait_until(lambda: gone(children), 5)


def test_an_interrupt_ends_a_job_and_its_workers(tmp_path: Path) -> None:
    """Ctrl-C reaches every process of the group; only the parent speaks of it."""
    parent, children = busy_process(tmp_path)
    os.killpg(parent.pid, signal.SIGINT)
    told = parent.communicate(timeout=20)[1].decode()
    assert told.count("Traceback") == 1, told
    assert told.rstrip().endswith("KeyboardInterrupt")
    assert wait_until(lambda: gone(children), 5)


@pytest.fixture
def embedded(tmp_path: Path) -> object:
    engine = EmbeddedEngine(workers=2, scratch=str(tmp_path))
    yield engine
    engine.close()


def test_when_one_task_fails_nobody_goes_on(embedded: Engine, tmp_path: Path) -> None:
    """The failure is told at once and the other worker, which would wait for long, has ended."""
    with pytest.raises(CorruptError):
        embedded.run_tasks([1, 2], partial(waits, folder=str(tmp_path), failing=2))
    workers = [int(mark.name.split("-")[1]) for mark in tmp_path.glob("pid-*")]
    assert len(workers) == 2
    assert wait_until(lambda: not any(psutil.pid_exists(pid) for pid in workers), 5)
    assert embedded.run_tasks([3], square).column("square").to_pylist() == [9]


def test_what_cannot_be_sent_to_a_worker_is_told(embedded: Engine) -> None:
    with pytest.raises(EngineError, match=r"<lambda> cannot be sent to a worker .*module-level function"):
        embedded.run_tasks([1], lambda task: pa.table({}))
    with pytest.raises(EngineError, match=r"functions\.square cannot be sent to a worker"):
        embedded.run_tasks([threading.Lock()], square)
    assert embedded.run_tasks([3], square).column("square").to_pylist() == [9]


def test_what_a_worker_cannot_import_is_told(embedded: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(square, "__module__", "vanished")
    monkeypatch.setitem(sys.modules, "vanished", sys.modules["tests.engine.functions"])
    with pytest.raises(EngineError, match=r"vanished\.square failed: ModuleNotFoundError"):
        embedded.run_tasks([1], square)


def test_workers_stay_small(embedded: Engine) -> None:
    loaded = set(embedded.run_tasks([1], modules).column("module").to_pylist())
    assert "gossamer.engine.worker" in loaded
    assert not loaded & {"duckdb", "ibis", "pandas", "pyspark"}


def test_nothing_is_left_behind(embedded: Engine, tmp_path: Path) -> None:
    rows = embedded.values(table({"id": INT, "k": INT}, [(n, n % 5) for n in range(1000)]))
    embedded.map_batches(rows, partial(ranked, key=("k",)), RANKED, by="k")
    assert not list(tmp_path.rglob("in-*"))  # what the function was given
    workers = embedded.run_tasks([1, 2, 3], square).column("worker").to_pylist()
    embedded.close()
    assert not list(tmp_path.iterdir())
    assert not any(psutil.pid_exists(pid) for pid in workers)


def test_scratch_of_the_dead_is_removed_and_that_of_the_living_is_not(tmp_path: Path) -> None:
    script = (
        f"import time; from gossamer.engine.scratch import Scratch; print(Scratch({str(tmp_path)!r}).path, flush=True)"
    )
    (tmp_path / "gossamer-notes").mkdir()  # somebody's own
    command = [sys.executable, "-c", f"{script}; time.sleep(60)"]
    other = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}
    )
    theirs = Path(str(other.stdout and other.stdout.readline().strip()))
    ours = Scratch(str(tmp_path))
    assert theirs.is_dir()
    other.kill()
    other.communicate()
    Scratch(str(tmp_path)).remove()
    assert sorted(tmp_path.iterdir()) == sorted([Path(ours.path), tmp_path / "gossamer-notes"])
    ours.remove()


def test_memory_that_does_not_suffice_is_an_error_with_a_cure(tmp_path: Path) -> None:
    engine = EmbeddedEngine(workers=0, memory_mb=48, scratch=str(tmp_path))
    rows = engine.values(pa.table({"x": range(2_000_000)}))
    with pytest.raises(EngineError, match=r"^Out of Memory.*; raise engine\.memory_mb"):
        engine.collect(rows.aggregate(n=rows.x.cast("string").group_concat("x" * 50).length()))
    engine.close()


def test_a_full_disk_under_a_spool_is_a_storage_error(embedded_inline: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pa, "OSFile", lambda *args: open("/dev/full", "wb", buffering=0))  # noqa: PTH123, SIM115
    rows = embedded_inline.values(table({"id": INT, "k": INT}, [(n, n % 5) for n in range(1000)]))
    with pytest.raises(StorageError, match="the disk is full; free some space"):
        embedded_inline.map_batches(rows, partial(ranked, key=("k",)), RANKED, by="k")


def test_without_workers_everything_happens_here(embedded_inline: Engine, tmp_path: Path) -> None:
    result = embedded_inline.run_tasks([3, 1], square)
    assert result.to_pylist() == [{"task": t, "square": t * t, "worker": os.getpid()} for t in (3, 1)]
    rows = table({"id": INT, "k": INT}, [(n, n % 3) for n in range(30)])
    out = embedded_inline.map_batches(
        embedded_inline.values(rows), partial(ranked, key=("k",)), RANKED, by="k", sort=["id"]
    )
    same(embedded_inline.collect(out), table({"id": INT, "place": INT}, [(n, n // 3) for n in range(30)]))
    target = Target(LocalFiles(str(tmp_path / "t")), "t", rows.schema, ("id",), "id", 4, key=("id",))
    entries = embedded_inline.write(embedded_inline.values(rows), target)
    assert [(entry.shard, entry.rows) for entry in entries] == [(0, 8), (1, 8), (2, 7), (3, 7)]
    with pytest.raises(StorageError, match="two rows with the same key"):
        embedded_inline.write(embedded_inline.values(pa.concat_tables([rows, rows])), target)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_large_table_without_shards_is_cut_into_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr("gossamer.engine.embedded.FILE_ROWS", 4096)
    monkeypatch.setattr("gossamer.engine.embedded.BATCH_ROWS", 2048)
    engine = EmbeddedEngine(workers=workers, scratch=str(tmp_path))
    target = Target(LocalFiles(str(tmp_path / "t")), "t", pa.schema([("id", INT)]), ("id",), key=("id",))
    entries = engine.write(engine.values(pa.table({"id": range(9999, -1, -1)})), target)
    assert [entry.rows for entry in entries] == [4096, 4096, 1808]
    read = pa.concat_tables([pq.read_table(tmp_path / "t" / entry.path) for entry in entries])
    assert read.column("id").to_pylist() == list(range(10_000))
    twice = engine.values(pa.table({"id": [*range(10_000), 4095]}))  # the two rows lie on the border of two files
    with pytest.raises(StorageError, match=r"two rows with the same key \{'id': 4095\}"):
        engine.write(twice, replace(target, folder="twice"))
    engine.close()


def test_a_result_too_many_or_too_few_is_an_error() -> None:
    result = pa.table({"x": [1]})
    for results in ([result], [result] * 3):
        with pytest.raises(EngineError, match=f"2 tasks of f gave {len(results)} results"):
            one_result([1, 2], results, "f")


@pytest.mark.parametrize(("how", "error"), [("ours", CorruptError), ("theirs", EngineError), ("sys.exit", EngineError)])
def test_without_workers_errors_are_the_same(
    embedded_inline: Engine, tmp_path: Path, how: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"damaged|functions\.fails failed"):
        embedded_inline.run_tasks([1, 2, 3], partial(fails, folder=str(tmp_path), how=how))
    assert sorted(mark.name[:6] for mark in tmp_path.glob("task-*")) == ["task-1", "task-2"]


def test_times_are_utc_wherever_the_machine_is() -> None:
    script = """
import pyarrow as pa
from datetime import UTC, datetime
from gossamer.engine.embedded import EmbeddedEngine
engine = EmbeddedEngine(workers=0)
times = engine.values(pa.table({"t": pa.array([datetime(2024, 1, 1, 23, 30, tzinfo=UTC)], pa.timestamp("us", "UTC"))}))
print(engine.collect(times.select(h=times.t.hour().cast("int32"))).column("h")[0])
engine.close()
"""
    environment = os.environ | {"TZ": "Asia/Kolkata", "PYTHONPATH": str(ROOT / "src")}
    told = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "23"
