"""What answers mean: a table of all classes of them."""

from __future__ import annotations

import pytest

from gossamer.stages.fetch.outcomes import NONE, SHOWN, Headers, Judgement, headers_of, judge, retry_after
from gossamer.stages.fetch.protocols import Response
from gossamer.tables.statuses import Outcome

NOW = 1_782_907_200.0  # Wed, 01 Jul 2026 12:00:00 GMT
WEEK = 7 * 86_400
O = Outcome  # noqa: E741  the table is wide enough


def judged(
    code: int, headers: Headers = NONE, *, conditional: bool = False, keep_cut: bool = True, **more: str | bytes
) -> Judgement:
    response = Response()
    response.code = code
    for name, value in more.items():
        setattr(response, name, value)
    return judge(response, headers, NOW, conditional=conditional, keep_cut=keep_cut)


@pytest.mark.parametrize(
    ("code", "outcome", "failed"),
    [
        (100, O.FAIL, False),
        (101, O.FAIL, False),
        (200, O.SUCCESS, False),
        (201, O.SUCCESS, False),
        (204, O.SUCCESS, False),
        (206, O.SUCCESS, False),
        (299, O.SUCCESS, False),
        (304, O.FAIL, True),
        (305, O.FAIL, False),
        (306, O.FAIL, False),
        (399, O.FAIL, False),
        (400, O.GONE, False),
        (401, O.GONE, False),
        (403, O.GONE, False),
        (404, O.GONE, False),
        (408, O.FAIL, False),
        (410, O.GONE_FOR_GOOD, False),
        (418, O.GONE, False),
        (421, O.FAIL, False),
        (425, O.FAIL, False),
        (429, O.RETRY_LATER, True),
        (451, O.GONE, False),
        (499, O.GONE, False),
        (500, O.FAIL, True),
        (502, O.FAIL, True),
        (503, O.FAIL, True),
        (504, O.FAIL, True),
        (599, O.FAIL, True),
        (600, O.FAIL, True),
        (999, O.FAIL, True),
    ],
)
def test_plain_answers(code: int, outcome: Outcome, failed: bool):
    found = judged(code)
    assert (found.outcome, found.failed, found.retry_after, found.location) == (outcome, failed, None, None)
    assert (found.error or "").startswith(f"http {code}" if outcome is not O.SUCCESS else "")
    assert (found.error is None) == (outcome is O.SUCCESS)


@pytest.mark.parametrize("code", [300, 301, 302, 303, 307, 308])
def test_redirects(code: int):
    permanent = code in (301, 308)
    found = judged(code, Headers(location="/there"))
    assert found.outcome is (O.REDIRECT_PERMANENT if permanent else O.REDIRECT_TEMPORARY)
    assert (found.location, found.error, found.failed) == ("/there", None, False)
    nowhere = judged(code)
    assert nowhere == Judgement(O.FAIL, f"http {code}: a redirect to nowhere")


def test_a_location_elsewhere_leads_nowhere():
    assert judged(200, Headers(location="/there")).location is None
    assert judged(404, Headers(location="/there")) == Judgement(O.GONE, "http 404")


def test_not_modified_only_if_we_asked():
    assert judged(304, conditional=True) == Judgement(O.NOT_MODIFIED)
    assert judged(304, conditional=False).outcome is O.FAIL
    assert judged(200, conditional=True).outcome is O.SUCCESS


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [
        (429, "30", Judgement(O.RETRY_LATER, "http 429", 30)),
        (429, "soon", Judgement(O.RETRY_LATER, "http 429", None, failed=True)),
        (429, "0", Judgement(O.RETRY_LATER, "http 429", 0, failed=True)),  # go on, but slower
        (503, "30", Judgement(O.RETRY_LATER, "http 503", 30)),
        (503, "soon", Judgement(O.FAIL, "http 503", failed=True)),
        (500, "30", Judgement(O.FAIL, "http 500", failed=True)),
        (404, "30", Judgement(O.GONE, "http 404")),
        (200, "30", Judgement(O.SUCCESS)),
    ],
)
def test_who_may_ask_us_to_wait(code: int, value: str, expected: Judgement):
    assert judged(code, Headers(retry_after=value)) == expected


@pytest.mark.parametrize(
    "error", ["dns", "connect", "tls", "timeout", "disconnect", "malformed", "headers", "proxy", "curl 4"]
)
def test_no_answer_is_a_failure_of_its_class(error: str):
    assert judged(0, error=error, detail="why") == Judgement(O.FAIL, f"{error}: why", failed=True)
    assert judged(0, error=error) == Judgement(O.FAIL, error, failed=True)


def test_an_answer_that_broke_off_before_its_body_is_a_failure():
    assert judged(200, error="timeout", detail="why") == Judgement(O.FAIL, "timeout: why", failed=True)
    assert judged(404, error="timeout") == Judgement(O.GONE, "http 404")  # the status is all that counts


def test_what_is_no_http_is_malformed():
    assert judged(0) == Judgement(O.FAIL, "malformed: no status line", failed=True)


