"""Fingerprints, shards and the random order of a batch."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gossamer.urls.keys import fingerprint, fingerprints, positions, shard_of

# xxh3-64 with seed 0, from the reference implementation, as unsigned numbers.
VECTORS = {
    "": 0x2D06800538D394C2,
    "a": 0xE6C632B61E964E1F,
    "abc": 0x78AF5F94892F3950,
    "hello": 0x9555E8555C62DCFD,
}
HREFS = ["https://example.org/", "https://example.org/a?b=c", "https://пример.example/", "https://example.org/𝄞"]


@pytest.mark.parametrize(("text", "unsigned"), VECTORS.items())
def test_known_vectors_as_signed_numbers(text: str, unsigned: int):
    signed = int.from_bytes(unsigned.to_bytes(8, "big"), "big", signed=True)
    assert fingerprint(text) == signed
    assert fingerprints(pa.array([text])).to_pylist() == [signed]


def test_some_fingerprints_are_negative():
    assert fingerprint("a") < 0 < fingerprint("abc")


def test_the_column_equals_the_values():
    found = fingerprints(pa.array([*HREFS, ""]))
    assert found.type == pa.int64()
    assert found.to_pylist() == [fingerprint(href) for href in [*HREFS, ""]]


def test_null_stays_null():
    assert fingerprints(pa.array(["a", None, ""])).to_pylist() == [fingerprint("a"), None, fingerprint("")]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.null()])
def test_no_rows_and_only_nulls(kind: pa.DataType):
    assert fingerprints(pa.array([], kind)).to_pylist() == []
    assert fingerprints(pa.nulls(2, kind)).to_pylist() == [None, None]


def test_slices():
    whole = pa.array(["x", "a", None, "abc", "y"])
    assert fingerprints(whole.slice(1, 3)).to_pylist() == fingerprints(whole).to_pylist()[1:4]


def test_positions_are_repeatable_and_not_negative():
    fps = fingerprints(pa.array([f"https://example.org/{i}" for i in range(1000)]))
    found = positions(fps, "r000001-0").to_pylist()
    assert found == positions(fps, "r000001-0").to_pylist()
    assert min(found) >= 0
    assert len(set(found)) == len(found)


def test_positions_depend_on_url_and_segment_alone():
    fps = fingerprints(pa.array(HREFS))
    found = positions(fps, "r000001-0").to_pylist()
    assert positions(fps.slice(2, 1), "r000001-0").to_pylist() == found[2:3]
    assert not set(positions(fps, "r000001-1").to_pylist()) & set(found)


def test_positions_are_the_same_everywhere():
    assert positions(pa.array([1, -1]), "r000001-0").to_pylist() == [5577743076481693681, 8356660948541828830]
    assert positions(pa.array([], pa.int64()), "r000001-0").to_pylist() == []


@pytest.mark.parametrize("shards", [1, 2, 16, 4096])
def test_shards_also_of_negative_fingerprints(shards: int):
    found = {shard_of(fp, shards) for fp in range(-5000, 5000)}
    assert found == set(range(shards))


def test_doubling_the_shards_splits_each_in_two():
    for fp in (fingerprint(href) for href in HREFS):
        assert shard_of(fp, 32) in (shard_of(fp, 16), shard_of(fp, 16) + 16)
