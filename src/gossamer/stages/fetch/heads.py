"""Heads of requests and answers: which lines we send, and which of those that came are the answer's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ENCODINGS = "gzip, deflate, br"
PROTOCOLS = {b"HTTP/1.0": "http/1.0", b"HTTP/1.1": "http/1.1", b"HTTP/2": "h2", b"HTTP/3": "h3"}
SWITCHING = 101


def base_headers(agent: Any) -> list[str]:
    """The headers of every request."""
    contact = f" (+{agent.contact})" if agent.contact else ""
    headers = [f"User-Agent: {agent.name}{contact}", f"Accept: {ACCEPT}", f"Accept-Encoding: {ENCODINGS}"]
    if "@" in agent.contact:
        headers.append(f"From: {agent.contact}")
    return headers


def all_headers(base: Sequence[str], own: Sequence[str]) -> list[str]:
    """The headers of one request: its own stand in the place of those that every request has."""
    if not own:
        return list(base)
    names = {line.partition(":")[0].lower() for line in own}
    return [*(line for line in base if line.partition(":")[0].lower() not in names), *own]


def last_head(lines: list[bytes]) -> list[bytes]:
    """Of all header lines those of the answer itself: without what 1xx answers and trailers had."""
    if lines.count(b"\r\n") == 1 and lines[-1] == b"\r\n":  # as nearly all are
        return lines[:]
    start = 0
    for at in range(len(lines) - 1, 0, -1):  # from the end: there may be thousands of 1xx answers
        if lines[at][:5] == b"HTTP/" and not lines[at - 1].strip():
            start = at
            break
    for at in range(start, len(lines)):
        if not lines[at].strip():
            return lines[start : at + 1]
    return lines[start:]


def status_of(lines: list[bytes]) -> tuple[int, str]:
    """Code and protocol; 0 if there is no status line."""
    words = lines[0].split(None, 2) if lines else []
    if len(words) < 2 or not words[0].startswith(b"HTTP/"):
        return 0, ""
    try:
        code = int(words[1])
    except ValueError:
        return 0, ""
    final = 200 <= code <= 999 or code == SWITCHING  # other 1xx come before the answer
    return (code if final else 0), PROTOCOLS.get(words[0], "http/1.1")


def wanted_type(lines: list[bytes], types: Sequence[str]) -> bool:
    """Whether an answer is of one of these media types, or says nothing of its type."""
    for line in last_head(lines):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-type":
            found = value.partition(b";")[0].strip().lower().decode("latin-1")
            return not found or any(
                found == kind or (kind.endswith("/*") and found.startswith(kind[:-1])) for kind in types
            )
    return True
