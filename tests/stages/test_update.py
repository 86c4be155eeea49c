"""update: links, cash, depth, targets, schedules; what happens when segments come twice, late, unlisted or unparsed."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gossamer.clock import Clock
from gossamer.crawl import Crawl
from gossamer.engine.base import Engine
from gossamer.errors import UsageError
from gossamer.tables.statuses import LinkKind, Outcome, PageKind, ParseStatus, Status
from tests.stages.crawls import NOW, content, seed_rows, seeded, write_rows
from tests.stages.webs import Fetched, publish, rows, store

A, B, C, D = (f"https://{name}.example/" for name in "abcd")
DAY = 86400


@pytest.fixture
def crawl(tmp_path: Path, embedded: Engine) -> Crawl:
    return seeded(tmp_path, embedded, [A, B])


def page(url: str, *links: str, segment: str = "s1", hours: float = 1, **facts: Any) -> Fetched:
    at = NOW.now + timedelta(hours=hours)
    return Fetched(url, Outcome.SUCCESS, at, segment, signature=1, digest="x", links=links, **facts)


def lost(url: str, outcome: Outcome, segment: str = "s1", hours: float = 1, **facts: Any) -> Fetched:
    return Fetched(url, outcome, NOW.now + timedelta(hours=hours), segment, **facts)


def update(crawl: Crawl, *segments: str, hours: float = 2) -> Any:
    crawl.clock = partial(Clock, NOW.now + timedelta(hours=hours))
    return crawl.update(*segments)


def found(crawl: Crawl, *columns: str) -> dict[str, Any]:
    """URL → the value (or values) of some columns."""
    table = crawl.engine.collect(crawl.table("crawldb").select("url", *columns)).to_pylist()
    return {row["url"]: row[columns[0]] if len(columns) == 1 else tuple(row[c] for c in columns) for row in table}


def test_links_are_entered_with_depth_referrer_and_schedule(crawl: Crawl) -> None:
    store(crawl, "s1", [page(A, C, D, A), page(B, C)])
    record = update(crawl, "s1")
    now = NOW.now + timedelta(hours=2)
    facts = found(crawl, "inlinks", "depth", "via", "status", "next_fetch", "first_seen", "interval_s", "kind")
    assert facts[C] == (2, 1, A, Status.UNFETCHED, now, now, 30 * DAY, PageKind.PAGE)
    assert facts[D] == (1, 1, A, Status.UNFETCHED, now, now, 30 * DAY, PageKind.PAGE)
    assert facts[A][:3] == (0, 0, None)  # a link to itself is none
    assert record.counters["links_counted"] == 3
    assert record.drops["link to itself"] == 1


def test_a_shorter_way_is_found_and_the_first_referrer_stays(crawl: Crawl) -> None:
    store(crawl, "s1", [page(A, C)])
    update(crawl, "s1")
    store(crawl, "s2", [page(C, D, segment="s2", hours=3)])
    update(crawl, "s2", hours=4)
    assert found(crawl, "depth", "via")[D] == (2, C)
    store(crawl, "s3", [page(B, D, segment="s3", hours=5)])
    update(crawl, "s3", hours=6)
    assert found(crawl, "depth", "via", "inlinks")[D] == (1, C, 2)


def test_cash_is_conserved_and_spent_once(crawl: Crawl) -> None:
    store(crawl, "s1", [page(A, B, C, D), page(B)])
    update(crawl, "s1")
    cash = found(crawl, "cash")
    assert cash == {A: 1, B: 1_333_333, C: 333_333, D: 333_333}  # B has no links to give to
    assert sum(cash.values()) == 2_000_000
    update(crawl, "s1", hours=3)
    assert found(crawl, "cash") == cash


def test_only_the_first_links_of_a_page_are_taken(tmp_path: Path, embedded: Engine) -> None:
    crawl = seeded(tmp_path, embedded, [A], sets=["links.max_per_page=3"])
    store(crawl, "s1", [page(A, *(f"https://x.example/{n}" for n in (5, 4, 3, 2, 1)))])
    record = update(crawl, "s1")
    assert sorted(found(crawl, "inlinks")) == [A, *(f"https://x.example/{n}" for n in (3, 4, 5))]
    assert record.drops == {"beyond links.max_per_page": 2}


def test_a_page_adds_only_so_many_urls_nobody_knew(tmp_path: Path, embedded: Engine) -> None:
    crawl = seeded(tmp_path, embedded, [A, B, C, D], sets=["links.max_new_per_page=2"])
    new = [f"https://x.example/{n}" for n in (4, 3, 2, 1)]
    store(crawl, "s1", [page(A, new[0], B, new[1], C, new[2], D, new[3]), page(B, *new[2:])])
    record = update(crawl, "s1")
    assert found(crawl, "inlinks") == {A: 0, B: 1, C: 1, D: 1, **dict.fromkeys(new, 1)}
    assert record.drops == {"beyond links.max_new_per_page": 2}
    store(crawl, "s2", [page(A, *new, segment="s2", hours=3)])
    update(crawl, "s2", hours=4)  # now all of them are known
    assert found(crawl, "inlinks") == {A: 0, B: 0, C: 0, D: 0, new[0]: 1, new[1]: 1, new[2]: 2, new[3]: 2}


@pytest.mark.parametrize("follow", [False, True])
def test_nofollow(tmp_path: Path, embedded: Engine, follow: bool) -> None:
    crawl = seeded(tmp_path, embedded, [A], sets=[f"links.follow_nofollow={str(follow).lower()}"])
    store(crawl, "s1", [page(A)])
    links = rows(
        "outlinks", [B, C, D], segment="s1", nofollow=[True, False, None], ugc=[None, True, False], **_from(A, 3)
    )
    publish(crawl, "s1", {"outlinks": links})
    update(crawl, "s1")
    assert set(found(crawl, "inlinks")) == ({A, B, C, D} if follow else {A, D})


def test_a_sitemap_enters_urls_with_their_interval_and_counts_no_links(crawl: Crawl) -> None:
    store(crawl, "s1", [page(A)])
    told = {"kind": [int(LinkKind.SITEMAP)] * 4, "change_interval_s": [DAY, 1, None, 10**9]}
    publish(crawl, "s1", {"outlinks": rows("outlinks", [B, C, D, f"{D}x"], segment="s1", **told, **_from(A, 4))})
    record = update(crawl, "s1")
    assert record.counters["links_entered"] == 4
    facts = found(crawl, "inlinks", "interval_s")
    assert facts[B] == (0, 30 * DAY)  # known before: its interval stays
    assert facts[C] == (0, 3600)  # no faster than the schedule allows
    assert facts[D] == (0, 30 * DAY)
    assert facts[f"{D}x"] == (0, 90 * DAY)


def _from(url: str, count: int) -> dict[str, Any]:
    """Source columns of links."""
    made = rows("parse", [url] * count, segment="s1")
    return {f"src_{name}": made.column(name).combine_chunks() for name in ("domain_fp", "url_fp", "rowkey", "url")}


def test_redirect_and_canonical_targets_are_entered(crawl: Crawl) -> None:
    other = f"{A}other"
    store(crawl, "s1", [page(A, canonical=other), lost(B, Outcome.REDIRECT_TEMPORARY, target=C)])
    update(crawl, "s1")
    facts = found(crawl, "status", "target", "depth", "via", "inlinks")
    assert facts[A] == (Status.FETCHED, other, 0, None, 0)
    assert facts[B] == (Status.REDIRECT_TEMPORARY, C, 0, None, 0)
    assert facts[other] == (Status.UNFETCHED, None, 0, A, 0)
    assert facts[C] == (Status.UNFETCHED, None, 0, B, 0)


def test_a_canonical_on_another_domain_is_not_believed(crawl: Crawl) -> None:
    store(crawl, "s1", [page(A, canonical="https://evil.test/")])
    update(crawl, "s1")
    assert found(crawl, "target") == {A: None, B: None}


def test_links_of_a_page_that_is_gone_or_moved_are_taken_back(crawl: Crawl) -> None:
    store(crawl, "s1", [page(A, C), page(B, C)])
    update(crawl, "s1")
    gone = [lost(A, Outcome.GONE, "s2", 3), lost(B, Outcome.REDIRECT_PERMANENT, "s2", 3, target=D)]
    store(crawl, "s2", gone)
    update(crawl, "s2", hours=4)
    assert found(crawl, "inlinks", "unlinked_at")[C] == (0, NOW.now + timedelta(hours=4))
    assert found(crawl, "parsed")[A] is None


def test_a_failure_takes_nothing_back(crawl: Crawl) -> None:
    store(crawl, "s1", [page(A, C)])
    update(crawl, "s1")
    store(crawl, "s2", [lost(A, Outcome.FAIL, "s2", 3)])
    update(crawl, "s2", hours=4)
    assert found(crawl, "inlinks")[C] == 1
    store(crawl, "s3", [page(A, D, segment="s3", hours=5)])
    update(crawl, "s3", hours=6)
    assert found(crawl, "inlinks")[C] == 0
    assert found(crawl, "inlinks")[D] == 1


def test_an_older_fetch_changes_nothing(crawl: Crawl) -> None:
    store(crawl, "new", [page(A, C, segment="new", hours=5)])
    store(crawl, "old", [lost(A, Outcome.GONE, "old", 1)])
    update(crawl, "new", hours=6)
    before = content(crawl)
    record = update(crawl, "old", hours=7)
    assert record.drops == {"older than what is known": 1}
    assert content(crawl).equals(before)


def test_several_segments_at_once_are_the_same_as_one_by_one(tmp_path: Path, embedded: Engine) -> None:
    tables = []
    for name in ("at once", "one by one"):
        (tmp_path / name).mkdir()
        crawl = seeded(tmp_path / name, embedded, [A, B])
        store(crawl, "s1", [lost(A, Outcome.FAIL, "s1", 1), page(B, C, D)])
        store(crawl, "s2", [lost(A, Outcome.FAIL, "s2", 2), page(B, D, segment="s2", hours=2)])
        for segments in [("s1", "s2")] if name == "at once" else [("s1",), ("s2",)]:
            update(crawl, *segments, hours=3)
        tables.append(found(crawl, "status", "failures", "next_fetch", "parsed", "segment"))
        links = found(crawl, "inlinks")
        assert links[D] == 1
        assert links.get(C, 0) == 0  # at once it is not even entered
        tables[-1].pop(C, None)
    assert tables[0] == tables[1]


def test_parsed_after_the_update(crawl: Crawl) -> None:
    bare = Fetched(A, Outcome.SUCCESS, NOW.now + timedelta(hours=1), "s1", digest="x")
    store(crawl, "s1", [bare])
    update(crawl, "s1")
    due = found(crawl, "next_fetch", "interval_s")
    store(crawl, "s1", [page(A, C)])
    record = update(crawl, "s1", hours=5)
    assert record.counters["again"] == 1
    assert found(crawl, "inlinks")[C] == 1
    assert found(crawl, "next_fetch", "interval_s")[A] == due[A]
    assert found(crawl, "signature", "parsed")[A] == (1, "s1")


def test_the_state_survives_a_compaction_between_generate_and_update(tmp_path: Path, embedded: Engine) -> None:
    tables = []
    for compact in (False, True):
        (tmp_path / str(compact)).mkdir()
        crawl = seeded(tmp_path / str(compact), embedded, [A, B])
        (segment,) = crawl.generate(top=10)
        if compact:
            crawl.compact("crawldb")
        store(crawl, segment, [page(A, C, segment=segment), lost(B, Outcome.FAIL, segment)])
        update(crawl, segment)
        tables.append(content(crawl))
    assert tables[0].equals(tables[1])


def test_what_changed_since_the_list_was_made_counts(crawl: Crawl) -> None:
    """A second batch fetched A meanwhile, without compaction."""
    crawl.compact("crawldb")
    (segment,) = crawl.generate(top=10)
    crawl.run("drop", segments=[segment])
    store(crawl, "meanwhile", [lost(A, Outcome.FAIL, "meanwhile", 1), page(B, C, segment="meanwhile")])
    crawl.clock = partial(Clock, NOW.now + timedelta(hours=2))
    crawl.run("update", segments=["meanwhile"])
    store(crawl, segment, [lost(A, Outcome.FAIL, segment, 3), page(B, D, segment=segment, hours=3)])
    crawl.run("update", segments=[segment])
    assert found(crawl, "failures")[A] == 2
    assert found(crawl, "inlinks")[C] == 0
    assert found(crawl, "cash")[D] == 0  # B had spent its cash on C


def test_a_url_that_was_fetched_without_being_listed_is_looked_up(crawl: Crawl) -> None:
    crawl.load(
        "crawldb", write_rows(Path(crawl.files.root) / "c.parquet", seed_rows([C], failures=[3], interval_s=[DAY]))
    )
    crawl.compact("crawldb")
    (segment,) = crawl.generate(top=2, urls=_list(crawl, A))
    store(crawl, segment, [lost(A, Outcome.REDIRECT_PERMANENT, segment, target=C), lost(C, Outcome.FAIL, segment)])
    update(crawl, segment)
    assert found(crawl, "failures", "interval_s")[C] == (4, DAY)


def _list(crawl: Crawl, *urls: str) -> str:
    path = Path(crawl.files.root) / "list.txt"
    path.write_text("\n".join(urls))
    return str(path)


def test_metadata_and_facts_of_other_stages_are_kept(tmp_path: Path, embedded: Engine) -> None:
    facts = {"meta": [[("k", "v")]], "useful": [True], "rank": [7], "seed": ["list"]}
    crawl = Crawl.init(str(tmp_path / "crawl"), shards=2, clock=NOW, engine=embedded)
    crawl.clock = lambda: NOW
    crawl.load("crawldb", write_rows(tmp_path / "a.parquet", seed_rows([A], **facts)))
    (segment,) = crawl.generate(top=1)
    store(crawl, segment, [page(A, segment=segment)])
    update(crawl, segment)
    assert found(crawl, "meta", "useful", "rank", "seed") == {A: ([("k", "v")], True, 7, "list")}


@pytest.mark.parametrize(
    ("kind", "signatures", "intervals"),
    [
        ("adaptive", [1, 1, 2, 2], [30, 42, 33.6, 47.04]),
        ("fixed", [1, 1, 2, 2], [30, 30, 30, 30]),
    ],
)
def test_the_interval_follows_the_content(
    tmp_path: Path, embedded: Engine, kind: str, signatures: list[int], intervals: list[float]
) -> None:
    crawl = seeded(tmp_path, embedded, [A], sets=[f"schedule.kind={kind}"])
    for n, (signature, days) in enumerate(zip(signatures, intervals, strict=True)):
        fetched = page(A, segment=f"s{n}", hours=1 + 10 * n)
        fetched.signature = signature
        store(crawl, f"s{n}", [fetched])
        update(crawl, f"s{n}", hours=2 + 10 * n)
        now = NOW.now + timedelta(hours=2 + 10 * n)
        assert found(crawl, "interval_s", "next_fetch")[A] == (days * DAY, now + timedelta(days=days))


def test_the_interval_stays_within_its_limits(tmp_path: Path, embedded: Engine) -> None:
    crawl = seeded(tmp_path, embedded, [A], sets=["schedule.max_interval_s=2592060", "schedule.grow=10"])
    for n in range(3):
        store(crawl, f"s{n}", [page(A, segment=f"s{n}", hours=1 + 10 * n)])
        update(crawl, f"s{n}", hours=2 + 10 * n)
    assert found(crawl, "interval_s")[A] == 2592060


def test_five_failures_and_it_is_gone_until_it_comes_back(crawl: Crawl) -> None:
    statuses: list[tuple[int, datetime]] = []
    for n in range(5):
        store(crawl, f"s{n}", [lost(A, Outcome.FAIL, f"s{n}", 1 + n)])
        update(crawl, f"s{n}", hours=1.5 + n)
        statuses.append(found(crawl, "status", "next_fetch")[A])
    waits = [due - NOW.now - timedelta(hours=1.5 + n) for n, (_, due) in enumerate(statuses)]
    assert [s for s, _ in statuses] == [Status.UNFETCHED] * 4 + [Status.GONE]
    assert waits == [timedelta(hours=h) for h in (1, 2, 4, 8)] + [timedelta(days=90)]
    store(crawl, "back", [page(A, segment="back", hours=9)])
    update(crawl, "back", hours=10)
    assert found(crawl, "status", "failures", "interval_s")[A] == (Status.FETCHED, 0, 30 * DAY)


def test_a_server_cannot_put_us_off_for_ever(crawl: Crawl) -> None:
    store(crawl, "s1", [lost(A, Outcome.RETRY_LATER, retry_after=10**9), lost(B, Outcome.RETRY_LATER, retry_after=-5)])
    update(crawl, "s1")
    now = NOW.now + timedelta(hours=2)
    assert found(crawl, "next_fetch") == {A: now + timedelta(days=7), B: now + timedelta(seconds=1)}


def test_what_is_gone_and_forgotten_leaves(tmp_path: Path, engine: Engine) -> None:
    year = timedelta(days=366)
    old, new = NOW.now - year, NOW.now - timedelta(days=300)
    urls = {  # URL → first seen, linked, unlinked, inlinks, seed, status
        "https://old.example/": (old, old, old, 0, None, Status.GONE),
        "https://never-linked.example/": (old, None, None, None, None, Status.GONE),
        "https://linked.example/": (old, old, None, 1, None, Status.GONE),
        "https://unlinked-lately.example/": (old, old, new, 0, None, Status.GONE),
        "https://seed.example/": (old, None, None, 0, "list", Status.GONE),
        "https://there.example/": (old, old, old, 0, None, Status.FETCHED),
        "https://young.example/": (new, None, None, 0, None, Status.GONE),
    }
    names = ("first_seen", "linked_at", "unlinked_at", "inlinks", "seed", "status")
    columns: dict[str, Any] = {name: [facts[n] for facts in urls.values()] for n, name in enumerate(names)}
    crawl = Crawl.init(str(tmp_path / "crawl"), shards=2, clock=NOW, engine=engine)
    crawl.clock = lambda: NOW
    crawl.load("crawldb", write_rows(tmp_path / "a.parquet", seed_rows(list(urls), **columns)))
    record = crawl.run("purge")
    assert record.counters == {"gone": 6, "purged": 2, "kept": 4}
    assert set(found(crawl, "status")) == set(urls) - {"https://old.example/", "https://never-linked.example/"}
    assert crawl.run("purge").counters == {"gone": 4, "kept": 4}


def test_wrong_segments_are_named(crawl: Crawl) -> None:
    with pytest.raises(UsageError, match="segment s9 has not been fetched; there are none"):
        crawl.update("s9")
    assert crawl.update() is None
    store(crawl, "s1", [page(A)])
    assert update(crawl) is not None
    before = crawl.snapshot.id
    assert crawl.update() is None
    assert crawl.snapshot.id == before


def test_a_compaction_that_was_interrupted_is_made_up_for(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    store(crawl, "s1", [page(A, C)])
    with monkeypatch.context() as patch:
        patch.setattr(Crawl, "tidy", lambda _: False)
        assert update(crawl) is not None
    assert any(s.delta for s in crawl.snapshot.sets("crawldb"))
    assert update(crawl) is None
    assert not any(s.delta for s in crawl.snapshot.sets("crawldb"))


def test_an_unparsed_page_keeps_the_links_of_its_last_parse(crawl: Crawl) -> None:
    store(crawl, "s1", [page(A, C)])
    update(crawl, "s1")
    store(crawl, "s2", [Fetched(A, Outcome.SUCCESS, NOW.now + timedelta(hours=3), "s2", digest="y")])
    update(crawl, "s2", hours=4)
    assert found(crawl, "inlinks")[C] == 1
    assert found(crawl, "parsed", "segment")[A] == ("s1", "s2")


def test_parse_failures_count_as_parses_without_links(crawl: Crawl) -> None:
    store(crawl, "s1", [page(A, C)])
    update(crawl, "s1")
    store(crawl, "s2", [page(A, segment="s2", hours=3)])
    failed = rows("parse", [A], segment="s2", status=[int(ParseStatus.FAILED)])
    publish(crawl, "s2", {"parse": failed})
    update(crawl, "s2", hours=4)
    assert found(crawl, "inlinks")[C] == 0
    assert found(crawl, "signature")[A] == 1


def test_a_million_links_to_one_page_and_from_one_page(tmp_path: Path, embedded: Engine) -> None:
    """Many links, one target; the page they come from has more than it may."""
    crawl = seeded(tmp_path, embedded, [A], sets=["links.max_per_page=10"])
    many = [f"https://x.example/{n}" for n in range(20_000)]
    store(crawl, "s1", [page(A, *many)])
    assert update(crawl, "s1").counters["links_counted"] == 10
    pages = [page(url, A, segment="s2", hours=3) for url in many]
    store(crawl, "s2", pages)
    update(crawl, "s2", hours=4)
    assert found(crawl, "inlinks")[A] == 20_000


def test_empty_segment(crawl: Crawl) -> None:
    store(crawl, "s1", [])
    before = content(crawl)
    assert update(crawl, "s1").counters["fetches"] == 0
    assert content(crawl).equals(before)
