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
from tests.conftest import QUICK_START, ROOT, java_version
from tests.engine.processes import gone, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(java_version() < 17, reason="Spark needs Java 17 or newer"),
    pytest.mark.timeout(120),
]

SCRIPT = """
import sys
from functools import partial
import pyarrow as pa
from pyspark.sql import SparkSession
from gossamer.engine.spark import SparkEngine
from gossamer.errors import EngineError
from tests.engine.functions import fails, square

def told(name, call, *args):
    try:
        print(name, call(*args), sep="|")
    except EngineError as error:
        print(name, error, sep="|")

folder = sys.argv[1]
sys.path.append(folder)
from only_here import work
engine = SparkEngine("local[2,3]")
told("second try", engine.run_tasks, [1, 2, 3], partial(fails, folder=folder, how="SIGKILL"))
told("not installed", engine.run_tasks, [1], work)
engine.close()

session = SparkSession.builder.master("local[1]").getOrCreate()
engine = SparkEngine("local[2]", conf={"spark.sql.session.timeZone": "Asia/Kolkata"})
told("zone", session.conf.get, "spark.sql.session.timeZone")
engine.close()
told("borrowed", session.range(3).count)

engine = SparkEngine("local[2]")
rows = engine.values(pa.table({"x": [1]}))
told("driver dies", engine.run_tasks, [1, 2], partial(fails, folder=folder, how="executor"))
told("driver dead", engine.collect, rows)
engine.close()
told("end", str)
"""
KILLED = """
import sys
from functools import partial
from gossamer.engine.spark import SparkEngine
from tests.engine.functions import waits
SparkEngine("local-cluster[2,1,1024]").run_tasks([1, 2], partial(waits, folder=sys.argv[1]))
"""
NO_JAVA = """
from gossamer.engine.spark import SparkEngine
SparkEngine("local[2]")
"""


def variables(**more: str) -> dict[str, str]:
    """An environment in which Python workers can import the tests and Java starts quickly."""
    paths = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "PYSPARK_PYTHON": sys.executable, "JAVA_TOOL_OPTIONS": QUICK_START}
    return os.environ | paths | more


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("script")


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, str]:
    """What the script was told in a process of its own, as only one Spark lives in each."""
    (folder / "only_here.py").write_text("def work(task): pass")
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    ended = subprocess.run(command, env=variables(), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return dict(line.split("|", 1) for line in ended.stdout.splitlines())


def test_a_second_try_is_refused_even_where_spark_makes_one(told: dict[str, str], folder: Path) -> None:
    """`local[2,3]` lets Spark try each task three times, whatever spark.task.maxFailures says."""
    assert "died and Spark tried its task again, which was refused" in told["second try"]
    assert len(list(folder.glob("task-3-*"))) == 1
    assert len(list(folder.glob("task-2-*"))) == 2  # here, and when the driver died


def test_what_executors_cannot_import_is_told(told: dict[str, str]) -> None:
    assert told["not installed"].startswith("Spark's executors cannot import only_here; install ")


def test_a_session_of_others_is_left_to_them_but_for_what_gossamer_relies_on(told: dict[str, str]) -> None:
    assert (told["zone"], told["borrowed"]) == ("UTC", "3")


def test_a_dead_driver_is_an_error_and_close_still_works(told: dict[str, str]) -> None:
    assert told["driver dies"].startswith("Spark's driver died while running tests.engine.functions.fails ")
    assert told["driver dead"].startswith("Spark's driver died (killed, or out of memory)")
    assert "end" in told


def test_no_java_is_an_error_with_a_cure() -> None:
    command = [sys.executable, "-c", NO_JAVA]
    ended = subprocess.run(command, env=variables(JAVA_HOME="/nowhere"), capture_output=True, text=True, check=False)
    last = ended.stderr.splitlines()[-1]
    assert "EngineError: Spark at local[2] did not start: " in last
    assert "Java 17" in last


@pytest.mark.timeout(200)
def test_all_of_spark_dies_with_a_killed_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, env=variables(), stderr=subprocess.DEVNULL) as parent:
        try:
            assert wait_until(lambda: len(list(tmp_path.iterdir())) == 2, 120)
            children = psutil.Process(parent.pid).children(recursive=True)
            assert sum(child.name() == "java" for child in children) == 3  # the driver and two executors
        finally:
            parent.kill()
    assert wait_until(lambda: gone(children), 15)


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
