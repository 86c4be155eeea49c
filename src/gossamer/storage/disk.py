"""The one place that touches the local disk for writing: ten primitive operations.

Everything durable is built from these in `storage.local`. The crash tests put a faulty Disk in their place and let
every single operation fail in turn.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Disk:
    """Plain POSIX operations, one system call each."""

    def open_new(self, path: str) -> int:
        """Open a file that must not exist yet."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)

    def write(self, fd: int, data: Buffer) -> None:
        """Write all of `data`."""
        view = memoryview(data).cast("B")
        while view:
            view = view[os.write(fd, view) :]

    def sync(self, fd: int) -> None:
        """Force the file's bytes to the device."""
        os.fsync(fd)

    def cut(self, path: str, size: int) -> None:
        """Cut a file off after so many bytes, durably."""
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            os.fsync(fd)
        finally:
            os.close(fd)

    def make_dir(self, path: str) -> None:
        """Create a directory; an existing one is fine."""
        with suppress(FileExistsError):
            os.mkdir(path)

    def remove_dir(self, path: str) -> None:
        """Remove a directory that must be empty."""
        os.rmdir(path)

    def sync_dir(self, path: str) -> None:
        """Force a directory's entries to the device."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name that must not exist yet."""
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        """Move a file over another, atomically."""
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """Remove a name."""
        os.unlink(path)
