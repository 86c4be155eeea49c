"""The engines behind the seam; `open_engine` is how the rest of Gossamer gets one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.errors import UsageError

if TYPE_CHECKING:
    from gossamer.engine.base import Engine
    from gossamer.settings import EngineSettings
    from gossamer.storage.files import Files


def open_engine(settings: EngineSettings, files: Files) -> Engine:
    """The engine the settings ask for."""
    if settings.kind == "embedded":
        from gossamer.engine.embedded import EmbeddedEngine

        workers = None if settings.workers < 0 else settings.workers
        return EmbeddedEngine(workers, settings.memory_mb, scratch=settings.scratch or None)
    try:
        from gossamer.engine.spark import SparkEngine
    except ImportError as error:
        raise UsageError("the Spark engine needs the spark extra; run: pip install 'gossamer[spark]'") from error
    return SparkEngine(settings.spark_master, files, dict(settings.spark_conf))


def local_engine(memory_mb: int) -> Engine:
    """An engine for use inside a worker: DuckDB on one thread, no processes of its own."""
    from gossamer.engine.embedded import EmbeddedEngine

    return EmbeddedEngine(workers=0, memory_mb=memory_mb, threads=1)


def worker_memory(settings: EngineSettings) -> int:
    """What each of the workers that run side by side may use, in MB."""
    import os

    workers = (os.cpu_count() or 1) if settings.workers < 0 else max(1, settings.workers)
    return max(256, settings.memory_mb // workers)
