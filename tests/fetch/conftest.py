"""An engine and a hostile server for the tests of fetch, each started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gossamer.engine.base import Engine
from gossamer.engine.embedded import EmbeddedEngine
from tests.hostile.server import HostileServer, hostile_server


@pytest.fixture(scope="session")
def inline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The embedded engine without worker processes: fetching happens in this one."""
    engine = EmbeddedEngine(workers=0, scratch=str(tmp_path_factory.mktemp("inline")))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    """A hostile server for the tests of one module."""
    with hostile_server() as server:
        yield server
