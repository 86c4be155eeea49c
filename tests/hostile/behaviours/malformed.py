"""Responses that are no HTTP, or a doubtful one. All are closed after, but where the lie is that they are not."""

from __future__ import annotations

from functools import partial

from tests.hostile.behaviours.base import MALFORMED, Request, Writer, behaviour, fixed, page

PAGE = page("Malformed", 2000)
SIZE = len(PAGE)
OK, KIND, END = b"HTTP/1.1 200 OK\r\n", b"Content-Type: text/html\r\n", b"\r\n"
CHUNKED = OK + KIND + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%s\r\n" % (SIZE, PAGE)
CUT = "success, truncated: disconnect; or fail"
ERROR = "fail: an error counted"
EITHER = "success or fail; an error counted, never a crash"

bad = partial(fixed, line=MALFORMED)


def said(length: bytes) -> bytes:
    """A page whose length is said in other words."""
    return OK + KIND + length + END + PAGE


RIGHT = b"Content-Length: %d\r\n" % SIZE

bad("no-status-line", expect=ERROR, does="HTTP/0.9: a page and nothing before it.", response=PAGE)
bad(
    "status-garbage",
    expect=ERROR,
    does="A first line of noise.",
    response=b"\x00\xff\xfe SSH-2.0 \x80\r\n" + KIND + END + PAGE,
)
bad("status-ssh", expect=ERROR, does="The greeting of another protocol.", response=b"SSH-2.0-OpenSSH_9.6\r\n")
bad("status-words", expect=ERROR, does="A code that is a word.", response=b"HTTP/1.1 OK fine\r\n" + RIGHT + END + PAGE)
bad("status-99", expect=ERROR, does="The code 99.", response=b"HTTP/1.1 99 Low\r\n" + RIGHT + END + PAGE)
bad("status-1000", expect=ERROR, does="The code 1000.", response=b"HTTP/1.1 1000 High\r\n" + RIGHT + END + PAGE)
bad("status-000", expect=ERROR, does="The code 000.", response=b"HTTP/1.1 000 None\r\n" + RIGHT + END + PAGE)
bad(
    "status-999",
    expect="fail with http_code 999",
    does="The code 999.",
    response=b"HTTP/1.1 999 No\r\n" + RIGHT + END + PAGE,
)
bad("status-negative", expect=ERROR, does="The code -200.", response=b"HTTP/1.1 -200 OK\r\n" + RIGHT + END + PAGE)
bad("status-bare", expect="success", does="A code without a phrase.", response=b"HTTP/1.1 200\r\n" + RIGHT + END + PAGE)
bad(
    "status-bytes",
    expect="success",
    does="A phrase that is not UTF-8.",
    response=b"HTTP/1.1 200 \xff\xfe\r\n" + RIGHT + END + PAGE,
)
bad("version-3000", expect=EITHER, does="HTTP/3000.", response=b"HTTP/3000 200 OK\r\n" + RIGHT + END + PAGE)
bad(
    "version-2",
    expect=EITHER,
    does="HTTP/2 in words on a connection of HTTP/1.1.",
    response=b"HTTP/2 200\r\n" + RIGHT + END + PAGE,
)
bad(
    "version-lower",
    expect=EITHER,
    does="http/1.1 in small letters.",
    response=b"http/1.1 200 OK\r\n" + RIGHT + END + PAGE,
)
bad("blank-first", expect=EITHER, does="Blank lines before the status line.", response=END * 3 + said(RIGHT))
bad("icy", expect=ERROR, does="An ICY radio stream.", response=b"ICY 200 OK\r\n\r\n" + PAGE)

