"""Servers that ask to be left alone for a while: 429 and 503 with Retry-After in all its forms."""

from __future__ import annotations

import time
from email.utils import formatdate

from tests.hostile.behaviours.base import BEHAVIOURS, POLITENESS, Behaviour, Request, Writer, add, page

FORMS = {
    "seconds": ("`?s=` seconds (120)", "retry_later, retry_after_s 120"),
    "date": ("an HTTP date `?s=` seconds from now (120)", "retry_later, retry_after_s about 120, by our clock"),
    "past": ("an HTTP date of long ago", "retry_later, retry_after_s 0 or none"),
    "negative": ("-5", "retry_later, retry_after_s none"),
    "fraction": ("1.5", "retry_later, retry_after_s none or 2"),
    "huge": ("10^30 seconds", "retry_later, retry_after_s at its largest; no overflow"),
    "far": ("an HTTP date of the year 9999", "retry_later, retry_after_s at its largest; no overflow"),
    "words": ("words", "retry_later, retry_after_s none"),
    "empty": ("nothing", "retry_later, retry_after_s none"),
    "none": ("no such header", "retry_later or fail, retry_after_s none"),
}


def value(form: str, seconds: int) -> str | None:
    """Retry-After in one of its forms."""
    given: dict[str, str | None] = {
        "seconds": str(seconds),
        "date": formatdate(time.time() + seconds, usegmt=True),
        "past": "Sun, 06 Nov 1994 08:49:37 GMT",
        "negative": "-5",
        "fraction": "1.5",
        "huge": "1" + "0" * 30,
        "far": "Fri, 31 Dec 9999 23:59:59 GMT",
        "words": "when the moon is full",
        "empty": "",
        "none": None,
    }
    return given[form]


def _add(status: int, form: str) -> None:
    async def answer(request: Request, writer: Writer) -> None:
        after = value(form, request.count("s", 120))
        await writer.answer(status, page("Not now", 500), {} if after is None else {"Retry-After": after})

    what, expect = FORMS[form]
    add(
        Behaviour(f"retry-{status}-{form}", f"{status} with Retry-After: {what}.", POLITENESS, expect, answer),
        BEHAVIOURS,
    )


for _status in (429, 503):
    for _form in FORMS:
        _add(_status, _form)
