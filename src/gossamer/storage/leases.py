"""Leases: who is running which stage now. A lease ends when it is released or when its holder dies.

On a disk it is a locked file, which the operating system frees with the process. In a bucket it is a numbered object
that its holder keeps fresh; a stale one (by the server's clock), or one whose process on this machine is gone, is
followed by the next number, and a holder that was followed may no longer publish.

A collection holds a lease too. Whoever takes another lease waits until it has ended: so a job sees the crawl before a
collection, which then knows of the job, or after it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from functools import cache
from typing import Any, Protocol

from gossamer.clock import Clock, format_time
from gossamer.errors import ConflictError, GossamerError, storage_error
from gossamer.storage.files import Exists, Files, Missing, read_json
from gossamer.storage.local import LocalFiles

FOLDER = "leases"
COLLECT = "collect"
TTL_S = 30.0  # a bucket lease that was not refreshed for so long is free
TRIES = 10  # of a local lock; a reader of leases may hold it for an instant
PAUSE_S = 0.2  # between two looks at a running collection
PATIENCE_S = 120.0  # with a running collection
Info = dict[str, Any]


class Lease(Protocol):
    """A stage's right to run."""

    def tell(self, info: Info) -> None:
        """Add to what others can see of the holder; a job tells its `run` and the `snapshot` it reads."""

    def check(self) -> None:
        """Raise if the lease was lost."""

    def release(self) -> None:
        """Give it back."""


def acquire(files: Files, name: str, info: Info, *, ttl: float = TTL_S) -> Lease:
    """Take the lease called `name`, or say who has it; `ttl` counts in buckets only."""
    if "/" in name:
        raise ValueError(f"{name}: a lease's name is one word")
    holder = {"name": name, "pid": os.getpid(), "host": socket.gethostname(), "machine": machine(), "ttl": ttl}
    holder |= {"since": format_time(Clock.system().now), "id": uuid.uuid4().hex} | info
    lease: Lease
    if isinstance(files, LocalFiles):
        lease = LocalLease(files, name, holder)
    else:
        lease = ObjectLease(files, name, holder)
    if name != COLLECT:
        try:
            _stand_aside(files, lease)
        except BaseException:
            lease.release()
            raise
    return lease


def live(files: Files) -> list[Info]:
    """The holders of all leases that are held now."""
    if isinstance(files, LocalFiles):
        names = [os.path.basename(path).removesuffix(".lock") for path, _ in files.list(FOLDER)]
    else:
        names = list(_newest(files, FOLDER))
    return [holder for name in sorted(names) if (holder := holder_of(files, name)) is not None]


def holder_of(files: Files, name: str) -> Info | None:
    """The holder of one lease, if it is held now."""
    if isinstance(files, LocalFiles):
        return _locked(files, name)
    _, doc, age = _look(files, name)
    return doc if doc is not None and _alive(doc, age) else None


def fence(files: Files) -> None:
    """Take the leases of the dead away for good, should one of them only have slept."""
    if isinstance(files, LocalFiles):
        return  # the lock of a sleeping process holds
    for name in _newest(files, FOLDER):
        number, doc, age = _look(files, name)
        if doc is not None and not doc["released"] and not _alive(doc, age):
            with suppress(Exists):
                files.create(_object(name, number + 1), json.dumps(doc | {"released": True}).encode())


def held_by(name: str, holder: Info) -> ConflictError:
    """The error that names the holder of a lease."""
    who = f"process {holder.get('pid', '?')} on {holder.get('host', '?')} since {holder.get('since', '?')}"
    return ConflictError(f"{name} is already running ({who}); wait for it or stop that process, then try again")


def _stand_aside(files: Files, lease: Lease) -> None:
    """Wait for the end of a running collection."""
    deadline = time.monotonic() + PATIENCE_S
    while collection := holder_of(files, COLLECT):
        if time.monotonic() > deadline:
            raise held_by(COLLECT, collection)
        lease.tell({"waiting": True})
        time.sleep(PAUSE_S)
        lease.tell({"waiting": False})  # before the next look: the next collection must know that we may begin


