"""generate: who is chosen, within which limits, and what a fetchlist carries along."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gossamer.errors import UsageError, VersionError
from gossamer.stages.generate.batches import batches as all_batches
from gossamer.stages.generate.best import best, best_within
from gossamer.storage import runs
from gossamer.storage.parquet import DELETED
from gossamer.tables import TABLES
from gossamer.tables.statuses import Status
from gossamer.urls import keys
from tests.stages.crawls import NOW, crawldb_version_2, write_rows
from tests.stages.generating import (
    add_hosts,
    add_rows,
    chosen,
    crawl_of,
    fetchlist,
    later,
    listed,
    pages,
    per_host,
)
from tests.stages.webs import Page, Web, fetch, store

CAP = "generate.max_per=100"
HOSTS = [*pages("a.example", 10), *pages("b.example", 100), *pages("c.example", 1000)]


def test_the_worked_example_on_every_engine(engine: Any, tmp_path: Path) -> None:
    """Ten, a hundred and a thousand URLs are due, a hundred of a host are allowed; all engines give the same list."""
    crawl = crawl_of(tmp_path, engine, HOSTS, CAP, inlinks=list(range(len(HOSTS))))
    (segment,) = crawl.generate(top=5000)
    rows = fetchlist(crawl, segment)
    assert per_host([row["url"] for row in rows]) == {"a.example": 10, "b.example": 100, "c.example": 100}
    best_of_c = set(pages("c.example", 1000)[900:])
    assert {row["url"] for row in rows if row["host"] == "c.example"} == best_of_c
    assert sum(row["position"] % 1_000_003 * (at + 1) for at, row in enumerate(rows)) == 10127508593, "another order"
    record = runs.load(crawl.files, "00000001-generate")
    assert record is not None
    assert record.drops == {"over the limit of its host": 900}


def test_a_plan_says_the_same(tmp_path: Path, embedded_inline: Any) -> None:
    """Whatever the number of shards, what is over a limit is not called below the top, as long as the top is not reached."""
    crawl = crawl_of(tmp_path, embedded_inline, HOSTS, CAP)
    fates = {key: n for key, n in crawl.plan(top=5000).items() if n}
    assert fates == {
        ("a.example", "chosen"): 10,
        ("b.example", "chosen"): 100,
        ("c.example", "chosen"): 100,
        ("c.example", "over the limit of its host"): 900,
    }
    assert sum(crawl.plan(top=50).values()) == len(HOSTS)


def test_a_plan_leaves_no_trace(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, HOSTS, CAP)
    add_rows(crawl, tmp_path, pages("b.example", 50), next_fetch=later_than_now(days=3), updated_at=later_than_now())
    add_hosts(crawl, tmp_path, a_example={"given_up_until": later_than_now(hours=1)})
    crawl.plan()  # the rules in force are kept with the crawl when they are first used
    before = sorted(Path(crawl.files.root).rglob("*"))
    urls = tmp_path / "urls"
    urls.write_text("https://a.example/p0\n")
    for options in ({}, {"top": 3, "batches": 2}, {"hours": 0.1}, {"urls": str(urls)}, {"frequency": "cold"}):
        fates = crawl.plan(**options)
        assert sum(fates.values()) == (0 if "frequency" in options else len(HOSTS))
        assert all(n >= 0 for n in fates.values())
    assert sorted(Path(crawl.files.root).rglob("*")) == before
    fates = crawl.plan()
    assert fates["a.example", "host is left alone"] == 10
    assert fates["b.example", "not due"] == 50
    assert fates["b.example", "chosen"] == 50


def later_than_now(**delta: float) -> Any:
    return NOW.now + timedelta(**delta)


def naive(rows: dict[str, float], limit: int, top: int) -> list[str]:
    """The best `limit` of each host, then the best of those."""
    kept: dict[str, int] = {}
    taken = []
    for url in sorted(rows, key=lambda url: -rows[url]):
        host = url.split("/")[2]
        if kept.get(host, 0) < limit:
            kept[host] = kept.get(host, 0) + 1
            taken.append(url)
    return sorted(taken[:top])


@pytest.mark.parametrize("seed", range(20))
def test_best_within_equals_a_naive_selection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6000))
    order_key = rng.permutation(count).astype(np.uint64)
    groups = rng.zipf(1.5, count) % int(rng.integers(1, 50))
    limits = (groups * 7 % int(rng.integers(1, 30))).astype(np.int64)
    top = int(rng.integers(1, count + 10))
    kept, over = best_within(order_key, groups, limits, top)
    seen: dict[int, int] = {}
    fitting: list[int] = []
    beyond: list[int] = []
    for place in np.argsort(order_key)[::-1].tolist():
        nth = seen[groups[place]] = seen.get(groups[place], -1) + 1
        (fitting if nth < limits[place] else beyond).append(place)
    assert kept.tolist() == fitting[:top]
    assert set(over.tolist()) <= set(beyond)
    if len(fitting) < top:
        assert sorted(over.tolist()) == sorted(beyond)
    assert best(order_key, top).tolist() == np.argsort(order_key)[::-1][:top].tolist()


def test_nothing_to_choose_from() -> None:
    nothing = np.empty(0, np.int64)
    kept, over = best_within(nothing.astype(np.uint64), nothing, nothing, 5)
    assert not len(kept)
    assert not len(over)


@pytest.mark.parametrize("seed", range(6))
def test_generate_equals_a_naive_selection(tmp_path: Path, embedded_inline: Any, seed: int) -> None:
    """Random hosts, some huge and popular; a batch is full while any host has URLs that are due."""
    rng = random.Random(seed)
    sizes = {f"h{n}.example": rng.choice([1, 3, 20, 150]) for n in range(rng.randrange(2, 9))}
    urls = [url for host, size in sizes.items() for url in pages(host, size)]
    cash = rng.sample(range(1, 10 * len(urls)), len(urls))
    limit, top = rng.choice([1, 5, 40]), rng.choice([3, 30, 1000])
    sets = (f"generate.max_per={limit}", 'score.chain=["cash"]')
    crawl = crawl_of(tmp_path, embedded_inline, urls, *sets, cash=[n * 1000 for n in cash])
    assert chosen(crawl, top=top) == naive(dict(zip(urls, cash, strict=True)), limit, top)


def test_batches_after_the_first_are_full_too(tmp_path: Path, embedded_inline: Any) -> None:
    """A host with many good URLs must not use up what a shard offers: poor ones of other hosts have their turn."""
    urls = [*pages("h.example", 3), *pages("k.example", 1), *pages("g.example", 10), *pages("e.example", 1)]
    sets = ("generate.max_per=2", 'score.chain=["cash"]')
    ranked = [100 - n for n in range(len(urls))]
    ranked[3], ranked[2] = 98, 50  # the third of h comes after g
    crawl = crawl_of(tmp_path, embedded_inline, urls, *sets, cash=[n * 10**6 for n in ranked])
    first, second = crawl.generate(top=3, batches=2)
    assert listed(crawl, first) == ["https://h.example/p0", "https://h.example/p1", "https://k.example/p0"]
    assert len(listed(crawl, second)) == 3


def naive_batches(rows: dict[str, float], limit: int, top: int, number: int) -> list[list[str]]:
    taken: list[list[str]] = []
    for _ in range(number):
        used = {url for batch in taken for url in batch}
        taken.append(naive({url: score for url, score in rows.items() if url not in used}, limit, top))
    return [batch for batch in taken if batch]


@pytest.mark.parametrize("seed", range(6))
def test_several_batches_equal_a_naive_selection(tmp_path: Path, embedded_inline: Any, seed: int) -> None:
    rng = random.Random(seed)
    urls = [url for n in range(7) for url in pages(f"h{n}.example", rng.choice([1, 2, 9, 60]))]
    cash = rng.sample(range(1, 10 * len(urls)), len(urls))
    limit, top, number = rng.choice([1, 2, 7]), rng.choice([2, 9, 25]), rng.choice([2, 3, 5])
    sets = (f"generate.max_per={limit}", 'score.chain=["cash"]')
    crawl = crawl_of(tmp_path, embedded_inline, urls, *sets, cash=[n * 1000 for n in cash])
    made = crawl.generate(top=top, batches=number)
    expected = naive_batches(dict(zip(urls, cash, strict=True)), limit, top, number)
    assert [listed(crawl, segment) for segment in made] == expected
    assert made == [f"r000001-{n + 1}" for n in range(len(expected))]


def test_per_domain(tmp_path: Path, embedded_inline: Any) -> None:
    urls = [u for host in ("example.org", "www.example.org", "a.example.org", "b.example") for u in pages(host, 5)]
    crawl = crawl_of(tmp_path, embedded_inline, urls, "generate.per=domain", "generate.max_per=4")
    (segment,) = crawl.generate()
    rows = fetchlist(crawl, segment)
    assert sorted(row["queue"] for row in rows) == ["b.example"] * 4 + ["example.org"] * 4


def test_per_address(tmp_path: Path, embedded_inline: Any) -> None:
    """Hosts of one address share its limit; where none is known the domain's counts."""
    hosts = ("a.example", "b.example", "c.example", "x.site.example", "y.site.example")
    urls = [url for host in hosts for url in pages(host, 5)]
    crawl = crawl_of(tmp_path, embedded_inline, urls, "generate.per=ip", "generate.max_per=3")
    known = {"a_example": "192.0.2.1", "b_example": "192.0.2.1", "c_example": "2001:db8::1"}
    add_hosts(crawl, tmp_path, **{name: {"address": address} for name, address in known.items()})
    (segment,) = crawl.generate()
    rows = fetchlist(crawl, segment)
    queues = sorted(row["queue"] for row in rows)
    assert queues == ["192.0.2.1"] * 3 + ["2001:db8::1"] * 3 + ["site.example"] * 3
    assert len({row["partition"] for row in rows if row["queue"] == "192.0.2.1"}) == 1


