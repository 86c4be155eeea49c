"""Listeners that nobody should reach: addresses → who connected all the same.

There is no thread: the kernel completes connections and keeps them, and whoever asks for them accepts what there is. So none is missed between
the connect and the question, and a client that did connect waits for an answer that never comes.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from tests.hostile.sockets import listen


class Caught(NamedTuple):
    """A connection that should not have been."""

    address: str
    port: int
    client: str
    client_port: int


class Decoys:
    """Listening sockets, and what they caught."""

    def __init__(self, listeners: list[socket.socket], stack: ExitStack) -> None:
        self.listeners, self.stack = listeners, stack
        self.port = int(listeners[0].getsockname()[1])
        self.caught: list[Caught] = []

    @property
    def connections(self) -> list[Caught]:
        """Every connection up to now."""
        for listener in self.listeners:
            while True:
                try:
                    accepted, client = listener.accept()
                except BlockingIOError:
                    break
                self.stack.enter_context(accepted)
                self.caught.append(Caught(*accepted.getsockname()[:2], *client[:2]))
        return list(self.caught)


@contextmanager
def decoys(addresses: Sequence[str] = ("127.0.0.1", "::1"), port: int = 0) -> Iterator[Decoys]:
    """Listen at the same port of all the addresses; 0 takes a free one."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(each) for each in listen(addresses, port)]
        yield Decoys(listeners, stack)
