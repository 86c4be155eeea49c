"""The process pool of the embedded engine: each call runs once, and a dead worker is an error, not a wait."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pyarrow as pa

from gossamer.errors import EngineError, GossamerError


def start_worker() -> None:
    """Leave Ctrl-C to the parent, and die with it: a killed job leaves nobody working."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_die_with, args=(parent,), daemon=True).start()


def _die_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


class Pool:
    """Calls side by side in `workers` processes, or one after the other in this one when there are none."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._executor: ProcessPoolExecutor | None = None

    def run(self, calls: Iterable[Callable[[], pa.Table]], fn: Any) -> list[pa.Table]:
        """The results of all calls, in order; calls are taken from the iterable while earlier ones run."""
        name = title(fn)
        if not self.workers:
            return [_here(call, name) for call in calls]
        executor = self._start()
        futures: list[Future[pa.Table]] = []
        try:
            for call in calls:
                futures.append(executor.submit(call))
            return [future.result() for future in futures]
        except BrokenProcessPool as error:
            self._executor = None
            raise EngineError(
                f"a worker process died while running {name} (killed, or out of memory); nothing was published: "
                "lower engine.workers or give the machine more memory, then run the same command again"
            ) from error
        except GossamerError:
            raise
        except Exception as error:
            raise failed(name, error) from error
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """End the processes."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None

    def _start(self) -> ProcessPoolExecutor:
        if self._executor is None:
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(["gossamer.engine.worker"])
            self._executor = ProcessPoolExecutor(self.workers, mp_context=context, initializer=start_worker)
        return self._executor


def _here(call: Callable[[], pa.Table], name: str) -> pa.Table:
    try:
        return call()
    except GossamerError:
        raise
    except Exception as error:
        raise failed(name, error) from error


def failed(name: str, error: Exception) -> EngineError:
    """The error for a function that raised in a worker."""
    return EngineError(f"{name} failed: {type(error).__name__}: {' '.join(str(error).split())[:400]}")


def title(fn: Any) -> str:
    """The name of a function or of what a partial wraps."""
    inner = getattr(fn, "func", fn)
    return f"{inner.__module__}.{inner.__qualname__}"
