"""Which connections are open, to whom; idle ones are closed where another one would be too many.

curl keeps connections for later and opens new ones as it sees fit, but only its own limits: of a host and port. Ours are
of a queue (whose URLs may be of several schemes and ports) and of an address.

curl closes its sockets itself and does not say so: pycurl cannot call us for a socket whose handle is at rest. So we look
whether a descriptor is still the socket it was, by its inode.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress


class Connection:
    """An open socket of curl."""

    __slots__ = ("address", "fd", "inode", "origin", "queue")

    def __init__(self, fd: int, queue: str, origin: str, address: str) -> None:
        self.fd, self.queue, self.origin, self.address = fd, queue, origin, address
        self.inode = _inode(fd)

    @property
    def alive(self) -> bool:
        """Whether curl has it still."""
        return self.inode != 0 and _inode(self.fd) == self.inode


def _inode(fd: int) -> int:
    """What a descriptor stands for; 0: nothing."""
    try:
        return os.fstat(fd).st_ino
    except OSError:
        return 0


class Connections:
    """All open sockets of a process."""

    def __init__(self, per_address: int = 0) -> None:
        self._per_address = per_address
        self._open: dict[int, Connection] = {}
        self._by_queue: dict[str, list[Connection]] = {}
        self._by_address: dict[str, list[Connection]] = {}
        self.busy: dict[str, int] = {}  # queue → requests under way

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, fd: int, queue: str, origin: str, address: str) -> None:
        """Curl has made a socket."""
        before = self._open.pop(fd, None)  # closed since, as its number is used again
        if before is not None:
            self._forget(before)
        connection = Connection(fd, queue, origin, address)
        self._open[fd] = connection
        self._by_queue.setdefault(queue, []).append(connection)
        self._by_address.setdefault(address, []).append(connection)

    def begin(self, queue: str, origin: str, address: str | None) -> None:
        """A request of a queue begins: close what would be one connection too many."""
        busy = self.busy.get(queue, 0)
        self.busy[queue] = busy + 1
        own = self._living(self._by_queue, queue)
        if own and not busy:
            for other in [c for c in own if c.origin != origin]:
                self._shut(other)
        if not self._per_address or address is None or any(c.origin == origin for c in own):
            return
        if len(self._by_address.get(address, ())) < self._per_address:
            return
        there = self._living(self._by_address, address)
        if len(there) >= self._per_address:
            idle = next((c for c in there if not self.busy.get(c.queue)), None)
            if idle is not None:
                self._shut(idle)

    def end(self, queue: str) -> None:
        """A request of a queue has ended."""
        busy = self.busy.get(queue, 0) - 1
        if busy > 0:
            self.busy[queue] = busy
        else:
            self.busy.pop(queue, None)

    def _living(self, table: dict[str, list[Connection]], key: str) -> list[Connection]:
        """Connections of a queue or to an address, without those that curl has closed."""
        there = table.get(key)
        if not there:
            return []
        for gone in [c for c in there if not c.alive]:
            if self._open.get(gone.fd) is gone:
                del self._open[gone.fd]
            self._forget(gone)
        return list(table.get(key, ()))

    def _shut(self, connection: Connection) -> None:
        """End an idle connection; curl finds out when it looks at it next, and closes its socket."""
        with suppress(OSError):
            handle = socket.socket(fileno=os.dup(connection.fd))
            with handle:
                handle.shutdown(socket.SHUT_RDWR)
        self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        for table, key in ((self._by_queue, connection.queue), (self._by_address, connection.address)):
            there = table.get(key)
            if there and connection in there:
                there.remove(connection)
                if not there:
                    del table[key]