def test_partitions_queues_and_positions(tmp_path: Path, embedded_inline: Any) -> None:
    hosts = [f"{prefix}site{n}.example" for n in range(12) for prefix in ("", "www.")]
    crawl = crawl_of(tmp_path, embedded_inline, [u for h in hosts for u in pages(h, 6)], "generate.partitions=4")
    one, two = crawl.generate(top=72, batches=2)
    for segment in (one, two):
        rows = fetchlist(crawl, segment)
        of_domain: dict[int, set[int]] = {}
        for row in rows:
            of_domain.setdefault(row["domain_fp"], set()).add(row["partition"])
            assert row["queue"] == row["host"] == row["url"].split("/")[2]
            assert row["segment"] == segment
        assert all(len(found) == 1 for found in of_domain.values())
        assert len({row["partition"] for row in rows}) > 1
        assert all(0 <= row["partition"] < 4 for row in rows)
        in_order = [row["position"] for row in rows if row["partition"] == rows[0]["partition"]]
        assert in_order == sorted(in_order)
        by_url = sorted(rows, key=lambda row: str(row["url"]))
        assert [row["position"] for row in by_url] != sorted(row["position"] for row in by_url)
    positions = keys.positions(pa.array([row["url_fp"] for row in fetchlist(crawl, one)]), one)
    assert positions.to_pylist() == [row["position"] for row in fetchlist(crawl, one)]


