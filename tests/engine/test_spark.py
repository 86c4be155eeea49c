"""The Spark engine's own: no second run whatever Spark's settings say, a dead driver, a borrowed session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from gossamer.engine.base import Engine
from gossamer.errors import StorageError
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import Target
from tests.conftest import ROOT, java_version
from tests.engine.processes import gone, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(java_version() < 17, reason="Spark needs Java 17 or newer"),
    pytest.mark.timeout(120),
]

START = """
import sys
from functools import partial
import pyarrow as pa
from gossamer.engine.spark import SparkEngine
from gossamer.errors import EngineError
from tests.engine.functions import fails, square, waits

def told(call, *args):
    try:
        call(*args)
    except EngineError as error:
        print(error)
"""


def variables() -> dict[str, str]:
    """An environment in which Python workers can import the tests."""
    return os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}


def lines_of(script: str, *args: str, **environment: str) -> list[str]:
    """What a script prints in a process of its own, as only one Spark lives in each."""
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", START + script, *args]
    ended = subprocess.run(command, env=variables() | environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_a_second_try_is_refused_even_where_spark_makes_one(tmp_path: Path) -> None:
    """`local[2,3]` lets Spark try each task three times, whatever spark.task.maxFailures says."""
    (tmp_path / "only_here.py").write_text("def work(task): pass")
    script = """
engine = SparkEngine("local[2,3]")
told(engine.run_tasks, [1, 2, 3], partial(fails, folder=sys.argv[1], how="SIGKILL"))
sys.path.append(sys.argv[1])
from only_here import work
told(engine.run_tasks, [1], work)
engine.close()
"""
    second_try, not_installed = lines_of(script, str(tmp_path))
    assert "died and Spark tried its task again, which was refused" in second_try
    assert len(list(tmp_path.glob("task-2-*"))) == 1
    assert not_installed.startswith("Spark's executors cannot import only_here; install ")


def test_a_dead_driver_is_an_error_and_close_still_works(tmp_path: Path) -> None:
    script = """
engine = SparkEngine("local[2]")
rows = engine.values(pa.table({"x": [1]}))
told(engine.run_tasks, [1, 2], partial(fails, folder=sys.argv[1], how="executor"))
told(engine.collect, rows)
engine.close()
"""
    during, after = lines_of(script, str(tmp_path))
    assert during.startswith("Spark's driver died while running tests.engine.functions.fails ")
    assert after.startswith("Spark's driver died (killed, or out of memory)")


@pytest.mark.timeout(200)
def test_all_of_spark_dies_with_a_killed_process(tmp_path: Path) -> None:
    script = 'SparkEngine("local-cluster[2,1,1024]").run_tasks([1, 2], partial(waits, folder=sys.argv[1]))'
    command = [sys.executable, "-c", START + script, str(tmp_path)]
    with subprocess.Popen(command, env=variables(), stderr=subprocess.DEVNULL) as parent:
        try:
            assert wait_until(lambda: len(list(tmp_path.iterdir())) == 2, 120)
            children = psutil.Process(parent.pid).children(recursive=True)
            assert sum(child.name() == "java" for child in children) == 3  # the driver and two executors
        finally:
            parent.kill()
    assert wait_until(lambda: gone(children), 15)


def test_what_gossamer_relies_on_cannot_be_set_and_a_session_of_others_is_left_to_them() -> None:
    script = """
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
engine = SparkEngine("local[2]", conf={"spark.sql.session.timeZone": "Asia/Kolkata"})
print(session.conf.get("spark.sql.session.timeZone"), engine.run_tasks([3], square).column("square")[0])
engine.close()
print(session.range(3).count())
"""
    assert lines_of(script, PYSPARK_PYTHON=sys.executable) == ["UTC 9", "3"]


def test_no_java_is_an_error_with_a_cure() -> None:
    [line] = lines_of('told(SparkEngine, "local[2]")', JAVA_HOME="/nowhere")
    assert line.startswith("Spark at local[2] did not start: ")
    assert "Java 17" in line


def test_settings_of_the_shared_session(engine: Engine) -> None:
    if engine.name != "spark":
        pytest.skip("about Spark")
    conf = engine._spark.sparkContext.getConf()  # type: ignore[attr-defined]
    expected = {"spark.task.maxFailures": "1", "spark.stage.maxConsecutiveAttempts": "1", "spark.speculation": "false"}
    assert {key: conf.get(key) for key in expected} == expected


def test_rows_of_one_key_meet_though_ranges_end_between_them(engine: Engine, tmp_path: Path) -> None:
    if engine.name != "spark":
        pytest.skip("about Spark")
    conf = engine._spark.conf  # type: ignore[attr-defined]
    conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")  # each of the few rows a range of its own
    rows = pa.table({"key": [1, 2, 2, 3], "n": [1, 1, 2, 1]})
    target = Target(LocalFiles(str(tmp_path)), "t", rows.schema, ("key", "n"), key=("key",))
    with pytest.raises(StorageError, match=r"two rows with the same key \{'key': 2\}"):
        engine.write(engine.values(rows), target)
    conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