@cache
def machine() -> str:
    """Where process ids mean the same: this boot of this kernel, in this container."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            return f"{boot.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


class LocalLease:
    """A locked file below `leases/`; it is removed while locked, so a lock on a removed file is not one."""

    def __init__(self, files: LocalFiles, name: str, holder: Info) -> None:
        self.name = name
        self.path = files.url(f"{FOLDER}/{name}.lock")
        self._info: Info = {}
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            self._fd = self._lock()
        except OSError as error:
            raise storage_error(error, self.path) from error
        try:
            self.tell(holder)
        except BaseException:
            self.release()
            raise

    def tell(self, info: Info) -> None:
        self._info |= info
        document = json.dumps(self._info).encode()
        try:
            os.pwrite(self._fd, document, 0)
            os.ftruncate(self._fd, len(document))
        except OSError as error:
            if error.errno == errno.ENOSPC and self.name == COLLECT:
                return  # who frees space needs none: the lock is what counts
            raise storage_error(error, self.path) from error

    def check(self) -> None:
        """A lock is ours as long as we live."""

    def release(self) -> None:
        with suppress(OSError):  # an unlocked file that stays behind is nobody's lease
            os.unlink(self.path)
        os.close(self._fd)

    def _lock(self) -> int:
        for _ in range(TRIES):
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                if _flock(fd, fcntl.LOCK_EX) and _same_file(fd, self.path):
                    return os.dup(fd)
                holder = _read(fd)
            finally:
                os.close(fd)
            time.sleep(0.02)
        raise held_by(self.name, holder)


def _flock(fd: int, kind: int) -> bool:
    """Lock a file unless somebody else has it locked."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
            raise
        return False
    return True


def _same_file(fd: int, path: str) -> bool:
    """Whether the descriptor is still the file of that name."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    ours = os.fstat(fd)
    return (ours.st_ino, ours.st_dev) == (there.st_ino, there.st_dev)


def _read(fd: int) -> Info:
    """What the holder wrote into its lock file."""
    try:
        holder: Info = json.loads(os.pread(fd, 65536, 0))
    except ValueError:  # locked an instant ago, or being written
        return {}
    return holder


def _locked(files: LocalFiles, name: str) -> Info | None:
    """The holder of a lock file, if somebody has it locked."""
    path = files.url(f"{FOLDER}/{name}.lock")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, path) from error
    try:
        return None if _flock(fd, fcntl.LOCK_SH) else {"name": name} | _read(fd)
    finally:
        os.close(fd)


class ObjectLease:
    """The highest numbered object below `leases/<name>/`, kept fresh by a thread."""

    def __init__(self, files: Files, name: str, holder: Info) -> None:
        self.files, self.name, self.holder = files, name, holder
        before, doc, age = _look(files, name)
        if doc is not None and _alive(doc, age):
            raise held_by(name, doc)
        self.number = before + 1
        try:
            files.create(_object(name, self.number), self._document())
        except Exists:
            raise held_by(name, _look(files, name)[1] or {}) from None
        files.delete(*(_object(name, number) for number in range(max(1, before - 2), before + 1)))
        self._writing = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name=f"lease-{name}")
        self._thread.start()

    def tell(self, info: Info) -> None:
        with self._writing:
            self.holder = self.holder | info
            self.files.replace(_object(self.name, self.number), self._document())

    def check(self) -> None:
        if _newest(self.files, f"{FOLDER}/{self.name}").get(self.name, (0, 0.0))[0] != self.number:
            raise held_by(self.name, _look(self.files, self.name)[1] or {})

    def release(self) -> None:
        self._stop.set()
        self._thread.join()
        with suppress(GossamerError):  # what cannot be given back runs out by itself
            self.files.replace(_object(self.name, self.number), self._document(released=True))

    def _document(self, *, released: bool = False) -> bytes:
        return json.dumps(self.holder | {"released": released}).encode()

    def _beat(self) -> None:
        while not self._stop.wait(self.holder["ttl"] / 3):
            with suppress(GossamerError):  # a failed beat is tried again; if the lease was lost, `check` says so
                self.tell({})


def _object(name: str, number: int) -> str:
    return f"{FOLDER}/{name}/{number:08d}.json"


def _newest(files: Files, prefix: str) -> dict[str, tuple[int, float]]:
    """Number and age of the latest object of each lease."""
    newest = {}
    for path, age in sorted(files.ages(prefix).items()):
        _, name, number = path.split("/")
        newest[name] = int(number.removesuffix(".json")), age
    return newest


def _look(files: Files, name: str) -> tuple[int, Info | None, float]:
    """Number, document and age of the latest object of one lease."""
    while True:
        number, age = _newest(files, f"{FOLDER}/{name}").get(name, (0, 0.0))
        if not number:
            return 0, None, 0.0
        try:
            return number, read_json(files, _object(name, number)), age
        except Missing:  # followed by a new holder since we looked
            continue


def _alive(doc: Info, age: float) -> bool:
    """Whether the holder of a bucket lease still works."""
    if doc["released"] or age > doc["ttl"]:
        return False
    if doc["machine"] != machine():
        return True
    try:
        os.kill(doc["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