def test_equal_scores_are_chosen_at_random_and_again_the_same(tmp_path: Path, embedded_inline: Any) -> None:
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        crawl = crawl_of(tmp_path / name, embedded_inline, pages("a.example", 200))
        found.append([chosen(crawl, top=20), chosen(crawl, top=20)])
    assert found[0] == found[1]
    assert not set(found[0][0]) & set(found[0][1])
    assert found[0][0] != sorted(pages("a.example", 20))


def test_a_live_batch_holds_its_urls(tmp_path: Path, embedded_inline: Any) -> None:
    urls = pages("a.example", 10)
    crawl = crawl_of(tmp_path, embedded_inline, urls, "generate.lease_hours=5")
    first = chosen(crawl, top=6)
    assert len(first) == 6
    assert crawl.plan()["a.example", "in a live batch"] == 6
    assert chosen(crawl) == sorted(set(urls) - set(first))
    assert crawl.generate() == []
    later(crawl, hours=4.9)
    assert crawl.generate() == []
    crawl.run("drop", segments=["r000001-1"])
    assert chosen(crawl) == first
    later(crawl, hours=0.2)
    assert chosen(crawl) == sorted(set(urls) - set(first)), "the second batch's lease has ended, the third's has not"
    states = [batch.state for batch in all_batches(crawl.files, crawl.snapshot, crawl.clock().now)]
    assert states == ["dropped", "expired", "live", "live"]


