"""run_tasks, and what happens when a function fails or its worker dies: one clear error, never a second run, never a hang."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from gossamer.engine.base import Engine
from gossamer.errors import CorruptError, EngineError
from tests.engine.data import same, table
from tests.engine.functions import another_schema, fails, fails_in_map, not_a_table, recorded, square

INT = pa.int64()
DEATHS = ["os._exit", "SIGKILL", "executor"]


def is_cluster(engine: Engine) -> bool:
    context = getattr(engine, "_spark", None)
    return context is not None and context.sparkContext.master.startswith("local-cluster")


def runs(folder: Path, name: str) -> int:
    return len(list(folder.glob(f"{name}-*")))


def test_one_result_per_task_in_the_order_of_the_tasks(engine: Engine) -> None:
    tasks = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
    result = engine.run_tasks(tasks, square)
    same(
        result.drop_columns(["worker"]), table({"task": INT, "square": INT}, [(t, t * t) for t in tasks]), in_order=True
    )


def test_tasks_run_in_all_workers(engine: Engine) -> None:
    assert engine.workers == 2
    assert len(set(engine.run_tasks(list(range(40)), square).column("worker").to_pylist())) >= 2


def test_each_task_runs_once(engine: Engine, tmp_path: Path) -> None:
    engine.run_tasks(list(range(20)), partial(recorded, folder=str(tmp_path)))
    assert sorted(runs(tmp_path, f"task-{n}") for n in range(20)) == [1] * 20


def test_no_tasks_are_refused(engine: Engine) -> None:
    with pytest.raises(EngineError, match=r"functions\.square was given no tasks"):
        engine.run_tasks([], square)


def test_our_errors_keep_their_class(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(CorruptError, match=r"^x\.warc\.gz: damaged; restore it$"):
        engine.run_tasks([1, 2, 3], partial(fails, folder=str(tmp_path), how="ours"))
    rows = engine.values(table({"id": INT}, [(1,), (2,), (3,)]))
    with pytest.raises(CorruptError, match=r"^x\.warc\.gz: damaged; restore it$"):
        engine.map_batches(rows, partial(fails_in_map, folder=str(tmp_path), how="ours"), pa.schema([("id", INT)]))


REASONS = {
    "theirs": "KeyError: 'missing",
    "brittle": r"Brittle: broken pipe \(7\)",
    "fragile": r"Fragile: torn \(8\)",
    "sys.exit": "SystemExit: 0",
}


@pytest.mark.parametrize("how", REASONS)
def test_other_errors_name_the_function(engine: Engine, tmp_path: Path, how: str) -> None:
    reason = REASONS[how]
    with pytest.raises(EngineError, match=rf"tests\.engine\.functions\.fails failed: {reason}") as caught:
        engine.run_tasks([1, 2, 3], partial(fails, folder=str(tmp_path), how=how))
    assert "\n" not in str(caught.value)
    assert "in fail\n" in "".join(caught.value.__notes__)  # where it happened
    assert runs(tmp_path, "task-2") == 1
    rows = engine.values(table({"id": INT}, [(1,), (2,), (3,)]))
    with pytest.raises(EngineError, match=rf"tests\.engine\.functions\.fails_in_map failed: {reason}"):
        engine.map_batches(rows, partial(fails_in_map, folder=str(tmp_path), how=how), pa.schema([("id", INT)]))
    assert runs(tmp_path, "met") == 1


def test_a_task_must_give_a_table_and_all_the_same(engine: Engine) -> None:
    with pytest.raises(EngineError, match=r"functions\.not_a_table failed: .*one pyarrow\.Table, not dict"):
        engine.run_tasks([1], not_a_table)
    with pytest.raises(EngineError, match=r"functions\.another_schema failed: .*2 different schemas"):
        engine.run_tasks([1, 2], another_schema)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("how", DEATHS)
def test_a_death_is_an_error_and_not_a_second_run(engine: Engine, tmp_path: Path, how: str) -> None:
    if how == "executor" and not is_cluster(engine):
        pytest.skip("only a cluster has executors that can die alone")
    with pytest.raises(EngineError, match=r"died while running tests\.engine\.functions\.fails .*run the same command"):
        engine.run_tasks([1, 2, 3, 4], partial(fails, folder=str(tmp_path), how=how))
    assert runs(tmp_path, "task-2") == 1
    same(engine.run_tasks([5], square).drop_columns(["worker"]), pa.table({"task": [5], "square": [25]}))  # fit again


@pytest.mark.timeout(90)
@pytest.mark.parametrize("how", DEATHS)
def test_a_death_in_map_batches(engine: Engine, tmp_path: Path, how: str) -> None:
    if how == "executor" and not is_cluster(engine):
        pytest.skip("only a cluster has executors that can die alone")
    rows = engine.values(table({"id": INT}, [(n,) for n in range(100)]))
    fn = partial(fails_in_map, folder=str(tmp_path), how=how)
    with pytest.raises(EngineError, match=r"died while running tests\.engine\.functions\.fails_in_map "):
        engine.map_batches(rows, fn, pa.schema([("id", INT)]), by="id", sort=["id"])
    assert runs(tmp_path, "met") == 1
    later = engine.map_batches(rows.filter(rows.id > 2), fn, pa.schema([("id", INT)]), by="id")
    same(engine.collect(later), table({"id": INT}, [(n,) for n in range(3, 100)]))
