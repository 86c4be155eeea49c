"""What is left of a fetchlist, in queues, and redirects that nobody followed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.stages.fetch.listing import Listing, read_done, read_listing, unfollowed
from gossamer.storage.local import LocalFiles
from gossamer.storage.parquet import FileEntry
from gossamer.tables.segment import FETCHLIST
from gossamer.tables.statuses import Outcome, Status
from gossamer.urls.keys import url_columns

O = Outcome  # noqa: E741


def fetchlist(*rows: dict[str, object]) -> pa.Table:
    """Rows of a fetchlist of which only what matters is given."""
    keys = url_columns(pa.array([row["url"] for row in rows], pa.string()))
    columns = []
    for field in FETCHLIST.schema:
        if field.name in keys:
            columns.append(keys[field.name])
        else:
            columns.append(pa.array([row.get(field.name) for row in rows], field.type))
    return pa.Table.from_arrays(columns, names=FETCHLIST.names)


def listed(n: int, host: str = "a.test", **more: object) -> dict[str, object]:
    return {"url": f"http://{host}/{n}", "queue": host, "partition": 0, "position": n, "status": 1} | more


def read(
    tmp_path: Path, *tables: pa.Table, partitions: tuple[int, ...] = (0,), done: pa.Table | None = None
) -> Listing:
    entries = []
    for n, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{n}.parquet")
        entries.append(FileEntry(f"{n}.parquet", 0, table.num_rows, 0))
    files = LocalFiles(str(tmp_path))
    return read_listing(files, entries, partitions, read_done(files, []) if done is None else done)


def done_rows(*rows: tuple[str, Outcome, str | None, str | None]) -> pa.Table:
    """URL, outcome, via, target."""
    urls, outcomes, via, targets = zip(*rows, strict=True)
    keys = url_columns(pa.array(urls, pa.string()))
    return pa.table(
        {
            "domain_fp": keys["domain_fp"],
            "url_fp": keys["url_fp"],
            "url": urls,
            "via": pa.array(via, pa.string()),
            "outcome": pa.array(outcomes, pa.int8()),
            "redirect_to": pa.array(targets, pa.string()),
        }
    )


def in_queues(listing: Listing) -> dict[str, list[str]]:
    return {key: [listing.urls[int(row)].as_py() for row in rows] for key, rows in listing.queues()}


def test_queues_have_their_rows_in_the_order_of_the_list(tmp_path: Path):
    rows = [listed(n, host) for n, host in enumerate(["a.test", "b.test", "a.test", "c.test", "b.test", "a.test"])]
    assert in_queues(read(tmp_path, fetchlist(*rows))) == {
        "a.test": ["http://a.test/0", "http://a.test/2", "http://a.test/5"],
        "b.test": ["http://b.test/1", "http://b.test/4"],
        "c.test": ["http://c.test/3"],
    }


def test_the_order_holds_in_long_lists(tmp_path: Path):
    rows = [listed(n, f"{n * 7 % 3}.test") for n in range(2_000)]
    for key, urls in in_queues(read(tmp_path, fetchlist(*rows))).items():
        numbers = [int(url.rsplit("/", 1)[1]) for url in urls]
        assert numbers == [n for n in range(2_000) if f"{n * 7 % 3}.test" == key]


def test_rows_without_a_queue_share_one(tmp_path: Path):
    table = fetchlist(listed(0), listed(1, queue=None), listed(2), listed(3, queue=None))
    assert in_queues(read(tmp_path, table)) == {
        "a.test": ["http://a.test/0", "http://a.test/2"],
        "": ["http://a.test/1", "http://a.test/3"],
    }


def test_of_several_files_the_order_is_that_of_positions(tmp_path: Path):
    listing = read(tmp_path, fetchlist(listed(4), listed(6)), fetchlist(listed(1), listed(5)))
    assert in_queues(listing) == {"a.test": [f"http://a.test/{n}" for n in (1, 4, 5, 6)]}


def test_only_our_partitions_are_read(tmp_path: Path):
    table = fetchlist(listed(0, partition=0), listed(1, "b.test", partition=1), listed(2, "c.test", partition=2))
    listing = read(tmp_path, table, partitions=(0, 2))
    assert set(in_queues(listing)) == {"a.test", "c.test"}
    keys = url_columns(pa.array(["http://a.test/0", "http://b.test/1", "http://c.test/2"]))
    assert [listing.partition_of(fp) for fp in keys["domain_fp"].to_pylist()] == [0, None, 2]
    assert [listing.listed(fp) for fp in keys["url_fp"].to_pylist()] == [True, False, True]


def test_what_was_fetched_before_is_left_out_but_still_listed(tmp_path: Path):
    done = done_rows(("http://a.test/1", O.SUCCESS, None, None), ("http://b.test/0", O.GONE, None, None))
    listing = read(tmp_path, fetchlist(listed(0), listed(1), listed(2), listed(0, "b.test")), done=done)
    assert in_queues(listing) == {"a.test": ["http://a.test/0", "http://a.test/2"]}
    keys = url_columns(pa.array(["http://a.test/1", "http://b.test/0", "http://a.test/9"]))
    assert [listing.listed(fp) for fp in keys["url_fp"].to_pylist()] == [True, True, False]
    assert listing.partition_of(keys["domain_fp"].to_pylist()[1]) == 0


def test_a_list_that_is_done_has_no_queues(tmp_path: Path):
    listing = read(tmp_path, fetchlist(listed(1)), done=done_rows(("http://a.test/1", O.SUCCESS, None, None)))
    assert in_queues(listing) == {}


def test_whether_a_page_had_content(tmp_path: Path):
    rows = [listed(n, status=int(status)) for n, status in enumerate(Status)]
    listing = read(tmp_path, fetchlist(*rows))
    had = [status for status, known in zip(Status, listing.had_content.tolist(), strict=True) if known]
    assert had == [Status.FETCHED, Status.NOT_MODIFIED, Status.DUPLICATE]


def test_parts_are_read_together(tmp_path: Path):
    rows = [done_rows((f"http://a.test/{n}", O.SUCCESS, None, None)) for n in range(2)]
    for n, table in enumerate(rows):
        pq.write_table(table.replace_schema_metadata({"n": str(n)}), tmp_path / f"{n}.parquet")
    done = read_done(LocalFiles(str(tmp_path)), ["0.parquet", "1.parquet"])
    assert done.column("url").to_pylist() == ["http://a.test/0", "http://a.test/1"]


def domain(url: str) -> int:
    return int(url_columns(pa.array([url]))["domain_fp"][0].as_py())


def test_redirects_whose_targets_were_not_fetched_are_found_with_their_chains():
    done = done_rows(
        ("http://a.test/1", O.REDIRECT_PERMANENT, None, "http://a.test/2"),
        ("http://a.test/2", O.REDIRECT_TEMPORARY, "http://a.test/1", "http://www.a.test/3"),
        ("http://b.test/1", O.REDIRECT_PERMANENT, None, "http://b.test/2"),
        ("http://b.test/2", O.SUCCESS, "http://b.test/1", None),
        ("http://c.test/1", O.REDIRECT_TEMPORARY, None, "http://c.test/2"),
    )
    assert unfollowed(done) == [
        ("http://c.test/2", ("http://c.test/1",), domain("http://c.test/")),
        ("http://www.a.test/3", ("http://a.test/1", "http://a.test/2"), domain("http://a.test/")),
    ]


def test_what_leads_nowhere_or_is_no_redirect_is_not_followed():
    done = done_rows(
        ("http://a.test/1", O.REDIRECT_PERMANENT, None, None),
        ("http://a.test/2", O.SUCCESS, None, "http://a.test/9"),
        ("http://a.test/3", O.GONE, None, "http://a.test/9"),
    )
    assert unfollowed(done) == []


def test_a_loop_of_redirects_ends():
    done = done_rows(
        ("http://a.test/1", O.REDIRECT_TEMPORARY, "http://a.test/2", "http://a.test/2"),
        ("http://a.test/2", O.REDIRECT_TEMPORARY, "http://a.test/1", "http://a.test/3"),
    )
    assert unfollowed(done) == [("http://a.test/3", ("http://a.test/1", "http://a.test/2"), domain("http://a.test/"))]


def test_nothing_done_leaves_nothing_to_follow(tmp_path: Path):
    assert unfollowed(read_done(LocalFiles(str(tmp_path)), [])) == []