def test_leases_without_end_and_without_length(tmp_path: Path, embedded_inline: Any) -> None:
    for hours, again in ((1e12, []), (0, pages("a.example", 2))):
        (tmp_path / str(hours)).mkdir()
        crawl = crawl_of(tmp_path / str(hours), embedded_inline, pages("a.example", 2), f"generate.lease_hours={hours}")
        assert len(chosen(crawl)) == 2
        later(crawl, days=10_000)
        assert chosen(crawl) == again


def test_a_list_that_was_loaded_has_a_lease_too(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, pages("a.example", 2))
    chosen(crawl)
    rows = crawl.engine.collect(crawl.table("fetchlist"))
    crawl.run("drop", segments=["r000001-1"])
    path = tmp_path / "list.parquet"
    mine = rows.set_column(rows.column_names.index("segment"), "segment", [["mine"] * 2])
    crawl.load("fetchlist", write_rows(path, mine), segment="mine")
    assert crawl.generate() == []
    later(crawl, hours=73)
    assert len(chosen(crawl)) == 2


def test_a_list_of_urls(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, pages("a.example", 6))
    add_rows(crawl, tmp_path, ["https://b.example/p0"], next_fetch=later_than_now(days=9))
    first = tmp_path / "first"
    first.write_text("https://a.example/p0\n")
    assert chosen(crawl, urls=str(first)) == ["https://a.example/p0"]
    urls = tmp_path / "urls"
    urls.write_bytes(
        b"\xef\xbb\xbf# a comment\n\n https://a.example/p1 \r\nHTTPS://A.example/p1#x\nhttps://b.example/p0\n"
        b"https://unknown.example/\nno url\nhttps://a.example/\xff\n  # another\nhttps://a.example/p0\n"
    )
    assert chosen(crawl, urls=str(urls)) == ["https://a.example/p1", "https://b.example/p0"]
    record = runs.load(crawl.files, "00000003-generate")
    assert record is not None
    assert record.counters["asked"] == 4
    assert record.drops["in a live batch"] == 1
    assert record.drops["not in the list"] == 4
    bad = {reason: n for reason, n in record.drops.items() if reason.startswith("listed URL: ")}
    assert sum(bad.values()) == 2
    assert bad["listed URL: not UTF-8"] == 1


@pytest.mark.parametrize("data", [b"", b"# nothing\n\n", b"\xff\xfe\n", b"no url\n"])
def test_lists_without_urls(tmp_path: Path, embedded_inline: Any, data: bytes) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, pages("a.example", 2))
    (tmp_path / "urls").write_bytes(data)
    with pytest.raises(UsageError, match="there is no URL in it"):
        crawl.generate(urls=str(tmp_path / "urls"))
    assert crawl.snapshot.sets("fetchlist") == ()


@pytest.mark.parametrize(
    "options",
    [
        *({"top": -1}, {"top": 10**15}, {"batches": 0}),
        *({"hours": -1.0}, {"hours": float("nan")}, {"hours": float("inf")}),
        *({"urls": ""}, {"urls": "/no/such/file"}, {"urls": "/"}, {"frequency": "tepid"}, {"frequency": ""}),
    ],
)
def test_what_cannot_be_asked_for(tmp_path: Path, embedded_inline: Any, options: dict[str, Any]) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, pages("a.example", 2))
    for act in (crawl.generate, crawl.plan):
        with pytest.raises(UsageError):
            act(**options)
    assert crawl.snapshot.id == 1


def test_hours(tmp_path: Path, embedded_inline: Any) -> None:
    """As many of a host as fit at its own pace: delay, or robots' longer one, and the time an answer takes."""
    names = ("plain", "slow", "robots", "distant")
    crawl = crawl_of(tmp_path, embedded_inline, [u for n in names for u in pages(f"{n}.example", 100)])
    add_hosts(
        crawl,
        tmp_path,
        slow_example={"delay_ms": 4000, "crawl_delay_ms": 2000},
        robots_example={"delay_ms": 1000, "crawl_delay_ms": 10_000},
        distant_example={"latency_ms": 1000},
    )
    found = per_host(chosen(crawl, hours=40 / 3600))
    assert found == {"plain.example": 40, "slow.example": 10, "robots.example": 4, "distant.example": 20}
    crawl.run("drop", segments=["r000001-1"])
    one, two = crawl.generate(hours=40 / 3600, batches=2)
    assert per_host(listed(crawl, one)) == per_host(listed(crawl, two)) == found
    for segment in ("r000002-1", "r000002-2"):
        crawl.run("drop", segments=[segment])
    assert len(chosen(crawl, hours=1e300)) == 400


