"""Heads of HTTP responses as WARC records keep them: head as received and length of the body stored → head to store.

The body has lost its transfer coding and may be cut short, so the lines that say how to read it are made to fit it: those
that no longer hold are kept under `X-Crawler-` names. A head in the form of RFC 9112 passes one regular expression and is
otherwise left as it came. Any other is mended line by line, so that every reader sees the same lines, none ends the head
early, and what is not a header is still there to be read, as the value of one. Only a head too long for readers is cut.
"""

from __future__ import annotations

import re
from http import HTTPStatus

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
TEXT = rb"[\t\x20-\x7e\x80-\xff]*+"
STATUS_LINE = rb"HTTP/1\.[01] [1-9][0-9]{2} " + TEXT
HEADERS = rb"(?:%s:%s\r\n)*+\r\n" % (TOKEN, TEXT)
WELL_FORMED = re.compile(STATUS_LINE + rb"\r\n" + HEADERS)
WELL_FORMED_REST = re.compile(HEADERS)
GOOD_STATUS = re.compile(STATUS_LINE)
STATUS = re.compile(rb"HTTP/([0-9])(?:\.([0-9]))?[ \t]+([1-9][0-9]{2})(?![^ \t])[ \t]*(.*)", re.IGNORECASE)
ANY_CODE = re.compile(rb"(?<![^ \t])([1-9][0-9]{2})(?![^ \t])")
NAME = re.compile(rb"(%s)[ \t]*:" % TOKEN)
TRANSFER_ENCODING = b"\ntransfer-encoding:"
CONTENT_LENGTH = b"\ncontent-length:"
CONTROLS = bytes.maketrans(bytes([*range(9), *range(10, 32), 127]), b" " * 32)
REASONS = {b"%d" % status: status.phrase.encode() for status in HTTPStatus}
UNREADABLE = b"599"  # no code that a server means something by
LONGEST = 20_000  # bytes: fastwarc gives up on a file at a head of 32 KiB, and renaming can add three fifths
LONGEST_LINE = 4_000  # bytes of a line in a head that is longer


def stored_head(head: bytes, length: int) -> bytes:
    """The head to store before a body of this length, from which any HTTP parser reads exactly that body."""
    head = readable(head)
    low = head.lower()
    chunked, at = TRANSFER_ENCODING in low, low.find(CONTENT_LENGTH)
    if at < 0 and not chunked:  # the body ends with the record
        return head
    value = low[at + len(CONTENT_LENGTH) : low.find(b"\r", at)] if at >= 0 else b""
    fits = value.strip() == b"%d" % length and low.find(CONTENT_LENGTH, at + 1) < 0
    if chunked:
        head = renamed(head, TRANSFER_ENCODING)
    if fits:
        return head
    return b"%bContent-Length: %d\r\n\r\n" % (renamed(head, CONTENT_LENGTH)[:-2], length)


def revisit_head(head: bytes) -> bytes:
    """The head to store without a body: its lengths are those of the body sent, now or earlier."""
    return renamed(readable(head), TRANSFER_ENCODING)


def renamed(head: bytes, name: bytes) -> bytes:
    """The head with `X-Crawler-` before every header of this name, which begins with a line feed and ends in a colon."""
    low, start, parts = head.lower(), 0, []
    while (at := low.find(name, start)) >= 0:
        parts += [head[start : at + 1], b"X-Crawler-"]
        start = at + 1
    return b"".join([*parts, head[start:]])


def readable(head: bytes) -> bytes:
    """The head as HTTP/1, each line of it a header with a colon, ended by its only blank line."""
    if len(head) > LONGEST:
        return mended(head)
    if WELL_FORMED.fullmatch(head):
        return head
    end = head.find(b"\r\n") + 2
    if end > 1 and WELL_FORMED_REST.fullmatch(head, end):  # HTTP/2 and 3, mostly
        return status_lines(head[: end - 2].translate(CONTROLS)) + head[end:]
    return mended(head)


def status_lines(line: bytes) -> bytes:
    """A status line any parser takes; of one that no server should send, the original in a header after it."""
    if GOOD_STATUS.fullmatch(line):
        return line + b"\r\n"
    if match := STATUS.fullmatch(line):
        major, minor, code, reason = match.groups()
        version = b"1.0" if (major, minor) == (b"1", b"0") else b"1.1"
        return b"HTTP/%b %b %b\r\n" % (version, code, reason or REASONS.get(code, b""))
    code = match[1] if (match := ANY_CODE.search(line)) else UNREADABLE
    return b"HTTP/1.1 %b %b\r\nX-Crawler-Status-Line: %b\r\n" % (code, REASONS.get(code, b""), line)


def mended(head: bytes) -> bytes:
    """A head rebuilt from its lines; of several heads in a row (100 Continue and the like), the last."""
    lines = [line.rstrip(b"\r").translate(CONTROLS) for line in head.split(b"\n")]
    start = max((n for n, line in enumerate(lines) if n and line[:5] == b"HTTP/" and not lines[n - 1]), default=0)
    headers, trailers = unfolded(lines[start + 1 :])
    rebuilt = [header_line(line) for line in headers] + [b"X-Crawler-Trailer: %b\r\n" % line for line in trailers]
    status = lines[start].strip()
    if len(status) + sum(map(len, rebuilt)) > LONGEST:  # the names we give may have made it so
        status, rebuilt = status[:LONGEST_LINE], [*shortened(rebuilt), b"X-Crawler-Head-Length: %d\r\n" % len(head)]
    return b"".join([status_lines(status), *rebuilt, b"\r\n"])


def unfolded(lines: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Lines before and after the blank one, each joined with those folded below it."""
    parts: tuple[list[list[bytes]], list[list[bytes]]] = [], []
    part = parts[0]
    for line in lines:
        text = line.strip()
        if not line:
            part = parts[1]
        elif text and part and line[:1] in b" \t":
            part[-1].append(text)
        elif text:
            part.append([text])
    headers, trailers = ([b" ".join(line) for line in part] for part in parts)
    return headers, trailers


def shortened(lines: list[bytes]) -> list[bytes]:
    """Lines of a head too long to keep: the first ones that fit, none of them very long."""
    room, kept = LONGEST - 2 * LONGEST_LINE, []  # the status line has its own
    for line in lines:
        line = line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 2] + b"\r\n"
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    return kept


def header_line(line: bytes) -> bytes:
    """One header; a line that has no name, or one no reader would agree on, becomes the value of ours."""
    if match := NAME.match(line):
        return b"%b:%b\r\n" % (match[1], line[match.end() :])
    return b"X-Crawler-Line: %b\r\n" % line
