"""Where a crawl lives: one small interface over the local disk and `s3://`.

Paths are relative to the crawl's root and use `/`. Files are immutable once written, except those given to `replace`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

from gossamer.errors import CorruptError, UsageError


class Exists(Exception):
    """`create` found the name taken: somebody else was first."""


class Missing(CorruptError):
    """There is no file of that name."""


class Writer(Protocol):
    """A new file being written; invisible or unnamed to readers until `close` has made it durable."""

    def write(self, data: bytes, /) -> int:
        """Append bytes."""

    def close(self) -> None:
        """Make the file durable; after this it is there for good."""

    def abort(self) -> None:
        """Drop what was written."""


class Files(Protocol):
    """A root with files below it."""

    root: str

    def url(self, path: str) -> str:
        """What an engine opens to read this file."""

    def read(self, path: str) -> bytes:
        """The whole file; raises Missing."""

    def open(self, path: str) -> BinaryIO:
        """The file for reading, seekable."""

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Path and size of every file below a folder."""

    def ages(self, prefix: str) -> dict[str, float]:
        """Seconds since each file below a folder was written, by the clock of the file system alone."""

    def exists(self, path: str) -> bool:
        """Whether the file is there."""

    def writer(self, path: str) -> Writer:
        """A new file, written in pieces."""

    def create(self, path: str, data: bytes) -> None:
        """Write a whole file atomically; raise Exists if the name is taken."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a whole file atomically over what is there."""

    def delete(self, *paths: str) -> None:
        """Remove files, and folders this leaves empty; when it returns they are gone for good. Missing ones are fine."""

    def settle(self, folder: str) -> None:
        """Make sure that no power cut takes back what this folder shows now, even if its writer died before it could."""


def open_files(root: str) -> Files:
    """The file system a root names: a directory, or `s3://bucket/prefix`."""
    if root.startswith("s3://"):
        try:
            from gossamer.storage.s3 import S3Files
        except ImportError as error:
            raise UsageError("s3:// needs the s3 extra; run: pip install 'gossamer[s3]'") from error
        return S3Files(root.rstrip("/"))
    if "://" in root:
        scheme = root.split("://", 1)[0]
        raise UsageError(f"{root}: {scheme}:// is not supported; use a directory or s3://bucket/prefix")
    from gossamer.storage.local import LocalFiles

    return LocalFiles(root)


def read_json(files: Files, path: str) -> dict[str, Any]:
    """The JSON object a file holds."""
    try:
        document = json.loads(files.read(path))
    except ValueError as error:
        raise CorruptError(f"{files.url(path)}: damaged JSON ({error}); restore it from a copy or roll back") from error
    if not isinstance(document, dict):
        raise CorruptError(f"{files.url(path)}: damaged JSON (not an object); restore it from a copy or roll back")
    return document
