"""Reading files by the table's types, whatever their first lines look like."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from gossamer.errors import UsageError
from gossamer.stages.load import inputs

TYPES = pa.schema(
    [
        pa.field("url", pa.string(), nullable=False),
        ("etag", pa.string()),
        ("n", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("status", pa.int8()),
    ]
)


def read(path: Path) -> list[dict]:
    return [row for batch in inputs.batches(str(path), TYPES, ["status"]) for row in batch.to_pylist()]


@pytest.mark.parametrize("etag", ["007", "1e5", "2026-01-01", "true", "NULL", "nan", "2026-01-01T00:00:00Z"])
def test_texts_stay_as_they_are(tmp_path: Path, etag: str):
    (tmp_path / "a.csv").write_text(f"url,etag\nx,{etag}\n")
    (tmp_path / "a.jsonl").write_text(json.dumps({"url": "x", "etag": etag}) + "\n")
    for name in ("a.csv", "a.jsonl"):
        (row,) = read(tmp_path / name)
        assert row["etag"] == etag


def test_an_empty_cell_is_null_and_an_empty_quoted_one_is_not(tmp_path: Path):
    (tmp_path / "a.csv").write_text('url,etag,n\nx,,\ny,"",3\n')
    assert [(row["etag"], row["n"]) for row in read(tmp_path / "a.csv")] == [(None, None), ("", 3)]


def test_codes_may_be_names(tmp_path: Path):
    (tmp_path / "a.csv").write_text("url,status\nx,fetched\ny,3\n")
    assert [row["status"] for row in read(tmp_path / "a.csv")] == ["fetched", "3"]


def test_columns_that_come_late_are_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inputs, "JSON_CHUNK", 1000)
    early, late = {"url": "x", "n": None}, {"url": "y", "n": 5, "etag": "e", "other": 1}
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in [*[early] * 100, *[late] * 100]))
    rows = read(path)
    assert len(rows) == 200
    assert (rows[0]["n"], rows[-1]["n"], rows[-1]["etag"], rows[-1]["other"]) == (None, 5, "e", 1)


def test_csv_columns_that_are_empty_at_first(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("url,n\n" + "https://example.org/something/long,\n" * 50_000 + "x,7\n")
    assert read(path)[-1] == {"url": "x", "n": 7}


def test_blank_lines_and_no_lines_are_no_rows(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n \n")
    assert read(path) == []
    path.write_text("")
    assert read(path) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken.parquet", "PAR1 but not really PAR1"),
        ("empty.parquet", ""),
        ("empty.csv", ""),
        ("ragged.csv", "url,n\nx,1,2\n"),
        ("words.csv", "url,n\nx,many\n"),
        ("large.csv", "url,n\nx,99999999999\n"),
        ("cut.jsonl", '{"url": "x"}\n{"url": '),
        ("array.json", '[{"url": "x"}]'),
        ("mixed.jsonl", '{"n": 1}\n{"n": "one"}'),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, text: str):
    (tmp_path / name).write_text(text)
    with pytest.raises(
        UsageError, match=rf"{name}: cannot be read as (parquet|csv|json) \(.+\); check the file"
    ) as error:
        read(tmp_path / name)
    assert "\n" not in str(error.value)


def test_missing_and_unknown_files(tmp_path: Path):
    with pytest.raises(UsageError, match=r"none\.csv: .* check the path"):
        inputs.stamp_of(str(tmp_path / "none.csv"))
    with pytest.raises(UsageError, match=r"none\.csv: no such file; check the path"):
        read(tmp_path / "none.csv")
    (tmp_path / "a.xlsx").write_text("")
    with pytest.raises(UsageError, match=r"a\.xlsx: unknown kind of file; give it one of the endings \.parquet, \.csv"):
        inputs.stamp_of(str(tmp_path / "a.xlsx"))


def test_the_ending_may_be_in_capitals():
    assert [inputs.format_of(name) for name in ("A.PARQUET", "b.Csv", "c.ndjson")] == ["parquet", "csv", "json"]


def test_a_stamp_changes_with_the_file(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("url\n")
    before = inputs.stamp_of(str(path))
    assert inputs.stamp_of(str(path)) == before
    path.write_text("url\nx\n")
    assert inputs.stamp_of(str(path)) != before
