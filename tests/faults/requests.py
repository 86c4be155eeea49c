"""Any file system, failing at its n-th request: before the request is carried out, or after, when the answer is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from gossamer.errors import StorageError
from gossamer.storage.files import Files, Writer
from tests.faults.disk import Killed

REQUEST_KINDS = {
    "killed before": "the process dies before the request is carried out",
    "killed after": "the process dies before it hears the answer",
    "refused": "the request fails",
    "unanswered": "the request is carried out, but its answer is an error",
}
DEADLY_REQUESTS = ("killed before", "killed after")


class FaultyFiles:
    """Counts requests and lets the n-th of them fail."""

    def __init__(self, files: Files, kind: str | None = None, at: int = 0) -> None:
        self.files, self.kind, self.at, self.root = files, kind, at, files.root
        self.trace: list[str] = []
        self.fired = self.dead = False

    def url(self, path: str) -> str:
        return self.files.url(path)

    def read(self, path: str) -> bytes:
        return self.step(f"read {path}", lambda: self.files.read(path))

    def open(self, path: str) -> BinaryIO:
        return self.step(f"open {path}", lambda: self.files.open(path))

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        return iter(self.step(f"list {prefix}", lambda: [*self.files.list(prefix)]))

    def ages(self, prefix: str) -> dict[str, float]:
        return self.step(f"ages {prefix}", lambda: self.files.ages(prefix))

    def exists(self, path: str) -> bool:
        return self.step(f"exists {path}", lambda: self.files.exists(path))

    def writer(self, path: str) -> FaultyWriter:
        return FaultyWriter(self, path, self.step(f"writer {path}", lambda: self.files.writer(path)))

    def create(self, path: str, data: bytes) -> None:
        self.step(f"create {path}", lambda: self.files.create(path, data))

    def replace(self, path: str, data: bytes) -> None:
        self.step(f"replace {path}", lambda: self.files.replace(path, data))

    def delete(self, *paths: str) -> None:
        self.step(f"delete {' '.join(paths)}", lambda: self.files.delete(*paths))

    def settle(self, folder: str) -> None:
        self.step(f"settle {folder}", lambda: self.files.settle(folder))

    def step(self, what: str, request: Callable[[], Any]) -> Any:
        """Carry out one request, unless it is its turn to fail."""
        if self.dead:
            raise Killed
        self.trace.append(what)
        if len(self.trace) != self.at:
            return request()
        self.fired = True
        if self.kind in ("killed after", "unanswered"):
            request()
        if self.kind in DEADLY_REQUESTS:
            self.dead = True
            raise Killed
        raise StorageError(f"{what}: 503 Slow Down: run the same command again")


class FaultyWriter:
    """A file being written; its bytes may travel at any time, its name appears when it is closed."""

    def __init__(self, files: FaultyFiles, path: str, writer: Writer) -> None:
        self.files, self.path, self.writer = files, path, writer

    def write(self, data: bytes, /) -> int:
        if self.files.dead:
            raise Killed
        return self.writer.write(data)

    def close(self) -> None:
        self.files.step(f"close {self.path}", self.writer.close)

    def abort(self) -> None:
        self.writer.abort()