def test_a_body_that_was_cut_is_kept_and_told():
    found = judged(200, error="disconnect", detail="18", truncated="disconnect", body=b"half a p")
    assert found == Judgement(O.SUCCESS, "disconnect: 18")
    assert judged(404, error="timeout", truncated="time") == Judgement(O.GONE, "http 404")
    assert judged(200, error="disconnect", truncated="disconnect").outcome is O.FAIL  # nothing of it has come


def test_a_body_that_is_too_large_is_cut_or_refused():
    assert judged(200, truncated="length", keep_cut=True) == Judgement(O.SUCCESS)
    assert judged(200, truncated="length", keep_cut=False) == Judgement(O.TOO_LARGE, "too large")
    assert judged(404, truncated="length", keep_cut=False) == Judgement(O.GONE, "http 404")
    assert judged(200, truncated="time", error="timeout", body=b"half", keep_cut=False).outcome is O.SUCCESS


def test_a_blocked_address_is_no_failure_of_the_host():
    assert judged(0, error="blocked_address", detail="10.0.0.1") == Judgement(
        O.BLOCKED_ADDRESS, "blocked_address: 10.0.0.1"
    )


def test_an_unwanted_type_is_unsupported():
    cut = {"error": "type", "truncated": "unspecified"}
    assert judged(200, Headers(type="video/mp4"), **cut) == Judgement(O.UNSUPPORTED, "type: video/mp4")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "headers", "outcome"),
    [
        (404, NONE, O.GONE),
        (410, NONE, O.GONE_FOR_GOOD),
        (503, Headers(retry_after="5"), O.RETRY_LATER),
        (500, NONE, O.FAIL),
        (301, Headers(location="/x"), O.REDIRECT_PERMANENT),
    ],
)
def test_the_type_of_an_error_page_or_redirect_does_not_matter(code: int, headers: Headers, outcome: Outcome):
    found = judged(code, headers._replace(type="application/json"), error="type", truncated="unspecified")
    assert found.outcome is outcome


def test_errors_are_bounded():
    assert len(judged(0, error="tls", detail="x" * 9000).error or "") == SHOWN


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0),
        ("120", 120),
        ("604800", WEEK),
        ("604801", WEEK),
        ("9" * 400, WEEK),
        ("9" * 5000, WEEK),  # more digits than Python turns into a number
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("soon", None),
        ("٣", None),  # a digit, but not one of ours
        ("²", None),
        ("1e9", None),
        ("Wed, 01 Jul 2026 12:02:00 GMT", 120),
        ("Wednesday, 01-Jul-26 12:02:00 GMT", 120),
        ("Wed Jul  1 12:02:00 2026", 120),
        ("Wed, 01 Jul 2026 14:02:00 +0200", 120),
        ("Wed, 01 Jul 2026 11:00:00 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", WEEK),
        ("Fri, 31 Dec 9999 23:59:59 -2359", WEEK),
        ("Sat, 01 Jan 0001 00:00:00 +2359", 0),
        ("Wed, 99 Jul 2026 12:00:00 GMT", None),
        ("Wed, 01 Jul 99999 12:00:00 GMT", None),
        ("Wed, 01 Jul 2026 12:00:00 +99999999", None),
    ],
)
def test_retry_after(value: str | None, seconds: int | None):
    assert retry_after(value, NOW) == seconds


def test_headers_are_found_in_whatever_case_and_the_first_counts():
    head = (
        b'HTTP/1.1 200 OK\r\nCONTENT-TYPE:text/html; charset=utf-8 \r\netag : "a"\r\nETag: "b"\r\n'
        b"Last-Modified: yesterday\r\nLocation: /x\r\nRetry-After: 3\r\nX-Content-Type: no\r\n\r\n"
    )
    assert headers_of(head) == Headers("text/html; charset=utf-8", '"a"', "yesterday", "/x", "3")
    assert headers_of(b"") == headers_of(b"HTTP/1.1 200 OK\r\n\r\n") == NONE


def test_all_lines_for_robots_count():
    head = b"HTTP/1.1 200 OK\r\nX-Robots-Tag: noindex\r\nx-robots-tag: somebot: nofollow\r\n\r\n"
    assert headers_of(head).robots == "noindex, somebot: nofollow"


def test_headers_are_text_whatever_their_bytes():
    assert headers_of("a\r\nLocation: /ü\r\n".encode()).location == "/ü"
    assert headers_of("a\r\nLocation: /ü\r\n".encode("latin-1")).location == "/%FC"  # the bytes are its name


def test_long_headers_are_bounded_but_what_is_sent_back_is_whole_or_not_there():
    long = b"x" * 5000
    lines = b"\r\n".join(name + b": " + long for name in (b"ETag", b"Last-Modified", b"Content-Type", b"X-Robots-Tag"))
    found = headers_of(b"HTTP/1.1 200 OK\r\n" + lines + b"\r\nLocation: /" + long + b"\r\n\r\n")
    assert [found.etag, found.last_modified] == ["", ""]
    assert [len(found.type or ""), len(found.robots or "")] == [SHOWN, SHOWN]
    assert found.location == "/" + long.decode()
