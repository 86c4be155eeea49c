"""Every storage test runs on the local disk and in a bucket."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from gossamer.storage import snapshots
from gossamer.storage.files import Files, open_files
from tests.servers import pytest_report_header, s3_server
from tests.storage.building import AT

__all__ = ["pytest_report_header", "s3_server"]


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    """An empty root."""
    if request.param == "local":
        return open_files(str(tmp_path / "crawl"))
    return open_files(f"{request.getfixturevalue('s3_server')}/{uuid.uuid4().hex}")


@pytest.fixture
def crawl(files: Files) -> Files:
    """A crawl with nothing in it."""
    snapshots.publish_first(files, 4, AT)
    return files
