"""load: rows from files, with derived keys, rejects by reason, and nothing lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.errors import UsageError
from gossamer.urls.keys import fingerprint
from tests.cli.conftest import Gossamer, Result, page, state, write_lines
from tests.stages.crawls import make_crawl

ROWS = [page(number) for number in range(3)]


def as_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def as_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    write_lines(path, *rows)


def as_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.parametrize(
    ("write", "name"),
    [(as_csv, "a.csv"), (as_jsonl, "a.jsonl"), (as_jsonl, "a.json"), (as_jsonl, "a.ndjson"), (as_parquet, "a.parquet")],
)
def test_every_format_gives_the_same_rows(
    crawl: Path, tmp_path: Path, gossamer: Gossamer, write: Callable[..., None], name: str
):
    write(tmp_path / name, ROWS)
    gossamer("load", "crawldb", tmp_path / name)
    found = sorted(gossamer("--json", "read", "crawldb").rows, key=lambda row: row["inlinks"])
    assert [row["url"] for row in found] == [row["url"] for row in ROWS]
    assert found[1]["rowkey"] == "org.example.www:https/page/1"
    assert found[1]["host"] == "www.example.org"
    assert found[1]["url_fp"] == fingerprint(ROWS[1]["url"])
    assert found[1]["domain_fp"] == fingerprint("example.org")
    assert (found[1]["status"], found[1]["updated_at"]) == ("unfetched", "2026-01-01T00:00:00.000Z")


def test_keys_that_are_given_are_kept(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    given = page(1, url_fp=7, domain_fp=8, rowkey="k", host="h")
    half = page(2, url_fp=None)
    gossamer("load", "crawldb", write_lines(tmp_path / "a.jsonl", given, half))
    found = {row["url_fp"]: row for row in gossamer("--json", "read", "crawldb").rows}
    assert set(found) == {7, fingerprint(half["url"])}
    assert (found[7]["domain_fp"], found[7]["rowkey"], found[7]["host"]) == (8, "k", "h")


def test_the_closing_line(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    path = write_lines(tmp_path / "a.jsonl", *ROWS, {"domain": "example.org"})
    result = gossamer("load", "crawldb", path)
    assert result.out == ""
    assert result.err.startswith(
        "✓ load: rows read 4, rejected 1, rows written 3, duplicates 0 (dropped: url is missing 1) · "
    )
    assert result.err.endswith("snapshot 1\n")


def test_rejects_by_reason(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    lines = [
        page(0),
        {"domain": "example.org"},
        {"url": "https://example.org/"},
        page(1, url="mailto:a@example.org"),
        page(2, status="99"),
        page(3, status="77"),
        page(4, next_fetch="99999-01-01T00:00:00Z"),
    ]
    done = gossamer("--json", "load", "crawldb", write_lines(tmp_path / "a.jsonl", *lines[:6])).rows[-1]
    assert done["drops"] == {
        "url is missing": 1,
        "domain_fp is missing": 1,
        "rowkey is missing": 1,
        "status has an unknown code": 2,
    }
    assert (done["counters"]["rows_written"], done["counters"]["rejected"]) == (1, 5)


def test_times_nobody_can_print_are_rejected(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    far = pa.array([0, 300_000_000_000_000_000, -80_000_000_000_000_000, None], pa.timestamp("us"))
    rows = pa.Table.from_pylist([page(n) for n in range(4)]).append_column("next_fetch", far)
    pq.write_table(rows, tmp_path / "a.parquet")
    done = gossamer("--json", "load", "crawldb", tmp_path / "a.parquet").rows[-1]
    assert done["drops"] == {"next_fetch is no possible time": 2}
    assert len(gossamer("--json", "read", "crawldb").rows) == 2


def test_of_equal_keys_the_last_one_is_taken(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    first = write_lines(tmp_path / "z.jsonl", page(0, inlinks=1), page(1), page(0, inlinks=2))
    second = write_lines(tmp_path / "a.jsonl", page(0, inlinks=3))
    done = gossamer("--json", "load", "crawldb", first, second).rows[-1]
    assert done["counters"] == {"rows_read": 4, "rows_written": 2, "duplicates": 2}
    assert done["drops"] == {"same key later in the input": 2}
    assert {row["url"]: row["inlinks"] for row in gossamer("--json", "read", "crawldb").rows}[page(0)["url"]] == 3


def test_rows_can_be_deleted(filled: Path, tmp_path: Path, gossamer: Gossamer):
    gossamer("load", "crawldb", write_lines(tmp_path / "a.jsonl", page(0, _deleted=True), page(9, _deleted=False)))
    found = {row["inlinks"] for row in gossamer("--json", "read", "crawldb").rows}
    assert found == {1, 2, 6, 4, 9}  # page 3 came twice, and links add up


def test_what_read_prints_can_be_loaded(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    rich = page(
        0, meta={"a": 'b,\n"c'}, etag="007", seed="2026-01-01", useful=True, status="robots_denied", kind="feed"
    )
    gossamer("load", "crawldb", write_lines(tmp_path / "a.jsonl", rich, page(1, meta={})))
    printed = {form: gossamer("read", "crawldb", "--format", form).out for form in ("jsonl", "csv")}
    for form, text in printed.items():
        (tmp_path / f"again.{form}").write_text(text)
        gossamer("init", tmp_path / form)
        gossamer("-C", tmp_path / form, "load", "crawldb", tmp_path / f"again.{form}")
        again = gossamer("-C", tmp_path / form, "read", "crawldb", "--format", "jsonl").out
        assert sorted(again.splitlines()) == sorted(printed["jsonl"].splitlines()), form


def test_no_rows_at_all(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    done = gossamer("--json", "load", "crawldb", write_lines(tmp_path / "a.jsonl")).rows[-1]
    assert done["counters"]["rows_written"] == 0
    assert gossamer("--json", "read", "crawldb").rows == []


def test_tables_of_segments(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    def fetched(segment: str, number: int) -> dict[str, Any]:
        return {
            "url": f"https://example.org/{number}",
            "domain": "example.org",
            "segment": segment,
            "outcome": "success",
        }

    for segment in ("r000001-0", "r000002-0"):
        rows = write_lines(tmp_path / f"{segment}.jsonl", *(fetched(segment, n) for n in range(3)))
        gossamer("load", "fetch", rows, "--segment", segment)
    rows = write_lines(tmp_path / "again.jsonl", fetched("r000001-0", 1))
    gossamer("load", "fetch", rows, "--segment", "r000001-0")
    assert len(gossamer("--json", "read", "fetch", "--segment", "r000001-0").rows) == 1, (
        "a segment is written as a whole"
    )
    assert len(gossamer("--json", "read", "fetch", "--segment", "r000002-0").rows) == 3
    assert len(gossamer("--json", "read", "fetch").rows) == 4


def test_a_table_of_no_segments_is_replaced(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    def edge(dst: str) -> dict[str, Any]:
        return {"level": "host", "src": "org.example", "dst": dst, "links": 3}

    gossamer("load", "edges", write_lines(tmp_path / "a.jsonl", edge("a"), edge("b")))
    gossamer("load", "edges", write_lines(tmp_path / "b.jsonl", edge("c")))
    assert [row["dst"] for row in gossamer("--json", "read", "edges").rows] == ["c"]


def refused(gossamer: Gossamer, crawl: Path, *arguments: Any) -> str:
    """The error of a load that must fail as a wrong call and leave the crawl as it is."""
    before = state(crawl)
    result: Result = gossamer("load", *arguments, code=2)
    assert state(crawl) == before
    return result.error


def test_what_is_refused(filled: Path, tmp_path: Path, gossamer: Gossamer):
    good = write_lines(tmp_path / "good.jsonl", page(0))
    assert "there is no table nosuch; choose from clusters, counted, crawldb, " in refused(
        gossamer, filled, "nosuch", good
    )
    assert "No such file or directory; check the path" in refused(
        gossamer, filled, "crawldb", good, tmp_path / "none.csv"
    )
    assert "belongs to a segment; name one with --segment" in refused(gossamer, filled, "fetch", good)
    assert "leave out --segment" in refused(gossamer, filled, "crawldb", good, "--segment", "r1")
    (tmp_path / "a.txt").write_text("x")
    assert "unknown kind of file" in refused(gossamer, filled, "crawldb", tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "unknown.jsonl",
            json.dumps(page(0, nosuch=1)),
            "crawldb has no column nosuch; see docs/tables.md for what it has",
        ),
        ("order.jsonl", json.dumps(page(0, _order=1)), "crawldb has no column _order"),
        ("twice.csv", "url,domain,url\na,b,c\n", "column url comes twice; keep one of them"),
        ("status.jsonl", json.dumps(page(0, status="fetchd")), "column status does not fit int8 ("),
        (
            "time.jsonl",
            json.dumps(page(0, next_fetch="tomorrow")),
            "column next_fetch does not fit timestamp[us, tz=UTC]",
        ),
        ("depth.jsonl", json.dumps(page(0, depth=100_000)), "column depth does not fit int16 ("),
        ("meta.jsonl", json.dumps(page(0, meta=["x"])), "column meta does not fit map<string, string> ("),
        ("cut.jsonl", '{"url": "https://exa', "cannot be read as json ("),
        ("not.parquet", "this is text", "cannot be read as parquet ("),
        ("ragged.csv", "url,domain\na,b,c\n", "cannot be read as csv ("),
    ],
)
def test_broken_files(filled: Path, tmp_path: Path, gossamer: Gossamer, name: str, content: str, said: str):
    (tmp_path / name).write_text(content)
    error = refused(gossamer, filled, "crawldb", tmp_path / name)
    assert error.startswith(f"{tmp_path / name}: ")
    assert said in error


def test_one_broken_file_among_good_ones_loads_none(filled: Path, tmp_path: Path, gossamer: Gossamer):
    good = write_lines(tmp_path / "good.jsonl", page(7))
    (tmp_path / "bad.jsonl").write_text("{")
    assert "bad.jsonl" in refused(gossamer, filled, "crawldb", good, tmp_path / "bad.jsonl")


def test_a_file_that_is_no_longer_there_in_the_middle(
    filled: Path, tmp_path: Path, gossamer: Gossamer, monkeypatch: pytest.MonkeyPatch
):
    from gossamer.stages.load import job

    monkeypatch.setattr(job, "stamp_of", lambda path: "other")
    assert "a file changed while it was read" in refused(
        gossamer, filled, "crawldb", write_lines(tmp_path / "a.jsonl", page(0))
    )


def test_events_for_programs(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    events = gossamer("--json", "load", "crawldb", write_lines(tmp_path / "a.jsonl", *ROWS)).rows
    assert [event["event"] for event in events] == ["start", "phase", "phase", "phase", "done"]
    assert {event["run"] for event in events} == {"00000000-load"}
    assert events[-1]["snapshot"] == 1


def test_quiet_is_quiet(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    result = gossamer("-q", "load", "crawldb", write_lines(tmp_path / "a.jsonl", *ROWS))
    assert (result.out, result.err) == ("", "")


def test_a_file_without_a_good_row_changes_nothing(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=1, count=5)
    (tmp_path / "bad.csv").write_text("url,inlinks\n,1\n,2\n")
    with pytest.raises(UsageError, match="none of the rows can be taken"):
        crawl.load("crawldb", str(tmp_path / "bad.csv"))
    assert crawl.snapshot.id == 1


def test_rows_of_a_segment_know_it(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=0)
    (tmp_path / "f.csv").write_text("url,domain,outcome\nhttps://a.example/,a.example,success\n")
    crawl.load("fetch", str(tmp_path / "f.csv"), segment="r000001-1")
    assert crawl.table("fetch", segment="r000001-1").segment.execute().tolist() == ["r000001-1"]


def test_long_texts_with_line_ends(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = make_crawl(tmp_path, embedded_inline, sets=0)
    via = ("line\n" * 400).strip()
    rows = "".join(f'https://a.example/{n},a.example,"{via}"\n' for n in range(2000))
    (tmp_path / "long.csv").write_text(f"url,domain,via\n{rows}")
    assert crawl.load("crawldb", str(tmp_path / "long.csv")).counters["rows_written"] == 2000
