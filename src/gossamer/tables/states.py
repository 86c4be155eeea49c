"""The state machine as data: (what the crawl believes, what a fetch gave) → (what it believes then, when it asks again).

The update stage, docs/states.md and one test per cell derive from `TRANSITIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from gossamer.tables.statuses import Outcome, Status

HOUR = 3_600
DAY = 24 * HOUR
FAR = 90 * DAY  # nothing is scheduled further away
FIRST_RETRY = HOUR  # doubled with each failure
LONGEST_RETRY_AFTER = 7 * DAY  # what a server may ask for


class Schedule(IntEnum):
    """When a URL is due again, and what becomes of its count of failures; `SCHEDULES` says it in words."""

    CONTENT = 1
    UNCHANGED = 2
    REGULAR = 3
    RETRY = 4
    WAIT = 5
    GONE = 6
    FAR = 7
    STAY = 8


SCHEDULES: dict[Schedule, str] = {
    Schedule.CONTENT: "after its interval, which grows when the content is the same and shrinks when it has changed "
    "(`schedule.kind`); failures are forgotten.",
    Schedule.UNCHANGED: "after its interval, which grows; failures are forgotten.",
    Schedule.REGULAR: "after its interval as it is; failures are forgotten.",
    Schedule.RETRY: "after 1 h, doubled with each failure before this one, and one failure more; with `schedule.max_failures` in a row the URL is gone, "
    "and waits as a gone one.",
    Schedule.WAIT: "after as long as the server asked for, at most 7 days; no failure is counted.",
    Schedule.GONE: "after its interval, doubled with each failure in a row including this one, at most 90 days; one failure "
    "more.",
    Schedule.FAR: "after 90 days; failures are forgotten.",
    Schedule.STAY: "as before: nothing was tried.",
}


@dataclass(frozen=True)
class Transition:
    """One cell of the state machine."""

    status: Status
    schedule: Schedule


HAD_CONTENT = (Status.FETCHED, Status.NOT_MODIFIED, Status.DUPLICATE)
# Outcomes that lead to one status from everywhere; those left out keep the status.
LEADS_TO: dict[Outcome, tuple[Status | None, Schedule]] = {
    Outcome.SUCCESS: (Status.FETCHED, Schedule.CONTENT),
    Outcome.FAIL: (None, Schedule.RETRY),
    Outcome.GONE: (Status.GONE, Schedule.GONE),
    Outcome.GONE_FOR_GOOD: (Status.GONE, Schedule.FAR),
    Outcome.REDIRECT_TEMPORARY: (Status.REDIRECT_TEMPORARY, Schedule.REGULAR),
    Outcome.REDIRECT_PERMANENT: (Status.REDIRECT_PERMANENT, Schedule.REGULAR),
    Outcome.NOT_MODIFIED: (Status.NOT_MODIFIED, Schedule.UNCHANGED),
    Outcome.ROBOTS_DENIED: (Status.ROBOTS_DENIED, Schedule.REGULAR),
    Outcome.BLOCKED_ADDRESS: (Status.FILTERED, Schedule.FAR),
    Outcome.TOO_LARGE: (Status.TOO_LARGE, Schedule.FAR),
    Outcome.UNSUPPORTED: (Status.UNSUPPORTED, Schedule.FAR),
    Outcome.RETRY_LATER: (None, Schedule.WAIT),
    Outcome.FILTERED: (Status.FILTERED, Schedule.FAR),
    Outcome.UNTRIED: (None, Schedule.STAY),
}


def _transition(status: Status, outcome: Outcome) -> Transition:
    if outcome is Outcome.NOT_MODIFIED and status not in HAD_CONTENT:
        return Transition(status, Schedule.RETRY)  # since what? We have nothing: ask again, without a condition
    if outcome is Outcome.NOT_MODIFIED and status is Status.DUPLICATE:
        return Transition(status, Schedule.UNCHANGED)  # still the same page as another
    to, schedule = LEADS_TO[outcome]
    return Transition(status if to is None else to, schedule)


TRANSITIONS: dict[tuple[Status, Outcome], Transition] = {
    (status, outcome): _transition(status, outcome) for status in Status for outcome in Outcome
}
# A page in these states has no links any more: those counted for it are taken back.
WITHOUT_LINKS = (Status.GONE, Status.REDIRECT_TEMPORARY, Status.REDIRECT_PERMANENT)
