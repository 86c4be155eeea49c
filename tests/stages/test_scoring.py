"""The scoring chain: order, weights, parts, plugins, and scorers that fail."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gossamer.crawl import Crawl
from gossamer.errors import PluginError, SettingsError
from gossamer.plugins.builtin.scorers import SCORERS
from gossamer.settings import ScoreSettings
from gossamer.stages.generate.score import MOST, Context, run_chain
from gossamer.storage import runs
from gossamer.tables.spec import TIMESTAMP
from tests.stages import generating
from tests.stages.crawls import NOW
from tests.stages.generating import PLUGIN, add_rows, chosen, crawl_of, fetchlist, pages

URLS = pages("a.example", 4)


def scored(crawl: Crawl) -> dict[str, dict[str, Any]]:
    (segment,) = crawl.generate()
    return {row["url"]: row for row in fetchlist(crawl, segment)}


def chain(*names: str) -> str:
    return f"score.chain=[{', '.join(map(repr, names))}]"


def notes(crawl: Crawl) -> list[str]:
    told: list[str] = []
    crawl._reporter = type("Ears", (), {"tell": lambda _, event: told.append(str(event.get("text", "")))})()
    crawl.generate()
    return [text for text in told if text]


def test_each_part_is_the_value_after_its_scorer(tmp_path: Path, embedded_inline: Any) -> None:
    """Useful URLs come first by a factor; parts multiply up to the score."""
    sets = (chain("useful", "depth", "twice"), "score.useful_yes=3", "score.useful_no=0.5", PLUGIN)
    crawl = crawl_of(tmp_path, embedded_inline, URLS, *sets, useful=[True, False, None, True], depth=[0, 1, 0, 3])
    found = scored(crawl)
    assert [list(found[url]["parts"].items()) for url in URLS] == [
        [("useful", 3.0), ("depth", 3.0), ("twice", 6.0)],
        [("useful", 0.5), ("depth", 0.25), ("twice", 0.5)],
        [("useful", 0.5), ("depth", 0.5), ("twice", 1.0)],
        [("useful", 3.0), ("depth", 0.75), ("twice", 1.5)],
    ]
    assert [found[url]["score"] for url in URLS] == [6.0, 0.5, 1.0, 1.5]


def test_order_and_weights(tmp_path: Path, embedded_inline: Any) -> None:
    sets = (chain("depth", "cash"), "score.weights={depth = 0.5, cash = 0.0}")
    crawl = crawl_of(tmp_path, embedded_inline, URLS, *sets, depth=[0, 1, 3, None], cash=[0, 9, 10**7, None])
    found = scored(crawl)
    assert list(found[URLS[0]]["parts"]) == ["depth", "cash"]
    expected = [1.0, 0.75, 0.625, np.float32(0.5 + 0.5 / 6)]
    assert [found[url]["score"] for url in URLS] == [found[url]["parts"]["depth"] for url in URLS] == expected


def test_no_scorers_at_all(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, URLS, "score.chain=[]")
    assert {(row["score"], tuple(row["parts"])) for row in scored(crawl).values()} == {(1.0, ())}


def test_a_plugin_scorer_on_every_engine(engine: Any, tmp_path: Path) -> None:
    """It gets the columns it names, as plain types, and its weight; plugin columns are in the list."""
    urls = [f"https://{'h' * n}.example/" for n in (1, 3, 9)]
    sets = (chain("by_host", "raises", "negative"), "score.weights={by_host = 0.5}", PLUGIN)
    crawl = crawl_of(tmp_path, engine, urls, *sets, shade=[0, 1, 7])
    told = notes(crawl)
    assert [text for text in told if "raises" in text] == [
        "scorer raises failed (LookupError: no model); it was passed over"
    ]
    rows = {row["url"]: row for row in fetchlist(crawl, "r000001-1")}
    assert [rows[url]["shade"] for url in urls] == [0, 1, 7]
    assert [rows[url]["parts"]["by_host"] for url in urls] == [
        float(np.float32(0.5 / len(url.split("/")[2]))) for url in urls
    ]
    assert all(row["parts"]["raises"] == row["parts"]["by_host"] for row in rows.values())


def test_nonsense_is_passed_over_told_and_counted(tmp_path: Path, embedded_inline: Any) -> None:
    sets = (chain("depth", "short", "nan"), PLUGIN)
    crawl = crawl_of(tmp_path, embedded_inline, URLS, *sets, depth=[1] * 4, shade=[0, 1, 2, 3])
    told = notes(crawl)
    assert any("scorer short failed (ValueError: values of shape" in text for text in told)
    assert any("scorer nan failed (" in text and "not finite" in text for text in told)
    assert len(told) == len(set(told))
    rows = {row["url"]: row["score"] for row in fetchlist(crawl, "r000001-1")}
    assert [rows[url] for url in URLS] == [0.5, 0.5, 0.5, 0.25]
    record = runs.load(crawl.files, "00000001-generate")
    assert record is not None
    assert record.counters["plugin_errors"] >= 2


def test_minus_zero_is_the_least(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, URLS, chain("negative"), PLUGIN, shade=[1, 0, 1, 0])
    assert chosen(crawl, top=2) == [URLS[1], URLS[3]]


def test_a_scorer_that_asks_for_too_much(tmp_path: Path, embedded_inline: Any) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, URLS, chain("blind"), PLUGIN)
    with pytest.raises(PluginError, match="no column no_such_column"):
        crawl.generate()


@pytest.mark.parametrize(
    "wrong", ["chain=['none']", "chain=['cash', 'cash']", "weights={csh = 1.0}", "weights={cash = 1.5}"]
)
def test_wrong_settings(tmp_path: Path, embedded_inline: Any, wrong: str) -> None:
    crawl = crawl_of(tmp_path, embedded_inline, (), f"score.{wrong}")
    with pytest.raises(SettingsError, match=r"^score\.(chain|weights): "):
        crawl.generate()


def test_columns_that_came_later(tmp_path: Path, embedded_inline: Any) -> None:
    """Rows written before a plugin have no value in its column."""
    crawl = crawl_of(tmp_path, embedded_inline, URLS)
    crawl = Crawl(crawl.files.root, engine=embedded_inline, clock=lambda: NOW, sets=[chain("negative"), PLUGIN])
    add_rows(crawl, tmp_path, URLS[:1], shade=1)
    assert chosen(crawl, top=3) == URLS[1:]


def facts(**columns: Any) -> pa.RecordBatch:
    types = {"useful": pa.bool_(), "inlinks": pa.int32(), "cash": pa.int64(), "depth": pa.int16(), "rank": pa.int16()}
    types |= {"next_fetch": TIMESTAMP, "interval_s": pa.int32()}
    count = max((len(values) for values in columns.values()), default=1)
    return pa.record_batch({n: pa.array(columns.get(n, [None] * count), t) for n, t in types.items()})


def values(name: str, rows: pa.RecordBatch, **settings: Any) -> list[float]:
    scorers = [scorer for scorer in SCORERS if scorer.name == name]
    result = run_chain(scorers, rows, Context(NOW.now, ScoreSettings(**settings)))
    assert not result.failed
    return [round(float(value), 4) for value in result.score]


@pytest.mark.parametrize("name", [scorer.name for scorer in SCORERS if scorer.name != "useful"])
def test_built_in_factors_are_from_0_to_1(name: str) -> None:
    """For every fact at its ends and missing; weight 0 changes nothing."""
    ends = {n: [-(2**15), 0, 2**15 - 1, None] for n in ("depth", "rank")}
    ends |= {"inlinks": [-(2**31), 0, 2**31 - 1, None], "cash": [-(2**63), 0, 2**63 - 1, None]}
    ends |= {"interval_s": [-1, 0, 2**31 - 1, None]}
    moments = [NOW.now - timedelta(days=9999), NOW.now, NOW.now + timedelta(days=9999), None]
    rows = facts(next_fetch=moments, **ends)
    assert all(0 <= value <= 1 for value in values(name, rows))
    assert values(name, rows, weights={name: 0.0}) == [1.0] * 4


def test_built_in_factors_grow_the_right_way() -> None:
    assert values("inlinks", facts(inlinks=[None, 0, 3, 10_000])) == sorted(
        values("inlinks", facts(inlinks=[None, 0, 3, 10_000]))
    )
    assert values("cash", facts(cash=[0, 10**6, 3 * 10**6])) == [0.1, 0.55, 0.775]
    assert values("depth", facts(depth=[0, 1, 3])) == [1.0, 0.5, 0.25]
    assert values("rank", facts(rank=[0, 255])) == [0.0, 1.0]
    waited = [NOW.now - timedelta(days=days) for days in (0, 5, 10, 100)]
    assert values("freshness", facts(next_fetch=waited, interval_s=[10 * 86400] * 4)) == [0.5, 0.75, 1.0, 1.0]
    assert values("useful", facts(useful=[True, False, None]), useful_yes=2.0, useful_no=0.5) == [2.0, 0.5, 0.5]


def test_a_chain_over_nothing_and_over_the_top() -> None:
    scorers = generating.gossamer_scorers()
    nothing = run_chain(
        scorers, pa.record_batch({"shade": pa.array([], pa.int32())}), Context(NOW.now, ScoreSettings())
    )
    assert not nothing.failed
    assert set(nothing.parts) == {scorer.name for scorer in scorers}
    high = ScoreSettings(useful_yes=1e300)
    chain_of_two = [scorer for scorer in SCORERS if scorer.name == "useful"]
    assert run_chain(chain_of_two, facts(useful=[True]), Context(NOW.now, high)).score.tolist() == [MOST]
