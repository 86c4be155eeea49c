"""Codes are stored: a number once given keeps its meaning for ever."""

from __future__ import annotations

from enum import IntEnum

import pytest

from gossamer.tables import statuses

FROZEN = {
    "Status": "unfetched fetched gone redirect_temporary redirect_permanent not_modified duplicate robots_denied filtered "
    "too_large unsupported",
    "Outcome": "success fail gone gone_for_good redirect_temporary redirect_permanent not_modified robots_denied blocked_address "
    "too_large unsupported retry_later filtered untried",
    "PageKind": "page feed sitemap",
    "ParseStatus": "ok empty unsupported failed timeout crashed encrypted too_large",
    "LinkKind": "anchor area link frame form image redirect canonical refresh feed sitemap",
    "ClusterKind": "exact near",
}


@pytest.mark.parametrize("name", FROZEN)
def test_numbers_are_never_reused(name: str):
    codes: type[IntEnum] = getattr(statuses, name)
    expected = {label: number for number, label in enumerate(FROZEN[name].split(), 1)}
    found = {code.name.lower(): code.value for code in codes}
    assert expected.items() <= found.items(), "a code that was published has changed"


def test_every_enumeration_is_frozen_here():
    found = {
        n for n, c in vars(statuses).items() if isinstance(c, type) and issubclass(c, IntEnum) and c is not IntEnum
    }
    assert found == set(FROZEN)
