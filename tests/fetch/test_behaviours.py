"""Every way a server can misbehave, in one crawl: each URL gets the row it should, the others their pages, the archive is sound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from gossamer.engine.embedded import EmbeddedEngine
from tests.fetch.crawling import Record, Round, fetched
from tests.hostile.behaviours.base import page
from tests.hostile.behaviours.bodies import PACKED, PAGE
from tests.hostile.server import BEHAVIOURS, HostileServer, hostile_server
from tests.hostile.spellings import SPELLINGS

LONGEST_S = 30.0  # for all of them; the deadline of each is three seconds
MEMORY_MB = 400
CAP = 1 << 20
WEEK = 604_800
LATER = ("/page/1", "/page/2", "/page/3")  # asked for on hosts whose connections must not be used again
UNSOUND = ("long", "204-stays", "length-and-chunked", "close-idle", "tiny-chunks", "204-body")
SLOWER = {"drip": "?s=0.3", "drip-headers": "?s=0.3", "drip-chunks": "?s=0.3"}  # never silent, and still never done


class Want(NamedTuple):
    """What a row is to say."""

    outcome: str = "SUCCESS"
    code: int | None = 200
    cut: str | None = None
    error: str | None = None  # its class
    leads: bool = False
    after: int | None = None


MALFORMED = Want("FAIL", None, error="malformed")
TOO_LARGE = Want("FAIL", None, error="headers")
GONE = Want("FAIL", None, error="disconnect")
LATE = Want("FAIL", None, error="timeout")
REFUSED = Want("REDIRECT_TEMPORARY", 302, error="redirect")
LEADS = Want("REDIRECT_TEMPORARY", 302, leads=True)
WANTED = {
    # Bodies are kept in their codings, as they came: what is wrong inside is for whoever decodes them. Bytes of the wire
    # are counted, so a bomb that is smaller than the cap is whole.
    Want(): """
        br-bomb zstd-bomb gzip-nested gzip-nested-bomb codings-many coding-lie coding-lie-br coding-lie-deflate
        coding-unknown coding-identity coding-x-gzip gzip-cut gzip-bad-sum gzip-tail gzip-members gzip-empty br-garbage
        br-cut gzip-unsaid long until-close hints status-bare status-bytes version-3000 version-2 length-twice length-list
        length-and-chunked lf-only folded folded-first header-bytes header-no-name header-space header-warc
        type-injection chunk-lf chunk-extension chunked-twice trailers http-1.0 http-1.0-keep-alive http-1.0-chunked
        page empty validators cookie echo redirect-200 refresh robots-hop sitemap.xml sitemap-cycle sitemap-deep
        sitemap-entities sitemap-external sitemap-cut sitemap-text sitemap-private late close-idle
        length-huge length-2-63""",  # a length no number can hold is none: the body ends with its connection
    Want(cut="length"): """
        gzip-bomb deflate-bomb endless endless-close endless-gzip large sitemap-many sitemap-endless
        sitemap-bomb.xml.gz""",
    Want(cut="unspecified"): "tiny-chunks",  # 10,000 pieces of a byte are enough
    Want(cut="unspecified", error="headers"): "trailers-endless",
    Want(cut="disconnect", error="disconnect"): """
        short length-2-62 chunk-size-words chunk-size-small chunk-size-large chunk-size-huge chunk-size-negative
        chunk-no-last chunk-no-end reset-in-body""",
    Want(cut="time", error="timeout"): "http-1.0-stays stall-in-body stall-at-end drip drip-chunks",
    Want(code=204): "204-body 204-stays",
    Want(code=205): "205-body",
    Want(code=206, cut="unspecified"): "206-unasked",
    # A head without a byte of its body is worth another try.
    Want("FAIL", 200, "disconnect", "disconnect"): "chunk-size-zeros chunked-lie reset-after-headers",
    Want("FAIL", 200, "time", "timeout"): "stall-after-headers",
    # What has no whole and sound head is no answer, so there is no code either.
    MALFORMED: """
        no-status-line status-garbage status-ssh status-words status-99 status-1000 status-000 status-negative
        version-lower blank-first icy length-words length-negative length-empty length-hex length-plus length-differs
        cr-only nul-in-header nul-in-name cr-in-header header-no-colon transfer-unknown redirect-twice redirect-cr
        redirect-nul""",
    TOO_LARGE: """
        headers-many headers-same header-large header-endless headers-endless status-line-endless endless-100
        endless-103 redirect-long""",
    GONE: "close close-in-status close-in-headers reset",
    LATE: "stall stall-in-headers drip-headers",
    Want("FAIL", 101, "time", "http 101"): "switching",
    Want("FAIL", 304, error="http 304"): "304-body 304-unasked",
    Want("FAIL", 416, error="http 416"): "416-unasked",
    Want("FAIL", 999, error="http 999"): "status-999",
    Want("GONE", 401, error="http 401"): "login",
    Want("GONE", 404, error="http 404"): "status",
    Want("FAIL", 300, error="http 300"): "redirect-300",
    Want("FAIL", 302, error="http 302"): "redirect-none redirect-empty",
    # A target that we refuse leaves a redirect without target: it is what the server said, and no reason to ask again soon.
    REFUSED: """
        redirect-self redirect-file redirect-ftp redirect-data redirect-javascript redirect-gopher redirect-dict
        redirect-unix redirect-about redirect-fragment redirect-invalid redirect-port""",
    LEADS: """
        cookie-redirect redirect redirect-grow redirect-chain redirect-hosts redirect-address redirect-crlf
        redirect-crlf-raw redirect-tab redirect-relative redirect-query redirect-protocol-relative redirect-backslash
        redirect-bytes redirect-utf-8 redirect-no-host redirect-port-25 redirect-credentials redirect-metadata
        redirect-loopback""",
    LEADS._replace(cut="length"): "redirect-endless-body redirect-bomb",
    LEADS._replace(cut="time"): "redirect-stalled-body",
    Want("REDIRECT_PERMANENT", 301, leads=True): "redirect-loop",
    # A Retry-After that is nonsense is none, and a 503 without one is a failure like every 5xx.
    Want("RETRY_LATER", 429, error="http 429"): """
        retry-429-negative retry-429-fraction retry-429-words retry-429-empty retry-429-none""",
    Want("FAIL", 503, error="http 503"): """
        retry-503-negative retry-503-fraction retry-503-words retry-503-empty retry-503-none""",
    **{
        Want("RETRY_LATER", code, error=f"http {code}", after=after): " ".join(f"retry-{code}-{n}" for n in names.split())
        for code in (429, 503)
        for after, names in {0: "past", 120: "seconds date", WEEK: "huge far"}.items()
    },
}  # fmt: skip
EXPECTED = {name: want for want, names in WANTED.items() for name in names.split()}


class Crawled(NamedTuple):
    server: HostileServer
    round: Round
    peak_mb: float

    def url(self, name: str) -> str:
        return url_of(self.server, name)

    def record(self, name: str) -> Record:
        return self.round.record(self.url(name))


def url_of(server: HostileServer, name: str) -> str:
    return server.url(f"{name.replace('.', '-')}.test", f"/{name}{SLOWER.get(name, '')}")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("behaviours")
    others = {child.pid for child in psutil.Process().children(recursive=True)}  # of other engines
    engine = EmbeddedEngine(workers=1, scratch=str(folder))
    with hostile_server() as server:
        urls = [url_of(server, name) for name in BEHAVIOURS]
        urls += [server.url(f"{name}.test", path) for name in UNSOUND for path in LATER]
        found = fetched(folder, engine, urls, {"fetch.max_bytes": CAP})
        ours = [child for child in psutil.Process().children(recursive=True) if child.pid not in others]
        peak = max(map(high_water, ours))
        yield Crawled(server, found, peak)
    engine.close()


def high_water(process: psutil.Process) -> float:
    """The most memory a process ever had, in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)


