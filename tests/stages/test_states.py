"""The state machine: one test per cell, on every engine. What must come out is written down here once more, by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.tables.states import TRANSITIONS
from gossamer.tables.statuses import Outcome, Status
from tests.stages.crawls import NOW, seed_rows, write_rows
from tests.stages.webs import publish, rows

HOUR, DAY = 3600, 86400
INTERVAL = 10 * DAY
FAILURES = 2  # so far, for every URL
SEGMENT = "r000001-1"
LATER = NOW.now + timedelta(hours=6)  # when the update runs
UNKNOWN = "unknown"  # no row in the crawldb: a redirect led here
SAME = ""
KNEW_CONTENT = ("FETCHED", "NOT_MODIFIED", "DUPLICATE")

# outcome → status (empty: as it was), seconds until due (None: as before), failures
EXPECTED: dict[str, tuple[str, int | None, int]] = {
    "SUCCESS": ("FETCHED", INTERVAL, 0),
    "FAIL": (SAME, 4 * HOUR, 3),
    "GONE": ("GONE", 80 * DAY, 3),
    "GONE_FOR_GOOD": ("GONE", 90 * DAY, 0),
    "REDIRECT_TEMPORARY": ("REDIRECT_TEMPORARY", INTERVAL, 0),
    "REDIRECT_PERMANENT": ("REDIRECT_PERMANENT", INTERVAL, 0),
    "NOT_MODIFIED": ("NOT_MODIFIED", 14 * DAY, 0),
    "ROBOTS_DENIED": ("ROBOTS_DENIED", INTERVAL, 0),
    "BLOCKED_ADDRESS": ("FILTERED", 90 * DAY, 0),
    "TOO_LARGE": ("TOO_LARGE", 90 * DAY, 0),
    "UNSUPPORTED": ("UNSUPPORTED", 90 * DAY, 0),
    "RETRY_LATER": (SAME, 2 * HOUR, 2),
    "FILTERED": ("FILTERED", 90 * DAY, 0),
    "UNTRIED": (SAME, None, 2),
}
CELLS = [(status, outcome.name) for status in (*(s.name for s in Status), UNKNOWN) for outcome in Outcome]


def url_of(status: str, outcome: str) -> str:
    return f"https://{status.lower().replace('_', '-')}.example/{outcome.lower()}"


def expected(status: str, outcome: str) -> dict[str, Any]:
    """Status, wait and failures by the table above and its exceptions."""
    to, wait, failures = EXPECTED[outcome]
    if outcome == "NOT_MODIFIED" and status not in KNEW_CONTENT:
        to, wait, failures = SAME, 4 * HOUR, 3  # nothing to be unmodified
    if outcome == "NOT_MODIFIED" and status == "DUPLICATE":
        to = "DUPLICATE"
    if status == UNKNOWN:  # no failures yet, the default interval
        fresh = {"FAIL": (HOUR, 1), "NOT_MODIFIED": (HOUR, 1), "GONE": (60 * DAY, 1), "RETRY_LATER": (2 * HOUR, 0)}
        wait, failures = fresh.get(outcome, (wait if wait == 90 * DAY else 30 * DAY, 0))
    before = "UNFETCHED" if status == UNKNOWN else status
    due = NOW.now if wait is None else LATER + timedelta(seconds=wait)
    return {"status": Status[to or before].name, "next_fetch": due, "failures": failures}


@pytest.fixture(scope="module")
def updated(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """A crawl with a URL in every state, each fetched with every outcome, after the update."""
    folder: Path = tmp_path_factory.mktemp("states")
    with Crawl.init(str(folder / "crawl"), shards=2, clock=NOW, engine=engine) as crawl:
        crawl.clock = lambda: NOW
        known = [(s, o) for s, o in CELLS if s != UNKNOWN]
        crawl.load("crawldb", write_rows(folder / "rows.parquet", _known(known)))
        urls = [url_of(*cell) for cell in CELLS]
        at = [NOW.now + timedelta(hours=1)] * len(urls)
        outcomes = [int(Outcome[o]) for _, o in CELLS]
        fetched = rows(
            "fetch", urls, segment=SEGMENT, outcome=outcomes, fetched_at=at, retry_after_s=[2 * HOUR] * len(urls)
        )
        nothing = [("parse", rows("parse", [], segment=[])), ("outlinks", rows("outlinks", [], segment=[]))]
        publish(crawl, SEGMENT, {"fetch": fetched, **dict(nothing)})
        crawl.clock = lambda: Clock(LATER)
        crawl.update(SEGMENT)
        found = crawl.engine.collect(
            crawl.table("crawldb").select("url", "status", "next_fetch", "failures")
        ).to_pylist()
    return {row["url"]: row for row in found}


def _known(cells: list[tuple[str, str]]) -> pa.Table:
    count = len(cells)
    had = [s in KNEW_CONTENT for s, _ in cells]
    return seed_rows(
        [url_of(*cell) for cell in cells],
        status=[int(Status[s]) for s, _ in cells],
        failures=[FAILURES] * count,
        interval_s=[INTERVAL] * count,
        signature=[1 if h else None for h in had],
        fetched_at=[NOW.now - timedelta(days=1) if s != "UNFETCHED" else None for s, _ in cells],
    )


@pytest.mark.parametrize(("status", "outcome"), CELLS, ids=lambda name: name.lower())
def test_every_cell(updated: dict[str, dict[str, Any]], status: str, outcome: str) -> None:
    url = url_of(status, outcome)
    if status == UNKNOWN and outcome == "UNTRIED":
        assert url not in updated  # nothing was tried: nothing is known
        return
    row = updated[url]
    found = {"status": Status(row["status"]).name, "next_fetch": row["next_fetch"], "failures": row["failures"]}
    assert found == expected(status, outcome)


def test_the_table_has_every_cell() -> None:
    assert set(TRANSITIONS) == {(status, outcome) for status in Status for outcome in Outcome}
    assert set(EXPECTED) == {outcome.name for outcome in Outcome}
