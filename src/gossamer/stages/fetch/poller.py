"""One epoll for everything a fetching process waits for: sockets of curl and of DNS, and its own alarm."""

from __future__ import annotations

import select
from collections.abc import Callable
from contextlib import suppress

READ, WRITE, ERROR = select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR
Handler = Callable[[int, int], None]  # descriptor, events
MOST_EVENTS = 1024


class Poller:
    """Descriptors and who is told about them."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}

    def watch(self, fd: int, events: int, handler: Handler) -> None:
        """Tell `handler` of events on a descriptor; no events: forget it."""
        if not events:
            if self._handlers.pop(fd, None) is not None:
                with suppress(OSError):  # closed already, which takes it out as well
                    self._epoll.unregister(fd)
            return
        known = fd in self._handlers
        self._handlers[fd] = handler
        try:
            if known:
                self._epoll.modify(fd, events)
            else:
                self._epoll.register(fd, events)
        except FileNotFoundError:  # another socket has the number of one that was closed
            self._epoll.register(fd, events)
        except FileExistsError:
            self._epoll.modify(fd, events)

    def wait(self, seconds: float) -> None:
        """Wait for events and hand them out."""
        handlers = self._handlers
        for fd, events in self._epoll.poll(max(seconds, 0.0), MOST_EVENTS):
            handler = handlers.get(fd)
            if handler is not None:  # one before may have closed it
                handler(fd, events)

    def close(self) -> None:
        """End."""
        self._epoll.close()
