"""read: filter, columns, limits, formats, versions, and text that would like to be obeyed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Gossamer, page, write_lines


def inlinks(gossamer: Gossamer, *arguments: Any) -> list[int]:
    return sorted(row["inlinks"] for row in gossamer("--json", "read", "crawldb", *arguments).rows)


def test_change_sets_are_merged(filled: Path, gossamer: Gossamer):
    assert inlinks(gossamer) == [0, 1, 2, 4, 6]
    (gone,) = gossamer("--json", "read", "crawldb", "--where", "status = 'gone'").rows
    assert gone["url"] == page(3)["url"]


def test_columns_in_the_order_asked_for(filled: Path, gossamer: Gossamer):
    result = gossamer("read", "crawldb", "--columns", " url, inlinks,url", "--format", "csv")
    assert result.out.splitlines()[0] == "url,inlinks"
    assert {row["inlinks"] for row in result.csv} == {"0", "1", "2", "4", "6"}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("inlinks > 3", [4, 6]),
        ("status = 'unfetched' AND url LIKE '%.org/%'", [1]),
        ("host IN ('example.com')", [0, 2, 4]),
        ("depth IS NULL", [0, 1, 2, 4, 6]),
        ("url = 'it''s ; -- not here'", []),
        ("updated_at >= TIMESTAMPTZ '2026-01-01 00:00:00+00'", [0, 1, 2, 4, 6]),
        ("NOT (inlinks BETWEEN 1 AND 5)", [0, 6]),
    ],
)
def test_where(filled: Path, gossamer: Gossamer, where: str, expected: list[int]):
    assert inlinks(gossamer, "--where", where) == expected


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("nosuch = 1", "there is no column nosuch; there are domain_fp, url_fp, "),
        ("status = 'gone", "not a SQL condition (Error tokenizing"),
        ("", "not a SQL condition ("),
        ("inlinks >", "not a SQL condition ("),
        ("nosuch(url)", "not a SQL condition (Catalog Error: Scalar Function with name nosuch does not exist!)"),
        ("url ~ '('", "not a SQL condition ("),
        ("count(*) > 1", "not a SQL condition ("),
        ("inlinks > $1", "not a SQL condition ("),
        ("1 = 1; DROP TABLE x", "write a condition over the table's columns only"),
        ("1 = 1 LIMIT 1", "write a condition over the table's columns only"),
        ("1 = 1 UNION SELECT 1", "write a condition over the table's columns only"),
        ("url IN (SELECT url FROM '/etc/passwd')", "write a condition over the table's columns only"),
        ("EXISTS (FROM read_text('/etc/passwd'))", "write a condition over the table's columns only"),
    ],
)
def test_conditions_that_are_none(filled: Path, gossamer: Gossamer, where: str, said: str):
    error = gossamer("read", "crawldb", "--where", where, code=2).error
    assert error.startswith(f"--where {where}: ")
    assert said in error


def test_a_condition_that_fails_on_the_rows(filled: Path, gossamer: Gossamer):
    assert "Could not convert string" in gossamer("read", "crawldb", "--where", "CAST(url AS INT) = 1", code=9).error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuch"], "there is no table nosuch; choose from clusters, counted, crawldb, "),
        (["crawldb", "--columns", "url,nosuch"], "crawldb has no column nosuch; it has domain_fp, "),
        (["crawldb", "--columns", " , "], "--columns names none; crawldb has domain_fp, "),
        (["crawldb", "--snapshot", "9"], "there is no snapshot 9; see `gossamer snapshots list`"),
        (["crawldb", "--segment", "r1"], "crawldb is not a table of segments; leave out --segment"),
        (["fetch", "--segment", "r1"], "fetch has no segment r1; it has none"),
        (["fetch", "--prefix", "org"], "fetch is not sorted by row key, so --prefix cannot be used; use --where"),
        (["fetchlist", "--prefix", "org"], "fetchlist is not sorted by row key"),
        (["edges", "--prefix", "org"], "edges is not sorted by row key"),
        (["hosts", "--host", "a.example"], "hosts is not sorted by row key, so --host cannot be used"),
        (["crawldb", "--host", "a b"], "--host a b: that is no name of a host; write it like example.org"),
        (["crawldb", "--domain", "https://example.org/"], "that is no name of a host"),
        (["crawldb", "--tld", "org", "--host", "a.example"], "--host and --tld exclude each other; give one of them"),
        (["crawldb", "--url", "https://nosuch.example/"], "the crawldb does not know it; see --host or --domain"),
        (["crawldb", "--url", "no url"], "--url no url: "),
        (["crawldb", "--url", "https://a.example/", "--top", "1"], "--url and --top do not go together"),
        (["fetch", "--url", "https://a.example/"], "--url is about the crawldb, not fetch; leave it out"),
        (["fetch", "--stats"], "--stats is about the crawldb, not fetch"),
        (["crawldb", "--stats", "--columns", "url"], "--stats and --columns do not go together; leave one out"),
        (["crawldb", "--stats", "--format", "csv"], "leave out --format csv"),
        (["crawldb", "--top", "3", "--limit", "2"], "--top and --limit do not go together"),
        (["crawldb", "--by", "cash"], "--by says what --top compares; give --top N too"),
        (["crawldb", "--top", "3", "--by", "nosuch"], "crawldb has no column nosuch; choose --by from domain_fp, "),
        (["crawldb", "--top", "3", "--by", "meta"], "--by meta: map<string, string> has no largest"),
        (["fetch", "--top", "3"], "fetch has no column inlinks; choose --by from "),
    ],
)
def test_what_is_refused(filled: Path, gossamer: Gossamer, arguments: list[str], said: str):
    assert said in gossamer("read", *arguments, code=2).error


def test_every_table_can_be_read_when_empty(crawl: Path, gossamer: Gossamer):
    from gossamer.tables import TABLES

    for name, table in TABLES.items():
        result = gossamer("read", name, "--format", "csv", "--limit", 5)
        assert result.out == ",".join(table.names) + "\n"


@pytest.mark.parametrize("limit", [0, 2, 99])
def test_limit(filled: Path, gossamer: Gossamer, limit: int):
    assert len(inlinks(gossamer, "--limit", limit)) == min(limit, 5)


def test_a_person_sees_a_page_and_a_program_everything(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    gossamer("load", "crawldb", write_lines(tmp_path / "a.jsonl", *map(page, range(30))))
    assert len(gossamer("read", "crawldb").lines) == 1 + 20
    assert len(gossamer("read", "crawldb", "--limit", 25).lines) == 1 + 25
    for form in ("jsonl", "csv"):
        assert len(gossamer("read", "crawldb", "--columns", "url", "--format", form).out.splitlines()) == 30 + (
            form == "csv"
        )


def test_prefix(filled: Path, gossamer: Gossamer):
    assert inlinks(gossamer, "--prefix", "org.example") == [1, 6]
    assert inlinks(gossamer, "--prefix", "org.example.www:https/page/3") == [6]
    assert inlinks(gossamer, "--prefix", "com") == [0, 2, 4]
    assert inlinks(gossamer, "--prefix", "net") == []
    assert inlinks(gossamer, "--prefix", "") == [0, 1, 2, 4, 6]


SITES = [
    page(0, url=url, domain=url.split("/")[2], inlinks=number)
    for number, url in enumerate(
        [
            "https://example.org/",
            "https://example.org/news/1",
            "http://example.org:8080/news/2",
            "https://www.example.org/",
            "https://a.b.example.org/",
            "https://example.org0.test/",
            "https://example0.org/",
            "https://anexample.org/",
            "https://192.0.2.1/",
            "https://xn--bcher-kva.example/",
        ]
    )
]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--host", "example.org"], [0, 1, 2]),
        (["--host", "WWW.Example.ORG."], [3]),
        (["--host", "bücher.example"], [9]),
        (["--host", "192.0.2.1"], [8]),
        (["--host", "org"], []),
        (["--domain", "example.org"], [0, 1, 2, 3, 4]),
        (["--domain", "b.example.org"], [4]),
        (["--domain", "192.0.2.1"], [8]),
        (["--tld", "org"], [0, 1, 2, 3, 4, 6, 7]),
        (["--tld", ".example"], [9]),
        (["--prefix", "https://example.org/news/"], [1]),
        (["--prefix", "HTTPS://Example.org/n"], [1]),
        (["--prefix", "http://example.org:8080"], [2]),
        (["--prefix", "https://example.org"], [0, 1]),
        (["--domain", "example.org", "--where", "inlinks > 2"], [3, 4]),
    ],
)
def test_parts_of_the_web(crawl: Path, tmp_path: Path, gossamer: Gossamer, arguments: list[str], expected: list[int]):
    gossamer("load", "crawldb", write_lines(tmp_path / "a.jsonl", *SITES))
    assert inlinks(gossamer, *arguments) == expected


def test_a_url_in_any_spelling(filled: Path, gossamer: Gossamer):
    for url in (page(1)["url"], "HTTPS://WWW.example.org:443/a/../page/1#x", "www.example.org/page/1"):
        (row,) = gossamer("--json", "read", "crawldb", "--url", url).rows
        assert (row["url"], row["inlinks"]) == (page(1)["url"], 1)
    shown = gossamer("read", "crawldb", "--url", page(3)["url"]).lines
    assert ["status", "gone", "What", "is", "believed", "of", "the", "URL"] in shown
    assert len(shown) == 1 + len(row)
    assert gossamer("read", "crawldb", "--url", page(3)["url"], "--columns", "url,status").lines[2][:2] == [
        "status",
        "gone",
    ]
    assert not (filled / "rules").exists(), "reading stores nothing"


def test_the_largest_first(filled: Path, gossamer: Gossamer):
    def top(*arguments: Any) -> list[Any]:
        return [row["inlinks"] for row in gossamer("--json", "read", "crawldb", *arguments).rows]

    assert top("--top", 3) == [6, 4, 2]
    assert top("--top", 99) == [6, 4, 2, 1, 0]
    assert top("--top", 2, "--by", "url") == [6, 1]
    assert top("--top", 1, "--host", "example.com", "--columns", "inlinks") == [4]
    assert len(gossamer("read", "crawldb", "--top", 4).lines) == 1 + 4


def test_what_has_no_value_is_not_large(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    gossamer(
        "load", "crawldb", write_lines(tmp_path / "a.jsonl", page(0, depth=None), page(1, depth=3), page(2, depth=5))
    )
    found = gossamer("--json", "read", "crawldb", "--top", 3, "--by", "depth").rows
    assert [row["depth"] for row in found] == [5, 3, None]


def test_statistics(filled: Path, gossamer: Gossamer):
    found = gossamer("--json", "read", "crawldb", "--stats").rows
    assert found[0] == {
        "group": "total", "urls": 5, "fetched": 0, "unfetched": 4, "gone": 1, "due": 5, "oldest": None, "newest": None,
    }  # fmt: skip
    counts = {(row["group"], row.get(row["group"])): (row["urls"], row.get("gone")) for row in found[1:]}
    assert counts == {
        ("status", "unfetched"): (4, None),
        ("status", "gone"): (1, None),
        ("host", "example.com"): (3, 0),
        ("host", "www.example.org"): (2, 1),
        ("domain", "example.com"): (3, 0),
        ("domain", "example.org"): (2, 1),
        ("tld", "com"): (3, 0),
        ("tld", "org"): (2, 1),
    }


def test_statistics_for_people(filled: Path, gossamer: Gossamer):
    lines = gossamer("read", "crawldb", "--stats", "--limit", 1).lines
    assert ["urls", "5"] in lines
    assert ["host", "(the", "first", "1", "of", "2)", "urls", "fetched", "unfetched", "gone", "due"] in lines
    assert ["example.com", "3", "0", "3", "0", "3"] in lines
    assert ["www.example.org", "2", "0", "1", "1", "2"] not in lines


def test_statistics_of_a_part(filled: Path, gossamer: Gossamer):
    found = gossamer("--json", "read", "crawldb", "--stats", "--domain", "example.org", "--where", "inlinks < 5").rows
    assert (found[0]["urls"], [row["tld"] for row in found if row["group"] == "tld"]) == (1, ["org"])
    assert gossamer("--json", "read", "crawldb", "--stats", "--snapshot", 0).rows[0]["urls"] == 0


def test_what_is_due_and_since_when(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    rows = [
        page(0, next_fetch="2020-01-01T00:00:00Z", first_seen="2020-01-01T00:00:00Z", status="not_modified"),
        page(2, next_fetch="2999-01-01T00:00:00Z", first_seen="2021-01-01T00:00:00Z", status="fetched"),
        page(4, url="http://192.0.2.1/", domain="192.0.2.1", status="duplicate"),
    ]
    gossamer("load", "crawldb", write_lines(tmp_path / "a.jsonl", *rows))
    found = gossamer("--json", "read", "crawldb", "--stats").rows
    total = found[0]
    assert (total["urls"], total["fetched"], total["unfetched"], total["gone"], total["due"]) == (3, 2, 0, 0, 2)
    assert (total["oldest"], total["newest"]) == ("2020-01-01T00:00:00.000Z", "2021-01-01T00:00:00.000Z")
    assert {row["tld"]: row["urls"] for row in found if row["group"] == "tld"} == {"com": 2, None: 1}


def test_names_and_codes(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    gossamer(
        "load", "crawldb", write_lines(tmp_path / "a.jsonl", page(0, status="redirect_temporary"), page(1, status=None))
    )
    for form in ("--json", "-q"):
        shown = gossamer(form, "read", "crawldb", "--columns", "status").out
        assert "redirect_temporary" in shown
    assert {row["status"] for row in gossamer("--json", "read", "crawldb").rows} == {"redirect_temporary", None}
    assert len(gossamer("--json", "read", "crawldb", "--where", "status = 'redirect_temporary'").rows) == 1


def test_older_snapshots(filled: Path, gossamer: Gossamer):
    assert inlinks(gossamer, "--snapshot", 0) == []
    assert inlinks(gossamer, "--snapshot", 1) == [0, 1, 2, 3]
    assert inlinks(gossamer, "--snapshot", 2) == inlinks(gossamer)


NASTY = "https://example.org/\x1b]0;owned\x07\x1b[2J<script>alert('x')</script>\u202egro\x9b[31m[bold red]"


def test_hostile_text(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    row = page(0, url=NASTY, etag='"x",\r\n=cmd|x', meta={"\x1b[1m": "\u2028"})
    gossamer("load", "crawldb", write_lines(tmp_path / "a.jsonl", row))
    (found,) = gossamer("--json", "read", "crawldb").rows
    assert (found["url"], found["etag"], found["meta"]) == (NASTY, row["etag"], row["meta"])
    (cells,) = gossamer("read", "crawldb", "--format", "csv").csv
    assert (cells["url"], cells["etag"]) == (NASTY, row["etag"])
    shown = gossamer("read", "crawldb").out
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\u2028", "\r"} & set(shown)
    assert "\\x1b]0;owned\\x07\\x1b[2J<script>alert('x')</script>\\u202egro\\x9b[31m[bold red]" in shown
    assert len(shown.splitlines()) == 2


def test_hostile_arguments_are_harmless_in_errors(crawl: Path, gossamer: Gossamer):
    error = gossamer("read", "\x1b[2J\u202e\nx", code=2).error
    assert "there is no table \\x1b[2J\\u202e x;" in error


def test_a_file_name_that_is_no_text(crawl: Path, tmp_path: Path, gossamer: Gossamer):
    name = b"\xff\xfe.csv".decode("utf-8", "surrogateescape")
    assert "\\xff\\xfe.csv: No such file" in gossamer("--json", "load", "crawldb", name, code=2).error
    write_lines(tmp_path / name.replace("csv", "jsonl"), page(0))
    gossamer("load", "crawldb", tmp_path / name.replace("csv", "jsonl"))
    assert inlinks(gossamer) == [0]
    assert gossamer("--json", "runs").rows[-1]["state"] == "done"
