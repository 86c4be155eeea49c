"""Calling a function that is not ours: it gives one result or one error, and either can travel between processes."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from gossamer.errors import EngineError, GossamerError

T = TypeVar("T")


def attempt(call: Callable[[], T], name: str) -> T | GossamerError:
    """What a call gave, or what it raised as one of our errors; a function may not end its process quietly either."""
    try:
        return call()
    except (Exception, SystemExit) as error:  # noqa: BLE001  it goes back to the job, where `accept` raises it
        return ours(error, name)


def accept(result: T | GossamerError) -> T:
    """The result of an attempt, here where the job is; raises if it failed."""
    if isinstance(result, GossamerError):
        raise result
    return result


def ours(error: BaseException, name: str) -> GossamerError:
    """An error as one of ours that can be pickled; of any other the place where it happened is kept as a note."""
    if isinstance(error, GossamerError) and _travels(error):
        return error
    told = EngineError(f"{name} failed: {type(error).__name__}: {' '.join(str(error).split())[:400]}")
    told.add_note("".join(traceback.format_exception(error)))
    return told


def _travels(error: GossamerError) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:  # noqa: BLE001  a class of a plugin may raise anything when it is rebuilt
        return False


def one_table(fn: Callable[[Any], pa.Table], task: Any) -> pa.Table:
    """The one table a task gives."""
    result = fn(task)
    if not isinstance(result, pa.Table):
        raise TypeError(f"a task must give one pyarrow.Table, not {type(result).__name__}")
    return result


def title(fn: Any) -> str:
    """The name of a function or of what a partial wraps."""
    inner = getattr(fn, "func", fn)
    return f"{inner.__module__}.{getattr(inner, '__qualname__', type(inner).__qualname__)}"
