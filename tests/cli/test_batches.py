"""generate, batches and update as users call them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gossamer.events import Terminal
from tests.cli.conftest import Gossamer, intact, page, state, write_lines

CHOSEN, BELOW = "chosen", "below the top"


def waiting(gossamer: Gossamer, *options: str) -> dict[str, str]:
    """Batches and their states."""
    return {row["segment"]: row["state"] for row in gossamer("--json", "batches", "list", *options).rows}


def test_generate_names_what_it_made(filled: Path, gossamer: Gossamer) -> None:
    assert gossamer("generate", "--top", 2, "--batches", 2).out == "Made r000001-1, r000001-2.\n"
    assert gossamer("generate").out == "Made r000002-1.\n"
    result = gossamer("generate")
    assert result.out == "No URL can be chosen; see `gossamer generate --dry-run` for why.\n"
    assert waiting(gossamer) == dict.fromkeys(["r000001-1", "r000001-2", "r000002-1"], "live")
    listed = gossamer("--json", "read", "fetchlist", "--columns", "url,segment").rows
    assert sorted(row["url"] for row in listed) == sorted(str(page(n)["url"]) for n in range(5))


def test_an_empty_crawl(crawl: Path, gossamer: Gossamer) -> None:
    assert "No URL can be chosen" in gossamer("generate").out
    assert gossamer("--json", "generate", "--dry-run").rows == []
    assert gossamer("generate", "--dry-run").lines[-1] == ["all", "0", "hosts", "0"]
    assert waiting(gossamer, "--all") == {}


def test_dry_run_as_a_table(filled: Path, gossamer: Gossamer) -> None:
    before = state(filled)
    head, *rows, total = gossamer("generate", "--dry-run", "--top", 3).lines
    assert head[:2] == ["host", "chosen"]
    assert {row[0] for row in rows} >= {"example.com", "www.example.org"}
    assert total[:4] == ["all", "2", "hosts", "3"]
    assert sum(map(int, total[3:])) == 5
    assert intact(before, filled)
    assert waiting(gossamer, "--all") == {}
    assert not list(filled.glob("runs/*generate*"))


def test_dry_run_as_json(filled: Path, gossamer: Gossamer) -> None:
    gossamer("-q", "generate", "--top", 1)
    rows = gossamer("--json", "generate", "--dry-run", "--top", 2).rows
    assert {row["host"] for row in rows} == {"example.com", "www.example.org"}
    counts = [(fate, n) for row in rows for fate, n in row.items() if fate != "host"]
    assert sum(n for fate, n in counts if fate == CHOSEN) == 2
    assert sum(n for fate, n in counts if fate == BELOW) == 2
    assert sum(n for fate, n in counts if fate == "in a live batch") == 1
    assert rows == sorted(rows, key=lambda row: (-row.get(CHOSEN, 0), row["host"]))


def test_a_plan_ends_the_spinner(filled: Path, gossamer: Gossamer, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(Terminal, "_show", lambda _, text: told.append(text))
    monkeypatch.setattr(Terminal, "_stop", lambda _: told.append("end"))
    gossamer("generate", "--dry-run")
    assert told[:-1]
    assert told[-1] == "end"


def test_many_hosts_are_cut_for_people_only(crawl: Path, tmp_path: Path, gossamer: Gossamer) -> None:
    rows = [page(0) | {"url": f"https://h{n}.example/", "domain": f"h{n}.example"} for n in range(30)]
    gossamer("-q", "load", "crawldb", write_lines(tmp_path / "rows.jsonl", *rows))
    table = gossamer("generate", "--dry-run").lines
    assert len([row for row in table if row[0].endswith(".example")]) == 20
    assert table[-1] == ["all", "30", "hosts", "30"]
    assert len(gossamer("--json", "generate", "--dry-run").rows) == 30


def test_only_json_on_stdout(filled: Path, gossamer: Gossamer) -> None:
    for command in (["generate", "--top", 2], ["generate", "--dry-run"], ["batches", "list"]):
        result = gossamer("--json", *command)
        assert result.rows
        assert result.err == ""
    *_, done, made = gossamer("--json", "generate").rows
    assert made == {"event": "made", "batches": ["r000002-1"]}
    assert (done["event"], done["counters"]["urls"], done["counters"]["listed"]) == ("done", 5, 3)
    assert done["drops"] == {"in a live batch": 2}
    assert gossamer("--json", "batches", "drop", "r000001-1").rows[-1]["event"] == "done"


def test_quiet_says_nothing(filled: Path, gossamer: Gossamer) -> None:
    for command in (
        ["batches", "list"],
        ["generate"],
        ["generate"],
        ["batches", "drop", "r000001-1"],
        ["batches", "list"],
    ):
        result = gossamer("--quiet", *command)
        assert (result.out, result.err) == ("", "")


def test_list_and_drop(filled: Path, gossamer: Gossamer) -> None:
    assert gossamer("batches", "list").out == "No batch is waiting; `--all` lists the finished ones too.\n"
    gossamer("-q", "generate", "--top", 2)
    gossamer("-q", "generate")
    (first, second) = gossamer("--json", "batches", "list").rows
    assert (first["segment"], first["urls"], first["state"], first["stages"]) == ("r000001-1", 2, "live", ["generate"])
    assert first["made_at"] < first["expires_at"]
    assert second["urls"] == 3
    assert [line[:3] for line in gossamer("batches", "list").lines[-2:]] == [
        ["r000001-1", "live", "2"],
        ["r000002-1", "live", "3"],
    ]
    gossamer("-q", "batches", "drop", "r000001-1")
    assert waiting(gossamer) == {"r000002-1": "live"}
    assert waiting(gossamer, "--all") == {"r000001-1": "dropped", "r000002-1": "live"}
    gossamer("-q", "batches", "drop", "r000001-1", "r000002-1")
    assert set(waiting(gossamer, "--all").values()) == {"dropped"}
    assert gossamer("generate").out == "Made r000003-1.\n"
    assert gossamer("--json", "batches", "list").rows[0]["urls"] == 5


def test_expired_batches_are_listed(filled: Path, gossamer: Gossamer) -> None:
    gossamer("-q", "--set", "generate.lease_hours=0", "generate")
    assert waiting(gossamer) == {"r000001-1": "expired"}
    assert gossamer("generate").out == "Made r000002-1.\n"


@pytest.mark.parametrize("hours", ["1e10", "1e300"])
def test_a_lease_may_be_endless(filled: Path, gossamer: Gossamer, hours: str) -> None:
    gossamer("-q", "--set", f"generate.lease_hours={hours}", "generate")
    (row,) = gossamer("--json", "batches", "list").rows
    assert (row["state"], row["expires_at"]) == ("live", None)
    assert "No URL can be chosen" in gossamer("generate").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--class", "tepid"], "--class tepid: choose from new, hot, warm, cold"),
        (["--class", ""], "choose from new, hot, warm, cold"),
        (["--urls", "missing.txt"], "missing.txt: No such file or directory; check the path"),
        (["--urls", ""], "check the path"),
        (["--urls", "."], "Is a directory"),
        (["--top", "0"], "--top"),
        (["--top", "-5"], "--top"),
        (["--top", "x"], "--top"),
        (["--top", "1000000000000000000000"], "choose from 1 to"),
        (["--batches", "0"], "--batches"),
        (["--batches", "1001"], "--batches"),
        (["--hours", "-1"], "--hours"),
        (["--hours", "nan"], "hours"),
        (["--hours", "inf"], "hours"),
        (["unexpected"], "unexpected"),
    ],
)
@pytest.mark.parametrize("dry", [True, False], ids=["dry", "wet"])
def test_wrong_usage(filled: Path, gossamer: Gossamer, arguments: list[str], said: str, dry: bool) -> None:
    before = state(filled)
    result = gossamer("generate", *arguments, *(["--dry-run"] if dry else []), code=2)
    assert said in result.err.splitlines()[-1]
    assert "Traceback" not in result.err
    assert result.out == ""
    assert intact(before, filled)


def test_a_list_of_urls(filled: Path, tmp_path: Path, gossamer: Gossamer) -> None:
    urls = tmp_path / "urls.txt"
    urls.write_text(f"{page(1)['url']}\nhttps://elsewhere.example/\nno url\n")
    done = gossamer("--json", "generate", "--urls", urls).rows[-2]
    assert done["counters"]["listed"] == 1
    assert done["drops"]["not in the list"] == 4
    assert sum(n for reason, n in done["drops"].items() if reason.startswith("listed URL: ")) == 1
    urls.write_text("# nothing\n")
    assert "there is no URL in it; write one a line" in gossamer("generate", "--urls", urls, code=2).err


def test_no_crawl(tmp_path: Path, gossamer: Gossamer) -> None:
    for command in (["generate"], ["generate", "--dry-run"], ["batches", "list"], ["batches", "drop", "x"], ["update"]):
        assert gossamer(*command, code=4).out == ""
    assert list(tmp_path.iterdir()) == []


def test_batches_that_cannot_be_dropped(filled: Path, tmp_path: Path, gossamer: Gossamer) -> None:
    assert "there is no batch r000009-1" in gossamer("batches", "drop", "r000009-1", code=2).err
    assert "Missing argument" in gossamer("batches", "drop", code=2).err
    gossamer("-q", "generate", "--top", 2)
    assert "there is no batch nonsense" in gossamer("batches", "drop", "r000001-1", "nonsense", code=2).err
    assert waiting(gossamer) == {"r000001-1": "live"}, "all or none"
    fetched(gossamer, tmp_path, "r000001-1")
    gossamer("-q", "update")
    assert "has been applied to the crawldb" in gossamer("batches", "drop", "r000001-1", code=2).err
    assert waiting(gossamer) == {}
    assert waiting(gossamer, "--all") == {"r000001-1": "updated"}


def fetched(gossamer: Gossamer, folder: Path, segment: str) -> None:
    """Load what a fetch of a batch could have given."""
    listed = gossamer("--json", "read", "fetchlist", "--segment", segment).rows
    rows: list[dict[str, Any]] = [
        {n: row[n] for n in ("url", "domain_fp", "url_fp", "rowkey", "segment")}
        | {"outcome": "success", "fetched_at": "2030-01-01T00:00:00Z"}
        for row in listed
    ]
    gossamer("-q", "load", "fetch", "--segment", segment, write_lines(folder / "fetch.jsonl", *rows))


def test_update_with_nothing_fetched(filled: Path, gossamer: Gossamer) -> None:
    before = state(filled)
    assert "Nothing to apply" in gossamer("update").out
    gossamer("-q", "generate")
    before = state(filled)
    assert "Nothing to apply" in gossamer("update").out
    assert gossamer("update", "r000001-1", code=2).out == ""
    assert intact(before, filled)


def test_settings_that_are_wrong(filled: Path, gossamer: Gossamer) -> None:
    for wrong in ("generate.top=0", "generate.per=planet", "generate.lease_hours=-1", 'score.chain=["none"]'):
        assert gossamer("--set", wrong, "generate", code=3).out == ""
    assert waiting(gossamer, "--all") == {}
