"""Files on the local disk: durable before visible.

`create` writes a hidden file, syncs it and links it to its name, which fails if the name is taken: that is the
create-if-absent every snapshot rests on. Directories are synced, so a name that was reported is there after a power cut.
"""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeVar

from gossamer.errors import GossamerError, StorageError, storage_error
from gossamer.storage.disk import Disk
from gossamer.storage.files import Exists, Missing

P = ParamSpec("P")
T = TypeVar("T")
HIDDEN = ".tmp-"
NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)  # why a folder need not, or need no longer, be removed
OPEN_TRIES = 5  # of a new file, whose empty folder another process may be removing


def failure(error: OSError, path: str) -> GossamerError:
    """The error that names the file and the cure."""
    named = storage_error(error, path)
    return Missing(str(named)) if isinstance(error, FileNotFoundError) else named


def told(path: str, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run one disk operation; an OSError becomes a storage error that names the file and the cure."""
    try:
        return operation(*args, **kwargs)
    except OSError as error:
        raise failure(error, path) from error


class LocalFiles:
    """A directory."""

    def __init__(self, root: str, disk: Disk | None = None) -> None:
        self.root = str(Path(root).absolute())
        self.disk = disk or Disk()
        self._settled: set[str] = set()  # folders that no power cut can take away

    def __reduce__(self) -> tuple[type[LocalFiles], tuple[str, Disk]]:
        return LocalFiles, (self.root, self.disk)

    def url(self, path: str) -> str:
        return os.path.join(self.root, path)

    def read(self, path: str) -> bytes:
        return told(self.url(path), Path(self.url(path)).read_bytes)

    def open(self, path: str) -> BinaryIO:
        return told(self.url(path), Path(self.url(path)).open, "rb")

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        for folder, folders, names in os.walk(self.url(prefix), onerror=_raise_unless_gone):
            folders.sort()
            for name in sorted(names):
                full = os.path.join(folder, name)
                try:
                    size = os.stat(full).st_size
                except FileNotFoundError:  # collected by another process while we walk
                    continue
                yield os.path.relpath(full, self.root), size

    def ages(self, prefix: str) -> dict[str, float]:
        now, ages = time.time(), {}
        for path, _ in self.list(prefix):
            with suppress(FileNotFoundError):
                ages[path] = now - os.stat(self.url(path)).st_mtime
        return ages

    def exists(self, path: str) -> bool:
        try:
            told(self.url(path), os.stat, self.url(path))
        except Missing:
            return False
        return True

    def writer(self, path: str) -> LocalWriter:
        return LocalWriter(self, path)

    def create(self, path: str, data: bytes) -> None:
        hidden = self._hidden(path, data)
        try:
            self.disk.link(hidden, self.url(path))
        except FileExistsError:
            raise Exists(path) from None
        except OSError as error:
            raise failure(error, self.url(path)) from error
        finally:
            self._forget(hidden)
        told(self.url(path), self.disk.sync_dir, os.path.dirname(self.url(path)))

    def replace(self, path: str, data: bytes) -> None:
        hidden = self._hidden(path, data)
        try:
            told(self.url(path), self.disk.rename, hidden, self.url(path))
        except BaseException:
            self._forget(hidden)
            raise
        told(self.url(path), self.disk.sync_dir, os.path.dirname(self.url(path)))

    def delete(self, *paths: str) -> None:
        for full in map(self.url, paths):
            with suppress(Missing):
                told(full, self.disk.unlink, full)
        for folder in sorted({os.path.dirname(self.url(path)) for path in paths}):
            with suppress(Missing):  # the folder is gone as well
                told(folder, self.disk.sync_dir, folder)
                self._prune(folder)

    def settle(self, folder: str) -> None:
        full = self.url(folder)
        if os.path.isdir(full):
            told(full, self._settle, full)
            told(full, self.disk.sync_dir, full)

    def open_new(self, full: str) -> int:
        """Open a new file in a folder that is there for good."""
        for _ in range(OPEN_TRIES):
            try:
                self._settle(os.path.dirname(full))
                return self.disk.open_new(full)
            except FileNotFoundError:  # another process found the folder empty and removed it
                continue
            except OSError as error:
                raise failure(error, full) from error
        raise StorageError(f"{full}: its folder keeps vanishing; find out who removes it, then try again")

    def _settle(self, folder: str) -> None:
        """Create a folder and those above it, and sync their names whoever created them, up to the crawl's own."""
        if folder in self._settled and os.path.isdir(folder):
            return
        above = os.path.dirname(folder)
        if folder.startswith(self.root + os.sep) or not os.path.isdir(above):
            self._settle(above)
        self.disk.make_dir(folder)
        try:
            self.disk.sync_dir(above)
        except PermissionError:
            if above.startswith(self.root):  # else it may be closed to us, who were only given the crawl's folder
                raise
        self._settled.add(folder)

    def _prune(self, folder: str) -> None:
        """Remove a folder and those above it as far as they are empty."""
        while folder.startswith(self.root + os.sep):
            try:
                self.disk.remove_dir(folder)
            except OSError as error:
                if error.errno not in NOT_EMPTY:
                    raise failure(error, folder) from error
                return
            folder = os.path.dirname(folder)

    def _hidden(self, path: str, data: bytes) -> str:
        """A synced file with a name nobody reads, in the folder where it will be named."""
        hidden = os.path.join(os.path.dirname(self.url(path)), f"{HIDDEN}{uuid.uuid4().hex}")
        fd = self.open_new(hidden)
        try:
            told(hidden, self.disk.write, fd, data)
            told(hidden, self.disk.sync, fd)
        except BaseException:
            self._forget(hidden)
            raise
        finally:
            os.close(fd)
        return hidden

    def _forget(self, hidden: str) -> None:
        """Remove a hidden file if it is still there; failing to is harmless, as collection will."""
        try:
            self.disk.unlink(hidden)
        except OSError:
            return


def _raise_unless_gone(error: OSError) -> None:
    """A folder that is not there holds no files; one that cannot be read is an error."""
    if not isinstance(error, FileNotFoundError):
        raise failure(error, str(error.filename)) from error


class LocalWriter:
    """A new file, written in pieces, synced on close. Its name is unique, so nobody reads it before a manifest names it."""

    def __init__(self, files: LocalFiles, path: str) -> None:
        self.files, self.path, self.full = files, path, files.url(path)
        self.closed = self.dropped = False
        self._fd = files.open_new(self.full)

    def write(self, data: bytes, /) -> int:
        if self.closed:  # the descriptor may be another file's by now
            raise ValueError(f"{self.full}: written after it was closed")
        try:
            told(self.full, self.files.disk.write, self._fd, data)
        except BaseException:
            self.abort()  # nobody may close a file of which a piece is missing
            raise
        return len(data)

    def close(self) -> None:
        if self.dropped:
            raise ValueError(f"{self.full}: closed after it was dropped")
        if self.closed:
            return
        told(self.full, self.files.disk.sync, self._fd)
        self._release()
        told(self.full, self.files.disk.sync_dir, os.path.dirname(self.full))

    def abort(self) -> None:
        if not self.closed:
            self.dropped = True
            self._release()
            self.files._forget(self.full)

    def _release(self) -> None:
        self.closed = True
        os.close(self._fd)
