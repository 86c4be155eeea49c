"""The codes of int8 columns. Numbers are stored and never reused; names are what people see."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """What the crawl db believes of a URL."""

    UNFETCHED = 1
    FETCHED = 2
    GONE = 3
    REDIRECT_TEMPORARY = 4
    REDIRECT_PERMANENT = 5
    NOT_MODIFIED = 6
    DUPLICATE = 7
    ROBOTS_DENIED = 8
    FILTERED = 9
    TOO_LARGE = 10
    UNSUPPORTED = 11


class Outcome(IntEnum):
    """What one fetch of a URL gave."""

    SUCCESS = 1
    FAIL = 2  # time-out, 5xx, DNS: try again later
    GONE = 3  # 404
    GONE_FOR_GOOD = 4  # 410
    REDIRECT_TEMPORARY = 5
    REDIRECT_PERMANENT = 6
    NOT_MODIFIED = 7
    ROBOTS_DENIED = 8
    BLOCKED_ADDRESS = 9
    TOO_LARGE = 10
    UNSUPPORTED = 11
    RETRY_LATER = 12  # 429 or 503 with Retry-After: no failure counted
    FILTERED = 13
    UNTRIED = 14  # the round ended before its turn came


class PageKind(IntEnum):
    """What a URL leads to, as far as we know."""

    PAGE = 1
    FEED = 2
    SITEMAP = 3


class ParseStatus(IntEnum):
    """How parsing one document went."""

    OK = 1
    EMPTY = 2
    UNSUPPORTED = 3
    FAILED = 4
    TIMEOUT = 5
    CRASHED = 6
    ENCRYPTED = 7
    TOO_LARGE = 8


class LinkKind(IntEnum):
    """Where an outlink was found."""

    ANCHOR = 1
    AREA = 2
    LINK = 3
    FRAME = 4
    FORM = 5
    IMAGE = 6
    REDIRECT = 7
    CANONICAL = 8
    REFRESH = 9
    FEED = 10
    SITEMAP = 11


class ClusterKind(IntEnum):
    """Why documents are in one cluster."""

    EXACT = 1
    NEAR = 2
