"""Fixtures for every test: the engines. Each is started once; pytest runs all tests of one before those of the next."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from gossamer.engine.base import Engine
from gossamer.engine.embedded import EmbeddedEngine
from gossamer.storage.local import LocalFiles

ROOT = Path(__file__).parents[1]
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # small jobs in young JVMs: compile little
SMALL_JOBS = {  # none changes a result
    "spark.sql.codegen.wholeStage": "false",  # to compile a query takes longer than to run it over a few rows
    "spark.sql.ui.explainMode": "simple",  # plans as text, of every query and each of its stages, for a UI that is off
    "spark.sql.maxPlanStringLength": "0",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # a stack trace for every column that is named
}
ENGINES = [
    pytest.param("embedded", id="duckdb"),
    pytest.param("local[2]", id="spark-local", marks=pytest.mark.spark),
]
CLUSTER = pytest.param("local-cluster[2,1,1024]", id="spark-cluster", marks=pytest.mark.spark)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Say which engines a test runs on.

    A cluster differs from one JVM in how functions, rows and errors travel, which is what the engine's contract is about:
    it runs all of `tests/engine`, and of the rest what is marked `cluster`: a whole round. A stage calls nothing but the
    engine; each of them on a cluster would prove the same once more, slowly.
    """
    if "engine" in metafunc.fixturenames:
        contract = metafunc.definition.path.is_relative_to(ROOT / "tests/engine")
        marker = metafunc.definition.get_closest_marker("cluster")
        on_cluster = marker.kwargs.get("wanted", True) if marker else contract
        metafunc.parametrize("engine", [*ENGINES, CLUSTER] if on_cluster else ENGINES, indirect=True, scope="session")


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Every engine in turn: DuckDB with two workers, Spark in one JVM, and where it matters with two executors."""
    if request.param == "embedded":
        yield from _closing(EmbeddedEngine(workers=2, scratch=str(tmp_path_factory.mktemp("scratch"))))
    else:
        yield from _spark(request.param, str(tmp_path_factory.mktemp("spark")))


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The embedded engine with two workers, for tests that need one engine only; started once."""
    yield from _closing(EmbeddedEngine(workers=2, scratch=str(tmp_path_factory.mktemp("embedded"))))


@pytest.fixture
def embedded_inline(tmp_path: Path) -> Iterator[Engine]:
    """The embedded engine without worker processes: everything happens in this one."""
    yield from _closing(EmbeddedEngine(workers=0, scratch=str(tmp_path)))


def _spark(master: str, folder: str) -> Iterator[Engine]:
    """Spark on this machine; its Python workers can import the tests' functions."""
    if (found := java_version()) < 17:
        pytest.skip(f"Spark needs Java 17 or newer; found {f'Java {found}' if found else 'none'}")
    from gossamer.engine.spark import SparkEngine

    os.environ["PYTHONPATH"] = path = f"{ROOT}:{ROOT / 'src'}"
    conf = {
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.executor.extraJavaOptions": QUICK_START,
        "spark.executorEnv.PYTHONPATH": path,
        "spark.sql.shuffle.partitions": "4",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        **SMALL_JOBS,
    }
    engine = SparkEngine(master, LocalFiles(folder), conf)
    application = engine._spark.sparkContext.applicationId
    yield from _closing(engine)
    # A local cluster keeps its executors' logs and jars inside the installed package.
    installed = find_spec("pyspark")
    shutil.rmtree(Path(str(installed and installed.origin)).parent / "work" / application, ignore_errors=True)


def _closing(engine: Engine) -> Iterator[Engine]:
    yield engine
    engine.close()


def java_version() -> int:
    """The major version of the Java that Spark would start; 0: there is none."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else 0
