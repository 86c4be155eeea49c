"""Responses → outcomes: what an answer, or the lack of one, means for the URL and for its host."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from gossamer.stages.fetch.protocols import Response
from gossamer.tables.states import LONGEST_RETRY_AFTER
from gossamer.tables.statuses import Outcome

PERMANENT, TEMPORARY = (301, 308), (300, 302, 303, 307)
AGAIN = (408, 416, 421, 425)  # the server may think otherwise next time; of ranges we asked for none
TOO_MANY, UNAVAILABLE = 429, 503
GONE_FOR_GOOD = 410
SHOWN = 500  # characters of a header or an error that are kept
ECHOED = ("etag", "last_modified")  # sent back as they are: kept whole, or not at all
WANTED = {
    b"content-type": "type",
    b"etag": "etag",
    b"last-modified": "last_modified",
    b"location": "location",
    b"retry-after": "retry_after",
    b"x-robots-tag": "robots",
}
BYTES = re.compile(rb"[\x80-\xff]")
LINES = re.compile(rb"(?im)^(%s)[ \t]*:([^\r\n]*)" % b"|".join(WANTED))


class Judgement(NamedTuple):
    """What became of a request."""

    outcome: Outcome
    error: str | None = None
    retry_after: int | None = None  # seconds
    failed: bool = False  # the host has failed us: slow down
    location: str | None = None


class Headers(NamedTuple):
    """The headers a fetch row keeps."""

    type: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    location: str | None = None
    retry_after: str | None = None
    robots: str | None = None


NONE = Headers()


def headers_of(head: bytes) -> Headers:
    """The headers we need; the first of a name counts, but all lines of X-Robots-Tag do."""
    found: dict[str, str] = {}
    for name, value in LINES.findall(head):
        wanted = WANTED[name.lower()]
        text = _text(value) if wanted != "location" else _text(_ascii(value))
        if wanted == "robots" and wanted in found:
            found[wanted] = f"{found[wanted]}, {text}"[:SHOWN]
        else:
            found.setdefault(wanted, text if wanted == "location" else _bounded(wanted, text))
    return Headers(**found) if found else NONE


def _ascii(value: bytes) -> bytes:
    """A URL whose bytes are not UTF-8: they are what the server knows it by, so they are encoded one by one."""
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return BYTES.sub(lambda found: b"%%%02X" % found[0][0], value)
    return value


def _bounded(name: str, text: str) -> str:
    return "" if name in ECHOED and len(text) > SHOWN else text[:SHOWN]


def _text(value: bytes) -> str:
    """A header's value: UTF-8 if it is that, else Latin-1, as headers once were."""
    value = value.strip()
    try:
        return value.decode("ascii")
    except UnicodeDecodeError:
        pass
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def judge(response: Response, headers: Headers, now: float, *, conditional: bool, keep_cut: bool) -> Judgement:
    """What a response means; `now` is the time of day, `conditional`: we asked whether anything has changed."""
    if response.error == "blocked_address":
        return Judgement(Outcome.BLOCKED_ADDRESS, f"blocked_address: {response.detail}")
    code = response.code
    if response.error == "type" and 200 <= code < 300:  # errors and redirects may be of any type
        return Judgement(Outcome.UNSUPPORTED, f"type: {headers.type}"[:SHOWN])
    if not code or (response.error and 200 <= code < 300 and not response.body):
        return Judgement(Outcome.FAIL, told(response), failed=True)
    if 200 <= code < 300:
        if response.truncated == "length" and not keep_cut:
            return Judgement(Outcome.TOO_LARGE, "too large")
        return Judgement(Outcome.SUCCESS, told(response) if response.error else None)
    if code == 304:
        if conditional:
            return Judgement(Outcome.NOT_MODIFIED)
        return Judgement(Outcome.FAIL, "http 304: not modified, but we did not ask", failed=True)
    if code in PERMANENT or code in TEMPORARY:
        if not headers.location:
            return Judgement(Outcome.FAIL, f"http {code}: a redirect to nowhere")
        outcome = Outcome.REDIRECT_PERMANENT if code in PERMANENT else Outcome.REDIRECT_TEMPORARY
        return Judgement(outcome, location=headers.location)
    wait = retry_after(headers.retry_after, now)
    if code == TOO_MANY or (code == UNAVAILABLE and wait is not None):
        return Judgement(Outcome.RETRY_LATER, f"http {code}", wait, failed=not wait)
    if code == GONE_FOR_GOOD:
        return Judgement(Outcome.GONE_FOR_GOOD, f"http {code}")
    if 400 <= code < 500 and code not in AGAIN:
        return Judgement(Outcome.GONE, f"http {code}")
    return Judgement(Outcome.FAIL, f"http {code}", failed=code >= 500)


def told(response: Response) -> str:
    """An error as it is stored: its class first."""
    if not response.error:
        return "malformed: no status line"
    return f"{response.error}: {response.detail}"[:SHOWN] if response.detail else response.error


def retry_after(value: str | None, now: float) -> int | None:
    """Seconds to wait, from a number or a date; nothing if it is nonsense. The server's clock is not trusted: at most a week."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return min(int(value[:12]), LONGEST_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - datetime.fromtimestamp(now, UTC)).total_seconds()
    return int(min(max(seconds, 0), LONGEST_RETRY_AFTER))
