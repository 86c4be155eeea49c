"""The process pool of the embedded engine: each call runs once, and a dead worker is an error, not a wait."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pyarrow as pa

from gossamer.engine.calls import accept, attempt, title
from gossamer.errors import EngineError, GossamerError

Call = Callable[[], pa.Table]


def start_worker() -> None:
    """Leave Ctrl-C to the parent, and die with it: a killed job leaves nobody working."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
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

    def run(self, calls: Iterable[Call], fn: Any) -> list[pa.Table]:
        """The results of all calls, in order; calls are taken from the iterable while earlier ones run."""
        name = title(fn)
        if not self.workers:
            return [accept(attempt(call, name)) for call in calls]
        try:
            return self._run(calls, name)
        except BrokenProcessPool as error:
            self._kill()
            raise EngineError(
                f"a worker process died while running {name} (killed or out of memory, or your script lacks "
                "`if __name__ == '__main__':`); nothing was published: lower engine.workers or give the machine more "
                "memory, then run the same command again"
            ) from error
        except BaseException:  # an interrupt too
            self._kill()
            raise

    def close(self) -> None:
        """End the processes."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None

    def _run(self, calls: Iterable[Call], name: str) -> list[pa.Table]:
        executor = self._start()
        futures: list[Future[pa.Table | GossamerError]] = []
        waiting: set[Future[pa.Table | GossamerError]] = set()
        for call in calls:
            future = executor.submit(_unpacked, _packed(call, name), name)
            futures.append(future)
            waiting.add(future)
            for done in [f for f in waiting if f.done()]:
                waiting.remove(done)
                accept(done.result())
        for done in as_completed(waiting):
            accept(done.result())
        return [accept(future.result()) for future in futures]

    def _start(self) -> ProcessPoolExecutor:
        if self._executor is None:
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(["gossamer.engine.preload"])
            self._executor = ProcessPoolExecutor(self.workers, mp_context=context, initializer=start_worker)
        return self._executor

    def _kill(self) -> None:
        """End the workers at once: when a job has failed, nobody goes on working for it."""
        executor, self._executor = self._executor, None
        if executor is not None:
            for process in list((executor._processes or {}).values()):  # terminate_workers() comes with Python 3.14
                process.kill()
            executor.shutdown(cancel_futures=True)


def _packed(call: Call, name: str) -> bytes:
    """A call as bytes; what cannot be sent is told here rather than in the pool's threads."""
    try:
        return pickle.dumps(call)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise EngineError(
            f"{name} cannot be sent to a worker ({error}); use a module-level function or a partial of one"
        ) from error


def _unpacked(call: bytes, name: str) -> pa.Table | GossamerError:
    """Run a call in the worker; that it cannot be read there is an error like any other."""

    def run() -> pa.Table:
        return pickle.loads(call)()

    return attempt(run, name)
