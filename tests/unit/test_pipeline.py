"""The map: stages name tables and jobs that exist, and their balances can be computed."""

from __future__ import annotations

import importlib
import re

import pytest

from gossamer.errors import BalanceError
from gossamer.pipeline import ANY, STAGES, Stage, balanced
from gossamer.runner import check_balance
from gossamer.tables import TABLES


@pytest.mark.parametrize(
    ("counters", "holds"),
    [
        ({"read": 5, "written": 3, "rejected": 2}, True),
        ({"read": 5, "written": 5}, True),
        ({}, True),
        ({"read": 5, "written": 3, "rejected": 1}, False),
        ({"read": 5}, False),
        ({"written": 1}, False),
        ({"read": 1, "written": 1, "something_else": 7}, True),
    ],
)
def test_balanced(counters: dict[str, int], holds: bool):
    assert balanced("read = written + rejected", counters) is holds


def test_both_sides_may_be_sums():
    assert balanced("a+b = c + d", {"a": 1, "b": 2, "c": 3})
    assert not balanced("a + b = c + d", {"a": 1, "b": 2, "d": 2})


@pytest.mark.parametrize("equation", ["", "a", "a = b = c"])
def test_what_is_no_equation_is_an_error(equation: str):
    with pytest.raises(ValueError, match="unpack"):
        balanced(equation, {"a": 1, "b": 1, "c": 1})


def test_a_broken_balance_says_what_was_counted():
    stage = Stage("x", "Does x.", (), (), "rows_in = rows_out", "m:f")
    check_balance(stage, {"rows_in": 2000, "rows_out": 2000})
    with pytest.raises(
        BalanceError, match=r"x: rows_in = rows_out does not hold \(rows_in=2,000, rows_out=1\); nothing was published"
    ):
        check_balance(stage, {"rows_in": 2000, "rows_out": 1})


@pytest.mark.parametrize("stage", STAGES.values(), ids=lambda stage: stage.name)
def test_every_stage_can_run(stage: Stage):
    assert STAGES[stage.name] is stage
    module, function = stage.job.split(":")
    assert callable(getattr(importlib.import_module(module), function))
    for tables in (stage.reads, stage.writes):
        assert tables == ANY or set(tables) <= set(TABLES)
    for equation in stage.balance.split("; "):
        assert re.fullmatch(r"\w+( \+ \w+)* = \w+( \+ \w+)*", equation)
    assert stage.doc.endswith(".")


def test_every_equation_must_hold():
    both = "a = b; c = d + e"
    assert balanced(both, {"a": 1, "b": 1, "c": 3, "d": 1, "e": 2})
    assert not balanced(both, {"a": 1, "b": 1, "c": 3, "d": 1})
    assert not balanced(both, {"a": 1, "c": 3, "d": 1, "e": 2})
