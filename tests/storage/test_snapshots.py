"""The commit log: publish, re-base, conflicts, rollback, damage."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from gossamer.errors import ConflictError, CorruptError, CrawlMissing, UsageError, VersionError
from gossamer.storage import snapshots
from gossamer.storage.files import Files
from gossamer.storage.snapshots import FileSet
from tests.storage.building import AT, append, change, contents, replace, whole, write_set


def sets(folder: str, segment: str | None = None) -> tuple[FileSet, ...]:
    """A set of files nobody looks at."""
    return (FileSet(folder, 1, 0, 0, 0, segment=segment),)


def test_a_crawl_begins_with_snapshot_0(files: Files):
    first = snapshots.publish_first(files, 8, AT)
    assert (first.id, first.parent, first.shards, first.tables) == (0, None, 8, {})
    assert snapshots.latest(files) == first
    with pytest.raises(UsageError, match="there is a crawl already"):
        snapshots.publish_first(files, 4, AT)


def test_no_crawl_is_said_with_the_cure(files: Files):
    with pytest.raises(CrawlMissing, match="no crawl here; make one with `gossamer init"):
        snapshots.latest(files)


def test_publish_appends_and_replaces(crawl: Files):
    append(crawl, "crawldb", "00000000-load", first=0)
    append(crawl, "crawldb", "00000001-load", first=100)
    assert contents(crawl, snapshots.latest(crawl)) == {"crawldb": [0, 1, 2, 100, 101, 102]}
    last = replace(crawl, "crawldb", "00000002-compact", first=7)
    assert (last.id, last.parent) == (3, 2)
    assert contents(crawl, snapshots.latest(crawl)) == {"crawldb": [7, 8, 9]}
    assert whole(crawl)[2] == {"crawldb": [0, 1, 2, 100, 101, 102]}  # old snapshots stay readable


def test_what_was_published_is_what_is_loaded(crawl: Files):
    published = snapshots.publish(
        crawl,
        change(
            "00000000-parse",
            append={"parse": sets("segments/r1/parse/x", "r1")},
            segments={"r1": ("fetch", "parse")},
            columns=[{"name": "price", "type": "float"}],
            counters={"rows": 5},
            note="näher",
        ),
        snapshots.latest(crawl),
    )
    assert snapshots.load(crawl, 1) == snapshots.latest(crawl) == published


def test_replacing_a_segment_leaves_the_others(crawl: Files):
    for segment in ("r1", "r2"):
        append(crawl, "parse", f"x-{segment}", segment=segment)
    last = replace(crawl, "parse", "again", segment="r1", first=50)
    assert [s.folder for s in last.sets("parse")] == ["segments/r2/parse/x-r2", "segments/r1/parse/again"]
    assert len(last.sets("parse", "r1")) == 1


def test_a_table_replaced_by_nothing_is_gone(crawl: Files):
    append(crawl, "ranks", "a")
    assert snapshots.publish(crawl, change("b", replace={"ranks": ()}), snapshots.latest(crawl)).tables == {}


def test_stages_of_a_segment_add_up(crawl: Files):
    for stages in (("fetch",), ("parse", "fetch"), ("update",)):
        snapshots.publish(crawl, change("x", segments={"r1": stages}), snapshots.latest(crawl))
    assert snapshots.latest(crawl).segments == {"r1": ("fetch", "parse", "update")}


def test_disjoint_tables_re_base(crawl: Files):
    parent = snapshots.latest(crawl)
    snapshots.publish(crawl, change("a", append={"crawldb": sets("tables/crawldb/a")}), parent)
    ours = snapshots.publish(
        crawl, change("b", append={"hosts": sets("tables/hosts/b")}, segments={"r1": ("x",)}), parent
    )
    assert (ours.id, ours.parent) == (2, 1)
    assert set(ours.tables) == {"crawldb", "hosts"}


def test_segments_of_one_table_are_disjoint(crawl: Files):
    parent = snapshots.latest(crawl)
    for segment in ("r1", "r2"):
        snapshots.publish(
            crawl, change(segment, append={"fetch": sets(f"segments/{segment}/fetch/x", segment)}), parent
        )
    assert len(snapshots.latest(crawl).sets("fetch")) == 2


def test_a_conflict_names_the_winner(crawl: Files):
    parent = snapshots.latest(crawl)
    snapshots.publish(crawl, change("00000000-update", "update", append={"crawldb": sets("tables/crawldb/a")}), parent)
    snapshots.publish(crawl, change("00000000-rank", "rank", append={"ranks": sets("tables/ranks/b")}), parent)
    with pytest.raises(ConflictError, match=r"inject: run 00000000-update published crawldb first \(snapshot 1\)"):
        snapshots.publish(crawl, change("00000000-inject", "inject", append={"crawldb": sets("x")}), parent)
    assert snapshots.latest(crawl).id == 2


def test_a_rollback_may_be_the_winner(crawl: Files):
    append(crawl, "crawldb", "a")
    parent = append(crawl, "crawldb", "b")
    snapshots.rollback(crawl, 1, AT)
    with pytest.raises(ConflictError, match="run 00000002-rollback published crawldb first"):
        snapshots.publish(crawl, change("c", append={"crawldb": sets("c")}), parent)


def test_the_winner_is_named_even_if_the_log_was_shortened(crawl: Files):
    parent = snapshots.latest(crawl)
    for run in ("a", "b", "c"):
        append(crawl, run, run)
    crawl.delete(snapshots.path_of(1))
    with pytest.raises(ConflictError, match="published a first"):
        snapshots.publish(crawl, change("x", append={"a": sets("x")}), parent)


@pytest.mark.parametrize(("mine", "theirs"), [("r1", None), (None, "r1"), ("r1", "r1"), (None, None)])
def test_a_whole_table_conflicts_with_each_of_its_segments(crawl: Files, mine: str | None, theirs: str | None):
    parent = snapshots.latest(crawl)
    snapshots.publish(crawl, change("a", append={"parse": sets("theirs/a", theirs)}), parent)
    with pytest.raises(ConflictError, match="run a published parse"):
        snapshots.publish(crawl, change("b", replace={"parse": sets("mine/b", mine)}), parent)


def test_emptying_a_table_conflicts_with_writing_it(crawl: Files):
    parent = append(crawl, "parse", "x", segment="r1")
    snapshots.publish(crawl, change("a", append={"parse": sets("theirs/a", "r2")}), parent)
    with pytest.raises(ConflictError):
        snapshots.publish(crawl, change("b", replace={"parse": ()}), parent)


@pytest.mark.parametrize("resharder_first", [True, False])
def test_reshard_conflicts_with_everything(crawl: Files, resharder_first: bool):
    parent = snapshots.latest(crawl)
    reshard = change("reshard", "reshard", replace={"crawldb": sets("tables/crawldb/r")}, shards=16)
    other = change("rank", "rank", append={"ranks": sets("tables/ranks/b")})
    one, two = (reshard, other) if resharder_first else (other, reshard)
    snapshots.publish(crawl, one, parent)
    with pytest.raises(ConflictError, match=one.run):
        snapshots.publish(crawl, two, parent)
    assert snapshots.latest(crawl).shards == (16 if resharder_first else 4)


def test_racing_publishers_lose_nothing(crawl: Files):
    threads, rounds = 6, 5

    def publish(me: int) -> None:
        for n in range(rounds):
            run = f"{me}-{n}"
            parent = snapshots.latest(crawl)
            snapshots.publish(crawl, change(run, append={f"t{me}": sets(f"tables/t{me}/{run}")}), parent)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(publish, range(threads)))
    assert snapshots.numbers(crawl) == list(range(threads * rounds + 1))
    for me in range(threads):
        assert [s.folder for s in snapshots.latest(crawl).sets(f"t{me}")] == [
            f"tables/t{me}/{me}-{n}" for n in range(rounds)
        ]


def test_racing_publishers_of_one_table_have_one_winner(crawl: Files):
    parent = snapshots.latest(crawl)

    def publish(me: int) -> bool:
        try:
            snapshots.publish(crawl, change(f"run-{me}", append={"crawldb": sets(f"tables/crawldb/{me}")}), parent)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(publish, range(8))) == 1
    assert snapshots.latest(crawl).id == 1


def test_rollback_publishes_a_higher_snapshot(crawl: Files):
    append(crawl, "crawldb", "a")
    snapshots.publish(crawl, change("b", replace={"crawldb": sets("b")}, shards=16), snapshots.latest(crawl))
    back = snapshots.rollback(crawl, 1, "2026-02-02T00:00:00.000Z")
    assert (back.id, back.parent, back.stage, back.shards) == (3, 2, "rollback", 4)
    assert back.tables == snapshots.load(crawl, 1).tables
    assert snapshots.latest(crawl) == back
    assert snapshots.rollback(crawl, 2, AT).shards == 16  # and forward again


def test_rollback_to_nothing_is_refused(crawl: Files):
    with pytest.raises(UsageError, match="there is no snapshot 7"):
        snapshots.rollback(crawl, 7, AT)


def test_rollback_cures_a_damaged_snapshot(crawl: Files):
    append(crawl, "crawldb", "a")
    append(crawl, "crawldb", "b")
    crawl.replace(snapshots.path_of(2), b'{"format": 1, "tab')
    with pytest.raises(CorruptError):
        snapshots.latest(crawl)
    snapshots.rollback(crawl, 1, AT)
    assert contents(crawl, snapshots.latest(crawl)) == {"crawldb": [0, 1, 2]}


def test_a_newer_format_asks_for_an_upgrade(crawl: Files):
    document = json.loads(crawl.read(snapshots.path_of(0)))
    crawl.replace(snapshots.path_of(0), json.dumps(document | {"format": 99, "unheard": 1}).encode())
    with pytest.raises(VersionError, match="newer Gossamer; upgrade with `pip install"):
        snapshots.latest(crawl)


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format": 1}', b'{"format": "x"}', b'{"tables": {}}']
)
def test_damaged_snapshots_are_named(crawl: Files, damage: bytes):
    crawl.replace(snapshots.path_of(0), damage)
    with pytest.raises(CorruptError, match=r"00000000\.json: .*roll back") as raised:
        snapshots.latest(crawl)
    assert "\n" not in str(raised.value)


def test_a_snapshot_that_never_was_is_the_users_mistake(crawl: Files):
    with pytest.raises(UsageError, match="there is no snapshot 5; see `gossamer snapshots list`"):
        snapshots.load(crawl, 5)


def test_only_numbered_documents_are_snapshots(crawl: Files):
    for name in (
        ".tmp-00000009.json",
        ".tmp-0123",
        "00000008.json.bak",
        "x.json",
        "²²²²²²²².json",
        "deep/00000009.json",
        "7.json",
    ):
        crawl.replace(f"snapshots/{name}", b"{}")
    assert snapshots.numbers(crawl) == [0]


def test_a_snapshot_collected_while_we_look_is_looked_up_again(crawl: Files, monkeypatch: pytest.MonkeyPatch):
    append(crawl, "crawldb", "a")
    real, seen = snapshots.numbers, [[0, 1, 2]]  # 2 is not there any more
    monkeypatch.setattr(snapshots, "numbers", lambda files: seen.pop() if seen else real(files))
    assert snapshots.latest(crawl).id == 1


def test_a_manifest_names_the_files_of_one_attempt(crawl: Files):
    first = write_set(crawl, "crawldb", "a", attempt=1, parts=2)
    file_set = write_set(crawl, "crawldb", "a", attempt=2, parts=2, first=5)
    entries = snapshots.read_manifest(crawl, file_set)
    assert [e.path for e in entries] == [f"tables/crawldb/a/part-0000{n}-00000-002.parquet" for n in (0, 1)]
    assert [e.rows for e in entries] == [3, 3]
    assert dict(crawl.list("tables/crawldb/a"))[entries[0].path] == entries[0].bytes
    assert [e.path for e in snapshots.read_manifest(crawl, first)] == [e.path.replace("002.", "001.") for e in entries]


@pytest.mark.parametrize("damage", [b"", b"[1]", b"{}", b'{"files": [{"path": "x"}]}', b'{"files": 7}'])
def test_damaged_manifests_are_named(crawl: Files, damage: bytes):
    file_set = write_set(crawl, "crawldb", "a")
    crawl.replace("tables/crawldb/a/_files-001.json", damage)
    with pytest.raises(CorruptError, match=r"_files-001\.json: "):
        snapshots.read_manifest(crawl, file_set)


def test_a_missing_manifest_is_named(crawl: Files):
    with pytest.raises(CorruptError, match=r"tables/t/x/_files-001\.json: .*missing"):
        snapshots.read_manifest(crawl, sets("tables/t/x")[0])
