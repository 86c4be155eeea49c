"""Heads of HTTP responses as they are stored."""

from __future__ import annotations

import pytest

from gossamer.storage import warc_heads
from gossamer.storage.warc_heads import readable, stored_head
from tests.storage.test_warc import PAGE, answer, stored

N = b"%d" % len(PAGE)
END = b"Content-Length: " + N + b"\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "head",
    [
        OK + END,
        OK + b"\r\n",
        OK + b"content-length:" + N + b" \t\r\nA:\r\n\r\n",
        b"HTTP/1.0 200 \r\nX-Transfer-Encoding: chunked\r\nX-Content-Length: 3\r\n\r\n",
        b"HTTP/1.1 404 Tr\xc3\xa8s \xe9\r\nContent-Encoding: gzip\r\nServer: caf\xe9 \xff\x85\ttab\r\nServer: again\r\n\r\n",
        OK + b"Server: about Transfer-Encoding: chunked and Content-Length: 3\r\n\r\n",
    ],
)
def test_a_head_that_fits_is_left_alone(head):
    assert stored(head) == head


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (b"Transfer-Encoding: chunked\r\nA: b\r\n\r\n", b"X-Crawler-Transfer-Encoding: chunked\r\nA: b\r\n" + END),
        (b"A: b\r\nTRANSFER-encoding:gzip, chunked\r\n\r\n", b"A: b\r\nX-Crawler-TRANSFER-encoding:gzip, chunked\r\n" + END),
        (
            b"transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n" + END,
            b"X-Crawler-transfer-encoding: gzip\r\nX-Crawler-transfer-encoding: chunked\r\n" + END,
        ),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
         b"X-Crawler-Transfer-Encoding: chunked\r\nX-Crawler-Content-Length: 3\r\n" + END),
        (b"Content-Length: 3\r\n\r\n", b"X-Crawler-Content-Length: 3\r\n" + END),
        (b"Content-Length: " + N + b"\r\n" + END, b"X-Crawler-Content-Length: " + N + b"\r\nX-Crawler-" + END[:-2] + END),
        (b"Content-Length: " + N + b", " + N + b"\r\n\r\n", b"X-Crawler-Content-Length: " + N + b", " + N + b"\r\n" + END),
        (b"Content-Length: +" + N + b"\r\n\r\n", b"X-Crawler-Content-Length: +" + N + b"\r\n" + END),
        (b"Content-Length: -1\r\n\r\n", b"X-Crawler-Content-Length: -1\r\n" + END),
        (b"Content-Length:\r\n\r\n", b"X-Crawler-Content-Length:\r\n" + END),
        (b"Content-Length : 3\r\nTransfer-Encoding\t: chunked\r\n\r\n",
         b"X-Crawler-Content-Length: 3\r\nX-Crawler-Transfer-Encoding: chunked\r\n" + END),
        (b" Content-Length: 3\r\n\r\n", b"X-Crawler-Content-Length: 3\r\n" + END),
        (b"Content-Length:\r\n " + N + b"\r\n\r\n", b"Content-Length: " + N + b"\r\n\r\n"),
    ],
)  # fmt: skip
def test_lengths_are_made_to_fit_the_body(lines, expected):
    assert stored(OK + lines) == OK + expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"HTTP/2 200 ", b"HTTP/1.1 200 OK"),
        (b"HTTP/2 200", b"HTTP/1.1 200 OK"),
        (b"HTTP/3 404 ", b"HTTP/1.1 404 Not Found"),
        (b"HTTP/2 799 ", b"HTTP/1.1 799 "),
        (b"HTTP/2.0 200 Fine", b"HTTP/1.1 200 Fine"),
        (b"HTTP/1.0 200", b"HTTP/1.0 200 OK"),
        (b"HTTP/1.1  200\tVery  well", b"HTTP/1.1 200 Very  well"),
        (b"http/1.1 200 ok", b"HTTP/1.1 200 ok"),
        (b"HTTP/1.1 200 O\0K\r", b"HTTP/1.1 200 O K "),
        (b"ICY 200 OK", b"HTTP/1.1 200 OK\r\nX-Crawler-Status-Line: ICY 200 OK"),
        (b"404 Gone fishing", b"HTTP/1.1 404 Not Found\r\nX-Crawler-Status-Line: 404 Gone fishing"),
        (b"HTTP/1.1 2000 OK", b"HTTP/1.1 599 \r\nX-Crawler-Status-Line: HTTP/1.1 2000 OK"),
        (b"HTTP/1.1 000 OK", b"HTTP/1.1 599 \r\nX-Crawler-Status-Line: HTTP/1.1 000 OK"),
        (b"HTTP/1.1", b"HTTP/1.1 599 \r\nX-Crawler-Status-Line: HTTP/1.1"),
        (b"<html>", b"HTTP/1.1 599 \r\nX-Crawler-Status-Line: <html>"),
        (b"", b"HTTP/1.1 599 \r\nX-Crawler-Status-Line: "),
    ],
)
def test_status_lines_are_made_readable(line, expected):
    assert stored(line + b"\r\nA: b\r\n\r\n").removesuffix(b"\r\nA: b\r\n\r\n").rstrip() == expected.rstrip()


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"HTTP/1.1 200 OK\nA: b\nC: d\n\n", OK + b"A: b\r\nC: d\r\n\r\n"),
        (OK + b"A: b\r\n  c\r\n\td\r\nE: f\r\n\r\n", OK + b"A: b c d\r\nE: f\r\n\r\n"),
        (OK + b"A: b\r\n   \r\nE: f\r\n\r\n", OK + b"A: b\r\nE: f\r\n\r\n"),
        (OK + b"A: b\0c\x0b\x1c\x7f\r\n\r\n", OK + b"A: b c\r\n\r\n"),
        (OK + b"A: b\x7fc\r\n\r\n", OK + b"A: b c\r\n\r\n"),
        (OK + b"A: b\rContent-Length: 3\r\n\r\n", OK + b"A: b Content-Length: 3\r\n\r\n"),
        (OK + b"A: b\r\r\nC: d\r\n\r\n", OK + b"A: b\r\nC: d\r\n\r\n"),
        (OK + b"nonsense\r\nA: b\r\n\r\n", OK + b"X-Crawler-Line: nonsense\r\nA: b\r\n\r\n"),
        (OK + b": empty\r\nA b: c\r\nContent-Length\xa0: 3\r\n\xa0\r\n\r\n",
         OK + b"X-Crawler-Line: : empty\r\nX-Crawler-Line: A b: c\r\nX-Crawler-Line: Content-Length\xa0: 3\r\n"
              b"X-Crawler-Line: \xa0\r\n\r\n"),
        (OK + b"A: b", OK + b"A: b\r\n\r\n"),
        (OK + b"A: b\r\n", OK + b"A: b\r\n\r\n"),
        (OK, OK + b"\r\n"),
        (OK + b"A: b\r\n\r\nContent-Length: 3\r\nC: d\r\n\r\n",
         OK + b"A: b\r\nX-Crawler-Trailer: Content-Length: 3\r\nX-Crawler-Trailer: C: d\r\n\r\n"),
        (b"HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\n", OK + b"A: b\r\n\r\n"),
        (b"HTTP/2 103 \r\nlink: x\r\n\r\nHTTP/2 200 \r\na: b\r\n\r\n", OK + b"a: b\r\n\r\n"),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\n", OK + b"\r\n"),
    ],
)  # fmt: skip
def test_heads_no_parser_agrees_on_are_mended(head, expected):
    assert stored(head) == expected
    assert readable(expected) == expected


