"""Statistics of the crawldb, the same on every engine as counted by hand."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from gossamer.engine.base import Engine
from gossamer.tables import stats
from tests.stages.crawls import NOW

STATUSES = ["fetched", "unfetched", "gone", "not_modified", "duplicate", None]
HOSTS = ["www.a.co.uk", "b.a.co.uk", "a.example", "192.0.2.1", None]


def test_by_hand(engine: Engine) -> None:
    pairs = [(HOSTS[n % 5], STATUSES[n % 6]) for n in range(97)]
    due = [n % 3 == 0 for n in range(97)]
    moment = pa.array([NOW.now.timestamp() * 1e6 + (-n if now else n) for n, now in enumerate(due)]).cast(pa.int64())
    when = moment.cast(pa.timestamp("us", "UTC"))
    rows = pa.table(
        {
            "host": pa.array([host for host, _ in pairs], pa.string()),
            "status": pa.array([status for _, status in pairs], pa.string()),
            "next_fetch": when,
            "first_seen": when,
            "updated_at": when,
            "linked_at": pa.nulls(97, when.type),
        }
    )
    counts = stats.counted(engine, engine.values(rows), NOW.now)
    (total,) = engine.collect(stats.total(counts)).to_pylist()
    assert (total["urls"], total["due"], total["oldest"]) == (97, sum(due), min(when.to_pylist()))
    domains = engine.collect(stats.grouped(counts, "domain")).to_pylist()
    names = {"www.a.co.uk": "a.co.uk", "b.a.co.uk": "a.co.uk"}
    expected = Counter(names.get(str(host), host) for host, _ in pairs)
    assert {row["domain"]: row["urls"] for row in domains} == expected
    assert domains[0]["domain"] == "a.co.uk"
    assert sum(row["fetched"] for row in domains) == sum(s in ("fetched", "not_modified") for _, s in pairs)
    assert {row["tld"]: row["urls"] for row in engine.collect(stats.grouped(counts, "tld")).to_pylist()} == Counter(
        None if host in (None, "192.0.2.1") else str(host).rsplit(".", 1)[-1] for host, _ in pairs
    )
    assert sum(row["due"] for row in engine.collect(stats.grouped(counts, "status")).to_pylist()) == sum(due)