@pytest.mark.parametrize("shards", [1, 4])
def test_the_slowest_host_sets_the_pace_of_its_domain(tmp_path: Path, embedded_inline: Any, shards: int) -> None:
    """However the crawldb is cut: a limit belongs to the whole domain."""
    urls = [url for host in ("fast.site.example", "slow.site.example") for url in pages(host, 100)]
    crawl = crawl_of(tmp_path, embedded_inline, urls, "generate.per=domain")
    crawl.run("reshard", shards=shards)
    add_hosts(crawl, tmp_path, slow_site_example={"delay_ms": 10_000}, fast_site_example={"delay_ms": 10})
    assert len(chosen(crawl, hours=100 / 3600)) == 10


def test_hosts_that_were_given_up_are_left_alone(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, [*pages("a.example", 3), *pages("b.example", 2)])
    add_hosts(
        crawl,
        tmp_path,
        a_example={"given_up_until": later_than_now(hours=2)},
        b_example={"given_up_until": later_than_now(hours=-2)},
    )
    assert per_host(chosen(crawl)) == {"b.example": 2}
    later(crawl, hours=2)
    assert per_host(chosen(crawl)) == {"a.example": 3}


def test_filters_of_today(tmp_path: Path, embedded_inline: Any) -> None:
    urls = [*pages("a.example", 3), "https://a.example/" + "x" * 100, "https://b.example/a/b/c/d/e"]
    sets = ("generate.filter=true", "filters.max_length=50", "filters.max_segments=4")
    crawl = crawl_of(tmp_path, embedded_inline, urls, *sets)
    assert chosen(crawl) == pages("a.example", 3)
    record = runs.load(crawl.files, "00000001-generate")
    assert record is not None
    assert len(record.drops) == 2
    assert all(reason.startswith("filter: ") and n == 1 for reason, n in record.drops.items())
    assert crawl.generate() == []


def test_gone_and_linked_since_is_due_again(tmp_path: Path, embedded_inline: Any) -> None:
    far = later_than_now(days=80)
    crawl = crawl_of(tmp_path, embedded_inline)
    for name, status, linked in (
        ("back", Status.GONE, later_than_now(hours=-1)),
        ("gone", Status.GONE, later_than_now(days=-9)),
        ("unlinked", Status.GONE, None),
        ("fetched", Status.FETCHED, later_than_now(hours=-1)),
    ):
        rest = {"next_fetch": far, "updated_at": later_than_now(days=-2), "linked_at": linked}
        add_rows(crawl, tmp_path, [f"https://a.example/{name}"], status=int(status), **rest)
    add_rows(crawl, tmp_path, ["https://a.example/never-scheduled"], next_fetch=None)
    assert chosen(crawl) == ["https://a.example/back", "https://a.example/never-scheduled"]


def test_due_to_the_millisecond(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, ["https://a.example/"], next_fetch=later_than_now(milliseconds=1))
    assert crawl.generate() == []
    later(crawl, milliseconds=1)
    assert len(crawl.generate()) == 1


def test_an_empty_crawl(engine: Any, tmp_path: Path) -> None:
    crawl = crawl_of(tmp_path, engine)
    assert crawl.generate() == []
    assert sum(crawl.plan().values()) == 0
    assert crawl.snapshot.sets("fetchlist") == ()


def test_another_schema_version_is_told(tmp_path: Path, embedded_inline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, pages("a.example", 2))
    monkeypatch.setitem(TABLES, "crawldb", crawldb_version_2())
    with pytest.raises(VersionError, match="gossamer migrate"):
        crawl.generate()
    crawl.run("migrate")
    assert len(chosen(crawl)) == 2