bad("length-words", expect=EITHER, does="A Content-Length of words.", response=said(b"Content-Length: many\r\n"))
bad("length-negative", expect=EITHER, does="A negative Content-Length.", response=said(b"Content-Length: -5\r\n"))
bad(
    "length-huge",
    expect=CUT,
    does="A Content-Length of 10^30.",
    response=said(b"Content-Length: 1%s\r\n" % (b"0" * 30)),
)
bad(
    "length-2-63",
    expect=CUT,
    does="A Content-Length of 2^63.",
    response=said(b"Content-Length: 9223372036854775808\r\n"),
)
bad(
    "length-2-62",
    expect=CUT,
    does="A Content-Length of 2^62, which is a number.",
    response=said(b"Content-Length: %d\r\n" % 2**62),
)
bad("length-empty", expect=EITHER, does="An empty Content-Length.", response=said(b"Content-Length:\r\n"))
bad("length-hex", expect=EITHER, does="A Content-Length in hex.", response=said(b"Content-Length: 0x7d0\r\n"))
bad(
    "length-plus", expect=EITHER, does="A Content-Length with a plus.", response=said(b"Content-Length: +%d\r\n" % SIZE)
)
bad("length-twice", expect="success", does="Content-Length twice, equal.", response=said(RIGHT * 2))
bad(
    "length-list",
    expect=EITHER,
    does="Content-Length as a list of two equal ones.",
    response=said(b"Content-Length: %d, %d\r\n" % (SIZE, SIZE)),
)
bad(
    "length-differs",
    expect=ERROR,
    does="Content-Length twice, different.",
    response=said(RIGHT + b"Content-Length: 7\r\n"),
)
bad("length-and-chunked", expect="success by the chunks; the connection not used again", does="Transfer-Encoding and a Content-Length that is less.",
    response=OK + KIND + b"Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNK + b"0\r\n\r\n")  # fmt: skip

bad("lf-only", expect="success", does="Lines that end with LF alone.", response=said(RIGHT).replace(b"\r\n", b"\n"))
bad(
    "cr-only",
    expect=EITHER,
    does="Lines that end with CR alone.",
    response=(OK + KIND + RIGHT + END).replace(b"\r\n", b"\r") + PAGE,
)
bad(
    "folded",
    expect="success; the header joined or dropped",
    does="A header folded over three lines.",
    response=said(b"X-Folded: one\r\n two\r\n\tthree\r\n" + RIGHT),
)
bad(
    "folded-first",
    expect=EITHER,
    does="A folded line before any header.",
    response=OK + b" folded: yes\r\n" + KIND + RIGHT + END + PAGE,
)
bad("nul-in-header", expect=EITHER, does="A NUL in a header's value.", response=said(b"X-Nul: a\x00b\r\n" + RIGHT))
bad("nul-in-name", expect=EITHER, does="A NUL in a header's name.", response=said(b"X-\x00Nul: a\r\n" + RIGHT))
bad(
    "cr-in-header",
    expect=EITHER,
    does="A bare CR in a header's value.",
    response=said(b"X-Cr: a\rInjected: b\r\n" + RIGHT),
)
bad(
    "header-bytes",
    expect="success",
    does="A header that is not UTF-8.",
    response=said(b"X-Bytes: \xff\xfe\x80\r\n" + RIGHT),
)
bad("header-no-colon", expect=EITHER, does="A header without colon.", response=said(b"just words\r\n" + RIGHT))
bad("header-no-name", expect=EITHER, does="A header without name.", response=said(b": nothing\r\n" + RIGHT))
bad("header-space", expect=EITHER, does="A space before the colon.", response=said(b"Content-Length : %d\r\n" % SIZE))
bad("header-warc", expect="success; the archive holds one record", does="Headers and a body that look like a WARC record.",
    response=OK + b"WARC-Type: request\r\nX-A: WARC/1.1\r\nConnection: close\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n")  # fmt: skip
bad("type-injection", expect="success; content_type verbatim", does="A Content-Type with markup and odd bytes.",
    response=OK + b"Content-Type: text/html; charset=\"<script>\xe9\"\r\n" + RIGHT + END + PAGE)  # fmt: skip

bad(
    "chunk-size-words",
    expect=CUT,
    does="A chunk size that is no number.",
    response=CHUNKED + CHUNK + b"zz\r\nmore\r\n0\r\n\r\n",
)
bad(
    "chunk-size-small",
    expect=CUT,
    does="A chunk longer than its size.",
    response=CHUNKED + b"5\r\n" + PAGE + b"\r\n0\r\n\r\n",
)
bad(
    "chunk-size-large",
    expect=CUT,
    does="A chunk shorter than its size.",
    response=CHUNKED + b"ffff\r\n" + PAGE + b"\r\n0\r\n\r\n",
)
bad(
    "chunk-size-huge",
    expect=CUT,
    does="A chunk size of 2^64.",
    response=CHUNKED + CHUNK + b"10000000000000000\r\nx\r\n0\r\n\r\n",
)
bad(
    "chunk-size-negative", expect=CUT, does="A negative chunk size.", response=CHUNKED + CHUNK + b"-5\r\nx\r\n0\r\n\r\n"
)
bad(
    "chunk-size-zeros",
    expect=EITHER,
    does="A chunk size with a megabyte of leading zeros.",
    response=CHUNKED + b"0" * 2**20 + CHUNK + b"0\r\n\r\n",
)
bad("chunk-no-last", expect=CUT, does="No last chunk.", response=CHUNKED + CHUNK)
bad("chunk-no-end", expect=EITHER, does="A last chunk without its blank line.", response=CHUNKED + CHUNK + b"0\r\n")
bad("chunk-lf", expect=EITHER, does="Chunks with LF alone.", response=CHUNKED + (b"%x\n%s\n0\n\n" % (SIZE, PAGE)))
bad("chunk-extension", expect=EITHER, does="A chunk extension of a megabyte.",
    response=CHUNKED + b"%x;%s\r\n%s\r\n0\r\n\r\n" % (SIZE, b"x" * 2**20, PAGE))  # fmt: skip
bad("chunked-lie", expect=CUT, does="Claims chunks and sends none.", response=CHUNKED + PAGE)
bad("chunked-twice", expect=EITHER, does="Chunked twice over.",
    response=OK + KIND + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + CHUNK + b"0\r\n\r\n")  # fmt: skip
bad("transfer-unknown", expect=EITHER, does="A Transfer-Encoding nobody knows.",
    response=OK + KIND + b"Transfer-Encoding: snake\r\n\r\n" + PAGE)  # fmt: skip
bad("trailers", expect="success; trailers change nothing", does="Trailers that contradict the headers.",
    response=CHUNKED + CHUNK + b"0\r\nContent-Type: image/png\r\nContent-Length: 3\r\nLocation: http://127.0.0.1/\r\n\r\n")  # fmt: skip

bad(
    "204-body",
    expect="success with http_code 204, length 0",
    does="204 with a body.",
    response=b"HTTP/1.1 204 No Content\r\n" + RIGHT + END + PAGE,
)
bad(
    "205-body",
    expect="success with http_code 205",
    does="205 with a body.",
    response=b"HTTP/1.1 205 Reset\r\n" + RIGHT + END + PAGE,
)
bad(
    "304-body",
    expect="not_modified or fail, length 0",
    does="304 with a body.",
    response=b"HTTP/1.1 304 Not Modified\r\n" + RIGHT + END + PAGE,
)
bad(
    "304-unasked",
    expect="fail when nothing was asked for conditionally",
    does="304 whatever was asked.",
    response=b"HTTP/1.1 304 Not Modified\r\n\r\n",
)
bad("206-unasked", expect="fail, or success truncated: unspecified", does="206 with a part nobody asked for.",
    response=b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5000-%d/90000\r\n" % (4999 + SIZE) + KIND + RIGHT + END + PAGE)  # fmt: skip
bad(
    "416-unasked",
    expect="fail",
    does="416 to a request without range.",
    response=b"HTTP/1.1 416 No\r\nContent-Range: bytes */5\r\nContent-Length: 0\r\n\r\n",
)
bad("http-1.0", expect="success", does="HTTP/1.0 that closes.", response=b"HTTP/1.0 200 OK\r\n" + KIND + END + PAGE)
bad("http-1.0-keep-alive", expect="success", does="HTTP/1.0 that promises to stay, and closes.",
    response=b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + KIND + RIGHT + END + PAGE)  # fmt: skip
bad(
    "http-1.0-chunked",
    expect=EITHER,
    does="HTTP/1.0 with chunks.",
    response=CHUNKED.replace(b"1.1", b"1.0") + CHUNK + b"0\r\n\r\n",
)


@behaviour("http-1.0-stays", MALFORMED, "success, truncated: time")
async def http10_stays(_: Request, writer: Writer) -> None:
    """HTTP/1.0 without length that says it will close, and does not."""
    await writer.send(b"HTTP/1.0 200 OK\r\nConnection: close\r\n" + KIND + END + PAGE)
    await writer.stall()


@behaviour("204-stays", MALFORMED, "success with http_code 204; the connection not used again")
async def no_content_stays(_: Request, writer: Writer) -> None:
    """204 with a body on a connection that stays open: the body looks like the next response."""
    await writer.send(b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled")
    writer.keep = True
