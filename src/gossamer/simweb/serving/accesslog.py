"""The access log: one tab-separated line per request, and one per closed connection, with all that politeness is judged by.

Times are the server's own, in seconds since 1970: when the request had arrived and when the last byte of its answer was handed over. `allowed`
is what robots.txt says about the path to everybody, `delay` the crawl-delay it asks for, `wait` the Retry-After that was sent.
"""

from __future__ import annotations

from typing import IO, NamedTuple

COLUMNS = (
    "start", "end", "connection", "client", "address", "scheme", "host", "method", "target", "status", "bytes", "page", "allowed",
    "delay", "wait", "agent",
)  # fmt: skip
CLOSE = "CLOSE"  # the method of the line that ends a connection
HELD = 500  # lines kept before they are written


class Entry(NamedTuple):
    """One line."""

    start: float
    end: float
    connection: int
    client: str
    address: str
    scheme: str
    host: str
    method: str
    target: str
    status: int
    bytes: int
    page: str
    allowed: bool
    delay: int
    wait: int
    agent: str


class AccessLog:
    """Writes lines, some at a time."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.lines: list[str] = []
        if file.tell() == 0:
            self.lines.append("\t".join(COLUMNS) + "\n")

    def add(self, entry: Entry) -> None:
        """Note a request."""
        start, end, *rest = entry
        texts = [str(int(value)) if isinstance(value, bool) else str(value) for value in rest]
        if not all(map(str.isprintable, texts)):
            texts = [repr(text)[1:-1] if not text.isprintable() else text for text in texts]
        self.lines.append(f"{start:.6f}\t{end:.6f}\t" + "\t".join(texts) + "\n")
        if len(self.lines) >= HELD:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        self.file.write("".join(self.lines))
        self.file.flush()
        self.lines.clear()


def read(line: str) -> Entry | None:
    """A line read back; None for the heading and for what has other columns."""
    parts = line.rstrip("\n").split("\t")
    if len(parts) != len(COLUMNS) or parts[0] == COLUMNS[0]:
        return None
    client, address, scheme, host, method, target = parts[3:9]
    start, end, connection = float(parts[0]), float(parts[1]), int(parts[2])
    status, size, page, allowed, delay, wait, agent = parts[9:]
    return Entry(
        start, end, connection, client, address, scheme, host, method, target, int(status), int(size), page, allowed == "1",
        int(delay), int(wait), agent,
    )  # fmt: skip
