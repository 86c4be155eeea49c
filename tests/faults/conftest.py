"""Crash tests print how many points they tried."""

from __future__ import annotations

import pytest

from tests.faults.harness import LEFT, TRIED
from tests.servers import s3_server

__all__ = ["s3_server"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TRIED:
        terminalreporter.section("crash points tried")
    for name, tried in TRIED.items():
        kinds = ", ".join(f"{kind} {count}" for kind, count in tried.items())
        terminalreporter.write_line(
            f"{name}: {sum(tried.values())} ({kinds}); {LEFT.get(name, 0)} different states left behind"
        )