@pytest.mark.parametrize(
    "lines",
    [
        b"A: " + b"x" * 100_000 + b"\r\nB: c\r\n",
        b"A: b\r\n" * 20_000,
        b"content-length:\r\n" * 5_000,
        b"transfer-encoding:\r\n" * 5_000,
        b"x" * 100_000 + b"\r\n",
        b"x\n" * 9_000,
        b"\r\n" + b"x\r\n" * 6_000,
    ],
)
@pytest.mark.parametrize("status", [b"HTTP/1.1 200 ", b"HTTP/2 200 ", b"ICY 200 ", b""])
@pytest.mark.parametrize("reason", [0, 100, 50_000])
def test_a_head_too_long_for_readers_is_cut(status, reason, lines):
    head = status + b"x" * reason + b"\r\n" + lines + b"\r\n"
    record = answer(head=head)
    assert record.body == PAGE
    assert len(record.block) - len(PAGE) < 32_768
    assert b"\r\nX-Crawler-Head-Length: %d\r\n" % len(head) in record.block


@pytest.mark.parametrize("status", [b"HTTP/1.1 200 ", b"HTTP/2 200 ", b"ICY 200 ", b""])
@pytest.mark.parametrize("line", [b"content-length:\r\n", b"a:\r\n", b"x\r\n"])
def test_no_head_grows_too_long_for_readers(status, line):
    for share in (0, 20, 10_000, warc_heads.LONGEST - 20):
        head = status + b"x" * share + b"\r\n"
        head += line * ((warc_heads.LONGEST - len(head) - 2) // len(line)) + b"\r\n"
        assert warc_heads.LONGEST - len(line) < len(head) <= warc_heads.LONGEST
        record = answer(head=head)
        assert record.body == PAGE
        assert len(record.block) - len(PAGE) < 32_768


def test_a_long_head_of_nothing_is_not_cut():
    assert stored(OK + b" " * 40_000 + b"\r\nA: b\r\n" + b"\n" * 40_000) == OK + b"A: b\r\n\r\n"


def test_a_head_with_one_long_line_keeps_the_others():
    head = OK + b"A: " + b"x" * 100_000 + b"\r\nB: c\r\nContent-Length: 3\r\n\r\n"
    shortened = OK + b"A: " + b"x" * (warc_heads.LONGEST_LINE - 5) + b"\r\nB: c\r\nX-Crawler-Content-Length: 3\r\n"
    assert stored(head) == shortened + b"X-Crawler-Head-Length: %d\r\n" % len(head) + END


def test_a_head_as_long_as_may_be_is_whole():
    head = OK + b"A: " + b"x" * (warc_heads.LONGEST - len(OK) - 7) + b"\r\n\r\n"
    assert len(head) == warc_heads.LONGEST
    assert stored(head) == head


def test_no_body_is_a_length_of_none():
    assert stored_head(OK + b"Content-Length: 0\r\n\r\n", 0) == OK + b"Content-Length: 0\r\n\r\n"
    assert stored(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"") == (
        OK + b"X-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"
    )