def test_every_behaviour_is_expected_to_do_something():
    assert EXPECTED.keys() == BEHAVIOURS.keys()


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_behaviour_gets_its_row(crawled: Crawled, name: str):
    row = crawled.round.rows[crawled.url(name)]
    after = row["retry_after_s"]
    if after in (118, 119):  # a date, by our clock
        after = 120
    error = row["error"].split(":")[0] if row["error"] else None
    found = Want(
        crawled.round.outcome(crawled.url(name)), row["http_code"], row["truncated_reason"], error,
        row["redirect_to"] is not None, after,
    )  # fmt: skip
    assert found == EXPECTED[name], row
    assert row["truncated"] == (found.cut is not None)
    assert (row["warc_file"] is not None) == (found.code is not None)


def test_time_and_memory_are_bounded(crawled: Crawled):
    assert crawled.round.seconds < LONGEST_S
    assert crawled.peak_mb < MEMORY_MB


@pytest.mark.parametrize("name", [name for name, want in EXPECTED.items() if want.code])
def test_the_archive_has_what_came(crawled: Crawled, name: str):
    row, record = crawled.round.rows[crawled.url(name)], crawled.record(name)
    assert record.type == "response"
    assert record.url == crawled.url(name)
    assert len(record.body) == row["length"]
    assert record.status.split()[1] == str(row["http_code"])
    assert record.headers.get("WARC-Truncated") == row["truncated_reason"]
    if row["http_code"] != 304:  # which has no payload
        assert record.headers["WARC-Payload-Digest"] == f"sha1:{row['payload_digest']}"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("coding-lie", PAGE), ("coding-x-gzip", PACKED), ("gzip-members", PACKED + PACKED), ("gzip-unsaid", PACKED),
        ("until-close", PAGE), ("long", PAGE), ("short", PAGE), ("length-and-chunked", page("Malformed", 2000)),
        ("lf-only", page("Malformed", 2000)), ("trailers", page("Malformed", 2000)), ("gzip-empty", b""),
    ],
)  # fmt: skip
def test_bodies_are_kept_as_they_came(crawled: Crawled, name: str, body: bytes):
    assert crawled.record(name).body == body