def test_a_list_carries_the_state_of_the_merged_row(tmp_path: Path, embedded_inline: Any) -> None:
    """Base and change sets that disagree, rows that were taken out, one that came back."""
    urls = pages("a.example", 5)
    old, new = later_than_now(days=-20), later_than_now(days=-5)
    crawl = crawl_of(tmp_path, embedded_inline)
    add_rows(crawl, tmp_path, urls, updated_at=old, etag="old", segment="r0", inlinks=1, meta=[[("k", "old")]] * 5)
    crawl.run("compact", table="crawldb")
    changed = {"status": 2, "etag": "new", "payload_digest": "sha", "segment": "r7", "parsed": "r6", "failures": 3}
    add_rows(crawl, tmp_path, urls[:2], updated_at=new, inlinks=2, interval_s=777, meta=[[("k", "new")]] * 2, **changed)
    add_rows(crawl, tmp_path, urls[1:2], updated_at=later_than_now(days=-9), etag="stale", inlinks=4)
    add_rows(crawl, tmp_path, urls[2:4], updated_at=new, **{DELETED: True})
    add_rows(crawl, tmp_path, urls[3:4], updated_at=old, etag="anew", inlinks=9)
    (segment,) = crawl.generate()
    rows = {row["url"]: row for row in fetchlist(crawl, segment)}
    assert sorted(rows) == [urls[0], urls[1], urls[3], urls[4]]
    stored = crawl.engine.collect(crawl.table("crawldb")).to_pylist()
    merged = {row["url"]: row | {"fetched_in": row["segment"]} for row in stored}
    shared = [c for c in TABLES["fetchlist"].names if c in (*TABLES["crawldb"].names, "fetched_in") and c != "segment"]
    assert {"etag", "failures", "interval_s", "parsed", "fetched_in", "status", "updated_at"} <= set(shared)
    for url, row in rows.items():
        expected = {name: merged[url][name] for name in shared} | {"meta": dict(merged[url]["meta"] or ())}
        assert {name: row[name] for name in shared} == expected
    assert (rows[urls[1]]["etag"], rows[urls[1]]["interval_s"], rows[urls[1]]["meta"]) == ("new", 777, {"k": "new"})
    assert rows[urls[3]]["etag"] == "anew"


def test_urls_with_a_password_come_back_whole(tmp_path: Path, embedded_inline: Any) -> None:
    """They cannot be made from row keys."""
    urls = ["https://user:secret@a.example/p", "https://a.example/p2", "http://[2001:db8::1]:81/x", "http://192.0.2.7/"]
    crawl = crawl_of(tmp_path, embedded_inline, urls)
    assert chosen(crawl) == sorted(urls)


@pytest.mark.parametrize("filtered", ["false", "true"])
@pytest.mark.parametrize("compacted", [False, True])
def test_equal_fingerprints_stop_nothing(tmp_path: Path, embedded_inline: Any, filtered: str, compacted: bool) -> None:
    urls = pages("a.example", 4)
    forged = [keys.fingerprint(urls[0])] * 2 + [keys.fingerprint(url) for url in urls[2:]]
    crawl = crawl_of(tmp_path, embedded_inline, urls[:3], f"generate.filter={filtered}", url_fp=forged[:3])
    if compacted:
        crawl.run("compact", table="crawldb")
    add_rows(crawl, tmp_path, ["https://a.example/later"], url_fp=forged[:1], etag="e")
    found = chosen(crawl)
    assert len(found) == 2
    assert urls[2] in found
    assert sum(crawl.plan().values()) == 3


def test_update_lets_go_of_a_batch(tmp_path: Path, embedded_inline: Any) -> None:
    """What was fetched is due when its schedule says so, what was not fetched at once."""
    urls = pages("a.example", 4)
    crawl = crawl_of(tmp_path, embedded_inline, urls, "generate.lease_hours=100000")
    (segment,) = crawl.generate()
    web = Web({url: Page() for url in urls})
    store(crawl, segment, [fetch(web, url, NOW.now, segment) for url in urls[:3]])
    crawl.update(segment)
    assert chosen(crawl) == urls[3:]
    later(crawl, days=91)
    assert chosen(crawl) == urls[:3], "the fourth is in a live batch"
