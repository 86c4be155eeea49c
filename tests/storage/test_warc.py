"""WARC records, read back by programs that are not ours."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import random
import re
import subprocess
import sys
import tracemalloc
import uuid
import zlib

import pytest

from gossamer.storage import warc
from gossamer.storage.warc import Exchange, pack, payload_digest, target_uri, warcinfo, whole_members
from tests.storage.warc_readers import by_http_client, read

URL = "https://www.example.org/a?b=c"
AT = 1794808354.123456
REQUEST = b"GET /a?b=c HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: Gossamer\r\n\r\n"
PAGE = b"<!DOCTYPE html><title>Page</title><p>" + b"All the words of a page. " * 40
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nServer: x\r\n\r\n" % len(PAGE)
IN_GZIP = 31

FORK = """
import os
from gossamer.storage.warc import _record_id
_record_id()
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, " ".join(_record_id() for _ in range(300)).encode())
    os._exit(0)
os.wait()
theirs = set(os.read(reader, 60_000).decode().split())
assert len(theirs) == 300
print(len(theirs & {_record_id() for _ in range(300)}))
"""


def exchange(**changes):
    values = {
        "url": URL,
        "at": AT,
        "ip": "93.184.216.34",
        "protocol": "http/1.1",
        "request": REQUEST,
        "head": HEAD,
        "body": PAGE,
    }
    return Exchange(**{**values, **changes})


def answer(**changes):
    """The response or revisit, found where `pack` says it is, and the same among all records."""
    packed = pack(exchange(**changes))
    records = read(packed.data)
    (alone,) = read(packed.data[packed.offset : packed.offset + packed.length])
    assert alone in records
    assert alone.kind in {"response", "revisit"}
    return alone


def stored(head, body=PAGE):
    """The head of a response with this body, which an HTTP client reads exactly."""
    record = answer(head=head, body=body)
    assert record.body == body
    assert record.block.endswith(body)
    assert by_http_client(record.block)[2] == body
    return record.block[: len(record.block) - len(body)]


def sha1(data):
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def test_a_response_and_its_request_come_back():
    response, request = read(pack(exchange()).data)
    identity = response["WARC-Record-ID"]
    assert response.headers == [
        ("WARC-Type", "response"),
        ("WARC-Record-ID", identity),
        ("WARC-Date", "2026-11-16T05:52:34.123456Z"),
        ("WARC-Target-URI", URL),
        ("WARC-IP-Address", "93.184.216.34"),
        ("WARC-Protocol", "http/1.1"),
        ("Content-Type", "application/http; msgtype=response"),
        ("WARC-Payload-Digest", sha1(PAGE)),
        ("WARC-Block-Digest", sha1(HEAD + PAGE)),
        ("Content-Length", str(len(HEAD + PAGE))),
    ]
    assert (response.block, response.body, response.status) == (HEAD + PAGE, PAGE, "200 OK")
    assert request.headers == [
        ("WARC-Type", "request"),
        ("WARC-Record-ID", request["WARC-Record-ID"]),
        ("WARC-Date", "2026-11-16T05:52:34.123456Z"),
        ("WARC-Target-URI", URL),
        ("WARC-Concurrent-To", identity),
        ("Content-Type", "application/http; msgtype=request"),
        ("WARC-Block-Digest", sha1(REQUEST)),
        ("Content-Length", str(len(REQUEST))),
    ]
    assert (request.block, request.names) == (REQUEST, ["Host", "User-Agent"])


def test_every_record_is_one_gzip_member():
    packed = pack(exchange(metadata={"via": URL}))
    members, rest = [], packed.data
    while rest:
        inflater = zlib.decompressobj(IN_GZIP)
        members.append(inflater.decompress(rest))
        assert inflater.eof
        rest = inflater.unused_data
    assert [re.search(rb"WARC-Type: (\w+)", member)[1] for member in members] == [b"response", b"request", b"metadata"]  # type: ignore[index]
    assert all(member.startswith(b"WARC/1.1\r\n") and member.endswith(b"\r\n\r\n") for member in members)
    assert gzip.decompress(packed.data[packed.offset : packed.offset + packed.length]) == members[0]


def test_warcio_check_finds_nothing_wrong(tmp_path):
    path = tmp_path / "all.warc.gz"
    records = [
        warcinfo("all.warc.gz", AT, {"software": "Gossamer"}),
        pack(exchange(metadata={"via": URL})).data,
        pack(exchange(body=[PAGE[:9], PAGE[9:]])).data,
        pack(exchange(head=b"HTTP/2 200 \r\ntransfer-encoding: chunked\r\n\r\n", protocol="h2")).data,
        pack(exchange(revisit="identical", refers_to=AT - 9)).data,
        pack(exchange(revisit="not-modified", head=b"HTTP/1.1 304 Not Modified\r\n\r\n", body=b"")).data,
    ]
    command = [sys.executable, "-m", "warcio.cli", "check", "-v", str(path)]
    path.write_bytes(b"".join(records))
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stdout.count("digest pass")) == (0, 10), checked.stdout + checked.stderr
    wrong = gzip.decompress(records[1]).replace(b"All the words", b"All the Words", 1)
    path.write_bytes(gzip.compress(wrong))
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 1


def test_the_request_is_left_out_where_there_is_none_or_none_is_wanted():
    assert [r.kind for r in read(pack(exchange(request=b"")).data)] == ["response"]
    assert [r.kind for r in read(pack(exchange(), with_request=False).data)] == ["response"]


def test_a_digest_that_is_known_is_not_computed_again():
    known = payload_digest(b"something else")
    (member, *_) = gzip.decompress(pack(exchange(digest=known)).data).split(b"\r\n\r\n")
    assert f"WARC-Payload-Digest: sha1:{known}".encode() in member


def test_payload_digest_of_pieces_is_that_of_the_whole():
    assert "sha1:" + payload_digest(PAGE) == "sha1:" + payload_digest([PAGE[:3], b"", PAGE[3:]]) == sha1(PAGE)


@pytest.mark.parametrize("size", [0, 1, 19_000, warc.JOINED - 1, warc.JOINED + 1, 5 << 20])
def test_bodies_of_all_sizes_whole_or_in_pieces(size):
    body = random.Random(size).randbytes(size // 3) * 3 + b"x" * (size % 3)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
    pieces = [body[n : n + 70_001] for n in range(0, size, 70_001)]
    for given in (body, pieces):
        record = answer(head=head, body=given)
        assert (record.block, record["WARC-Payload-Digest"]) == (head + body, sha1(body))


@pytest.mark.parametrize(
    "body",
    [
        b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n",
        b"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n" * 3,
        gzip.compress(b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n") * 2,
        b"\r\n\r\n" + gzip.compress(b"x"),
        b"\x1f\x8b",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"\r\n\r\n",
    ],
)
@pytest.mark.parametrize("framing", [b"", b"Transfer-Encoding: chunked\r\n"])
def test_a_body_that_looks_like_something_else_is_only_a_body(body, framing):
    assert stored(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n", body)
    assert len(read(pack(exchange(body=body)).data * 3)) == 6


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("https://a.example/\r\nWARC-Type: x", "https://a.example/%0D%0AWARC-Type:%20x"),
        ("https://a.example/\n\r\n\r\nWARC/1.1", "https://a.example/%0A%0D%0A%0D%0AWARC/1.1"),
        ("https://a.example/\x00\t\x0b\x7f", "https://a.example/%00%09%0B%7F"),
        ("https://a.example/é\u2028\x85", "https://a.example/%C3%A9%E2%80%A8%C2%85"),
        ("https://a.example/\ud800", "https://a.example/%ED%A0%80"),
        ("https://a.example/%41%zz?q=[a]|{b}#c", "https://a.example/%41%zz?q=[a]|{b}#c"),
        ("https://a.example/<b>", "https://a.example/%3Cb%3E"),
    ],
)
def test_no_url_breaks_a_header(url, written):
    records = read(
        pack(exchange(url=url, metadata={"a": "b"})).data + pack(exchange(url=url, revisit="identical")).data
    )
    assert [record["WARC-Target-URI"] for record in records] == [written] * 5
    assert records[3]["WARC-Refers-To-Target-URI"] == written
    assert records[0].block == HEAD + PAGE


@pytest.mark.parametrize("revisit", [None, "identical", "not-modified"])
def test_a_url_too_long_for_readers_is_whole_in_the_metadata(revisit):
    url = "https://a.example/" + "x" * 60_000
    data = pack(exchange(url=url, request=b"GET /%s HTTP/1.1\r\n\r\n" % (b"x" * 60_000), revisit=revisit)).data
    records = read(data)
    assert [record.kind for record in records] == ["revisit" if revisit else "response", "metadata"]
    assert records[0]["WARC-Target-URI"] == url[: warc.LONGEST]
    assert records[1].block == f"url: {url}\r\n".encode()


@pytest.mark.parametrize("field", ["ip", "protocol", "truncated"])
def test_no_field_breaks_a_header(field):
    record = answer(**{field: "x\r\n\r\nWARC-Type: y\u2028é"})
    assert record.block == HEAD + PAGE
    assert ("WARC-Type", "response") in record.headers
    assert not any(value == "y" for _, value in record.headers)


@pytest.mark.parametrize("reason", ["length", "time", "disconnect", "unspecified"])
def test_a_body_cut_short_says_why_and_has_its_own_length(reason):
    record = answer(body=PAGE[:100], truncated=reason)
    assert record["WARC-Truncated"] == reason
    assert record["WARC-Payload-Digest"] == sha1(PAGE[:100])
    assert record.block == HEAD.replace(b"Content-Length", b"X-Crawler-Content-Length")[:-2] + (
        b"Content-Length: 100\r\n\r\n" + PAGE[:100]
    )
    assert by_http_client(record.block)[2] == PAGE[:100]


def test_an_identical_page_is_stored_as_its_head():
    head = HEAD.replace(b"Server", b"transfer-Encoding: chunked\r\nServer")
    record = answer(revisit="identical", refers_to=AT - 86400, head=head)
    assert (record.kind, record.body) == ("revisit", b"")
    assert record.block == head.replace(b"transfer", b"X-Crawler-transfer")
    assert record["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert record["WARC-Refers-To-Target-URI"] == URL
    assert record["WARC-Refers-To-Date"] == "2026-11-15T05:52:34.123456Z"
    assert record["WARC-Payload-Digest"] == sha1(PAGE)
    assert record["WARC-Truncated"] == "length"
    assert record["WARC-Block-Digest"] == sha1(record.block)
    assert record["Content-Type"] == "application/http; msgtype=response"


def test_a_page_not_modified_is_stored_as_its_head():
    head = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 1234\r\n\r\n"
    record = answer(revisit="not-modified", refers_to=AT, head=head, body=b"")
    assert (record.kind, record.block, record.body) == ("revisit", head, b"")
    assert record["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert record["WARC-Refers-To-Date"] == record["WARC-Date"]
    assert not record.has("WARC-Payload-Digest")
    assert not record.has("WARC-Truncated")


def test_a_revisit_of_an_unknown_time_names_none():
    assert not answer(revisit="identical").has("WARC-Refers-To-Date")


def test_metadata_keeps_to_its_lines():
    told = {"via": URL, "error": "bad\r\n\r\nWARC/1.1\u2028\x85\x00 end", "na me:\n": "naïve \ud800", "": ""}
    response, _, metadata = read(pack(exchange(metadata=told)).data)
    assert metadata.kind == "metadata"
    assert metadata["WARC-Concurrent-To"] == response["WARC-Record-ID"]
    assert metadata["Content-Type"] == "application/warc-fields"
    assert metadata["WARC-Block-Digest"] == sha1(metadata.block)
    told_back = f"via: {URL}\r\nerror: bad WARC/1.1  end\r\nna-me-: naïve ?\r\n-: \r\n"
    assert metadata.block.decode() == told_back


def test_warcinfo_opens_a_file():
    (info, *_) = read(
        warcinfo("näme\r\n.warc.gz", AT, {"software": "Gossamer/0.1", "robots": "obey"}) + pack(exchange()).data
    )
    assert (info.kind, info["Content-Type"]) == ("warcinfo", "application/warc-fields")
    assert info["WARC-Filename"] == "näme .warc.gz"
    assert info["WARC-Date"] == "2026-11-16T05:52:34.123456Z"
    assert info.block == b"software: Gossamer/0.1\r\nrobots: obey\r\n"


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z"),
        (1.5, "1970-01-01T00:00:01.500000Z"),
        (1.9999999, "1970-01-01T00:00:02.000000Z"),
        (1794808354.000001, "2026-11-16T05:52:34.000001Z"),
    ],
)
def test_dates_have_microseconds(at, written):
    assert warc.warc_date(at) == written


def test_record_ids_are_random_uuids():
    made = [warc._record_id() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert {(str(uuid.UUID(name)) == name, uuid.UUID(name).version, uuid.UUID(name).variant) for name in made} == {
        (True, 4, uuid.RFC_4122)
    }


def test_a_forked_process_makes_ids_of_its_own():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "0\n", done.stderr


PIECES = [
    b"\r\n", b"\n", b"\r", b"\r\r\n", b"\n\n", b"\r\n\r\n", b"\0", b"\x0b", b"\x1c", b"\x85", b"\xa0", b"\xff", b" ", b"\t", b":",
    b"A: b", b"HTTP/1.1 200 OK", b"HTTP/2 204 ", b"WARC/1.1", b"Content-Length: 5", b"content-length:", b"Content-Length : 7",
    b"Transfer-Encoding: chunked", b"TRANSFER-ENCODING:gzip", b"Transfer-Encoding\t: x", b"x" * 5000, b"\xc3\xa9: \xc3\xa9", b"\xe2\x80\xa8",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_stored_is_read_back(seed):
    rng = random.Random(seed)
    made = []
    for _ in range(40):
        start = rng.choice([b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 404 Not Found\n", b"HTTP/3 500\r\n", b""])
        head = start + b"".join(rng.choices(PIECES, k=rng.randrange(20))) + rng.choice([b"", b"\r\n\r\n"])
        body = rng.choice([b"", PAGE, b"\r\n".join(rng.choices(PIECES, k=9)), rng.randbytes(rng.randrange(3000))])
        url = URL + "".join(map(chr, rng.choices([0, 9, 10, 13, 32, 60, 65, 127, 133, 0x2028, 0xD800, 0x1F600], k=5)))
        made.append(exchange(head=head, body=body, url=url))
    records = read(b"".join(pack(one).data for one in made))
    for one, record in zip(made, records[::2], strict=True):
        assert (record.kind, record["WARC-Target-URI"], record.body) == ("response", target_uri(one.url), one.body)
        head = record.block[: len(record.block) - len(one.body)]
        status, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        assert re.fullmatch(rb"HTTP/1\.[01] [1-9]\d\d [^\0-\x08\x0a-\x1f]*", status), (one.head, head)
        assert all(re.fullmatch(rb"[\w-]+:[^\0-\x08\x0a-\x1f]*", line) for line in lines), (one.head, head)
        assert record.names == [line.split(b":")[0].decode() for line in lines]
        code, _, body = by_http_client(record.block)
        assert body == (b"" if code == 204 else one.body)


def members():
    return [warcinfo("x.warc.gz", AT, {"a": "b"}), pack(exchange(), with_request=False).data, gzip.compress(b"")]


@pytest.mark.parametrize("chunk", [1, 7, 1 << 15])
def test_a_file_torn_anywhere_keeps_its_whole_members(chunk, monkeypatch):
    monkeypatch.setattr(warc, "READ", chunk)
    data, ends = b"", [0]
    for member in members():
        data += member
        ends.append(len(data))
    for cut in range(len(data) + 1):
        assert whole_members(io.BytesIO(data[:cut])) == max(end for end in ends if end <= cut)


def harmless(member, original):
    """Whether a member still holds the same data, as it does when a bit flips in its time or in the padding of its end."""
    try:
        return gzip.decompress(member) == gzip.decompress(original)
    except (EOFError, OSError, zlib.error):
        return False


def test_a_flipped_bit_ends_the_whole_members():
    first, second, third = members()
    found = 0
    for at in range(8 * len(second)):
        flipped = bytearray(second)
        flipped[at // 8] ^= 1 << at % 8
        if not harmless(flipped, second):
            assert whole_members(io.BytesIO(first + flipped + third)) == len(first), at
            found += 1
    assert found >= 8 * (len(second) - 9)


@pytest.mark.parametrize("rubbish", [b"\0" * 5000, b"WARC/1.1\r\n", b"\x1f", b"\x1f\x8b\x08", b"\r\n"])
def test_what_follows_the_last_member_is_not_of_it(rubbish):
    good = b"".join(members())
    assert whole_members(io.BytesIO(good + rubbish)) == len(good)
    assert whole_members(io.BytesIO(good + rubbish + good)) == len(good)
    assert whole_members(io.BytesIO(rubbish)) == 0


@pytest.mark.parametrize("chunk", [1, 2, 5, 64, 1000])
def test_the_end_of_a_member_is_seen_wherever_the_reads_fall(chunk, monkeypatch):
    monkeypatch.setattr(warc, "READ", chunk)
    for size in range(0, 1200, 7):
        member = gzip.compress(b"ab" * size, size % 10)
        assert whole_members(io.BytesIO(member)) == len(member)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_large_members_are_checked_in_little_memory(more):
    data = gzip.compress(b"\0" * (warc.READ * 1000 + more)) * 2
    tracemalloc.start()
    assert whole_members(io.BytesIO(data)) == len(data)
    assert whole_members(io.BytesIO(data[:-1])) == len(data) // 2
    assert tracemalloc.get_traced_memory()[1] < 30 * warc.READ
    tracemalloc.stop()