def test_what_looks_like_a_record_is_none(crawled: Crawled):
    assert [r.type for r in crawled.round.records(crawled.url("header-warc"))] == ["response", "request"]
    assert crawled.record("header-warc").body.startswith(b"WARC/1.1\r\n")


def test_chunks_are_taken_off_and_their_header_renamed(crawled: Crawled):
    record = crawled.record("chunk-lf")
    assert "transfer-encoding" not in record.http
    assert record.http["x-crawler-transfer-encoding"] == "chunked"
    assert record.http["content-length"] == "2000"


@pytest.mark.parametrize("host", UNSOUND)
def test_nothing_is_smuggled_into_the_next_answer(crawled: Crawled, host: str):
    for path in LATER:
        url = crawled.server.url(f"{host}.test", path)
        assert crawled.round.outcome(url) == "SUCCESS"
        assert crawled.round.record(url).body.startswith(b"<!doctype html><html><head><title>Page")


def test_headers_are_kept_as_they_came(crawled: Crawled):
    rows = crawled.round.rows
    assert rows[crawled.url("type-injection")]["content_type"] == 'text/html; charset="<script>é"'
    assert rows[crawled.url("trailers")]["content_type"] == "text/html"
    validators = rows[crawled.url("validators")]
    assert (validators["etag"], validators["last_modified"]) == ('"gossamer-1"', "Tue, 14 Nov 2023 22:13:20 GMT")
    assert 900 < rows[crawled.url("late")]["latency_ms"] < 3000


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("crlf", "/page/1%0D%0AX-Injected:%20yes"), ("crlf-raw", "/page/1"), ("tab", "/page/1"),
        ("relative", "/page/1?from=relative"), ("query", "/redirect-query?page=2"), ("protocol-relative", "/page/1"),
        ("backslash", "/page/1"), ("bytes", "/page/caf%E9%FF"), ("utf-8", "/page/k%C3%B6ln"), ("credentials", "/echo"),
    ],
)  # fmt: skip
def test_targets_are_normalised(crawled: Crawled, name: str, path: str):
    host = f"redirect-{name}.test"
    target = crawled.server.url(host, path)
    assert crawled.round.rows[crawled.url(f"redirect-{name}")]["redirect_to"] == target
    assert crawled.round.rows[target]["via"] == crawled.url(f"redirect-{name}")
    assert crawled.server.targets(host)[-1] == path


def test_no_address_is_followed(crawled: Crawled):
    rows = crawled.round.rows
    first = next(iter(SPELLINGS))
    assert rows[crawled.url("redirect-address")]["redirect_to"] == f"http://{first}/secret"
    assert not [url for url in rows if "127.0.0.1" in url or "169.254" in url]
    assert not [seen for seen in crawled.server.requests if seen.host.startswith("127.")]


def test_neither_cookies_nor_credentials_are_sent(crawled: Crawled):
    assert all(
        not {name for name, _ in seen.headers} & {"cookie", "authorization", "proxy-authorization"}
        for seen in crawled.server.requests
    )
    assert len([t for t in crawled.server.targets("login.test") if t == "/login"]) == 1


def test_chains_end(crawled: Crawled):
    server, rows = crawled.server, crawled.round.rows
    hops = [t for t in server.targets("redirect-chain.test") if t != "/robots.txt"]
    assert hops == ["/redirect-chain", *(f"/redirect-chain/{n}" for n in (49, 48, 47, 46, 45))]
    last = rows[server.url("redirect-chain.test", "/redirect-chain/45")]
    assert last["redirect_to"] == server.url("redirect-chain.test", "/redirect-chain/44")
    assert rows[server.url("redirect-loop.test", "/redirect-loop/a")]["error"] == "redirect: a loop"
    assert rows[crawled.url("redirect-hosts")]["redirect_to"] == server.url("hop49.test", "/redirect-hosts/49")
    assert not server.targets("hop49.test")  # another domain: the next round's
