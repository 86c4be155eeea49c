"""What is to be asked of whom: a page of the list, the target of a redirect, or a robots.txt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossamer.stages.fetch.origins import Origin
    from gossamer.stages.fetch.politeness import Queue


class Visit:
    """One URL on its way through a round."""

    __slots__ = (
        "address", "chain", "conditional", "origin", "queue", "robots_for", "robots_line", "row", "started", "tls", "url",
    )  # fmt: skip

    def __init__(self, url: str, origin: Origin, queue: Queue, row: int = -1) -> None:
        self.url = url
        self.origin = origin
        self.queue = queue
        self.row = row  # of the list; -1: it came up on the way
        self.chain: tuple[str, ...] = ()  # the URLs that redirected here
        self.robots_for: Origin | None = None  # this is a robots.txt, for that origin
        self.robots_line: str | None = None
        self.conditional = False
        self.address: str | None = None
        self.started = 0.0  # time of day
        self.tls: str | None = None  # what was wrong with the certificate

    @property
    def via(self) -> str | None:
        """The URL that redirected here."""
        return self.chain[-1] if self.chain else None
