"""Time as a value: a stage gets a Clock whose `now` is fixed when its run begins and reused when it is resumed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MILLISECOND = timedelta(milliseconds=1)


def truncate(moment: datetime) -> datetime:
    """`moment` in UTC, cut to milliseconds, as all stored timestamps are."""
    utc = moment.astimezone(UTC)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


def parse_time(text: str) -> datetime:
    """The moment an ISO 8601 text names; without an offset it is UTC."""
    moment = datetime.fromisoformat(text)
    return truncate(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def format_time(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and a Z."""
    return truncate(moment).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


@dataclass(frozen=True)
class Clock:
    """The one moment a run believes in."""

    now: datetime

    @classmethod
    def system(cls) -> Clock:
        """The wall clock, read once."""
        return cls(truncate(datetime.now(UTC)))

    @classmethod
    def at(cls, text: str) -> Clock:
        """The clock stopped at an ISO 8601 moment."""
        return cls(parse_time(text))
