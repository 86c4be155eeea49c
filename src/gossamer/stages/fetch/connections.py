"""Which connections are open, to whom; idle ones are closed where another one would be too many.

curl keeps connections for later and opens new ones as it sees fit, but only its own limits: of a host and port. Ours are
of a queue (whose URLs may be of several schemes and ports) and of an address.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress


class Connection:
    """An open socket of curl."""

    __slots__ = ("address", "fd", "origin", "queue")

    def __init__(self, fd: int, queue: str, origin: str, address: str) -> None:
        self.fd, self.queue, self.origin, self.address = fd, queue, origin, address


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
        self.closed_already(fd)
        connection = Connection(fd, queue, origin, address)
        self._open[fd] = connection
        self._by_queue.setdefault(queue, []).append(connection)
        self._by_address.setdefault(address, []).append(connection)

    def closed(self, fd: int) -> int:
        """Curl is done with a socket; closing it is left to us."""
        self.closed_already(fd)
        with suppress(OSError):
            os.close(fd)
        return 0

    def closed_already(self, fd: int) -> None:
        """Forget a socket."""
        connection = self._open.pop(fd, None)
        if connection is not None:
            self._forget(connection)

    def close(self) -> None:
        """Close what curl has left open."""
        for fd in list(self._open):
            self.closed(fd)

    def begin(self, queue: str, origin: str, address: str | None) -> None:
        """A request of a queue begins: close what would be one connection too many."""
        busy = self.busy.get(queue, 0)
        self.busy[queue] = busy + 1
        own = self._by_queue.get(queue, ())
        if own and not busy:
            for other in [c for c in own if c.origin != origin]:
                self._shut(other)
        if not self._per_address or address is None or any(c.origin == origin for c in own):
            return
        there = self._by_address.get(address, ())
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
