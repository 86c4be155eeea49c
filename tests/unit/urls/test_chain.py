"""The chain: steps per stage, reasons in order, and steps that fail."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gossamer.errors import SettingsError
from gossamer.plugins.manager import load_plugins
from gossamer.rules.ruleset import STAGES, RuleSet, rules_from
from gossamer.settings import PluginSettings, load_settings
from gossamer.urls.batch import UrlBatch
from gossamer.urls.chain import UrlChain, make_chain
from gossamer.urls.steps import Filter, Normalizer
from tests.unit.urls import nasty


def chain(*sets: str) -> UrlChain:
    return UrlChain(rules_from(load_settings(environment={}, sets=sets).settings))


def picky(batch: UrlBatch, _rules: RuleSet) -> pa.Array:
    """Fails on what it does not know, rejects what ends in 7."""
    if pc.any(pc.match_substring(batch.urls, "bad")).as_py():
        raise ValueError("bad URL")
    return pc.if_else(pc.ends_with(batch.urls, "7"), "seven", pa.scalar(None, pa.string()))


def exiting(_batch: UrlBatch, _rules: RuleSet) -> pa.Array:
    raise SystemExit(3)


def short(batch: UrlBatch, _rules: RuleSet) -> pa.Array:
    return pa.array([], pa.string())


def listing(batch: UrlBatch, _rules: RuleSet) -> Any:
    return [None] * len(batch)


def https(urls: pa.Array, _rules: RuleSet, _stage: str) -> pa.Array:
    return pc.replace_substring_regex(urls, "^http:", "https:")


def spoiling(urls: pa.Array, _rules: RuleSet, _stage: str) -> pa.Array:
    return pc.replace_substring_regex(urls, "/$", "/a/../b c")


def dropping(urls: pa.Array, _rules: RuleSet, _stage: str) -> pa.Array:
    return pc.if_else(pc.match_substring(urls, "drop"), pa.scalar(None, pa.string()), urls)


def failing(urls: pa.Array, _rules: RuleSet, _stage: str) -> pa.Array:
    raise RuntimeError("no")


def with_filter(run: Any) -> UrlChain:
    rules = replace(RuleSet(), filters=tuple((stage, ("mine",)) for stage in STAGES))
    return UrlChain(rules, (), (Filter("mine", run),))


def with_normalizers(**runs: Any) -> UrlChain:
    rules = replace(RuleSet(), normalizers=tuple((stage, tuple(runs)) for stage in STAGES))
    return UrlChain(rules, tuple(Normalizer(name, run) for name, run in runs.items()), ())


def test_check():
    raw = pa.array(["HTTP://Example.org/%7Ea?sid=1", None, "ftp://x/", "http://example.org/" + "a" * 3000, "http://a/"])
    found = chain().check(raw, "parse", pa.array([0, 1, 2, 3, None], pa.int32()))
    assert found.url.to_pylist() == ["http://example.org/~a", None, None, None, "http://a/"]
    assert found.reason.to_pylist() == [None, "not a URL", "scheme", "too long", None]


def test_a_url_is_kept_or_has_a_reason():
    raw = pa.array(nasty.urls(5_000, seed=8))
    found = chain("filters.max_segments=2", "filters.scope=domain", "filters.scope_list=example.org").check(
        raw, "parse"
    )
    assert len(found.url) == len(found.reason) == len(raw)
    assert pc.all(pc.xor(found.url.is_null(), found.reason.is_null())).as_py()
    assert {"out of scope", "too many segments", "scheme", "host"} <= set(found.reason.to_pylist())


def test_the_order_of_filters_decides_about_the_reason():
    sets = ["filters.scope=host", "filters.max_depth=1"]
    url, depth = pa.array(["http://a/"]), pa.array([2])
    assert chain(*sets).filter(url, "parse", depth).to_pylist() == ["too deep"]
    assert chain(*sets, "filters.chain=scope,depth").filter(url, "parse", depth).to_pylist() == ["out of scope"]


def test_nulls_are_not_filtered():
    urls = pa.array([None, "http://a/", None, "http://b/"])
    found = chain("filters.max_depth=1").filter(urls, "parse", pa.array([5, 5, 1, 1]))
    assert found.to_pylist() == [None, "too deep", None, None]


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.null()])
def test_small_columns_of_other_types(size: int, kind: pa.DataType):
    found = chain().check(pa.nulls(size, kind), "parse")
    assert (found.url.type, found.reason.type, len(found.url)) == (pa.string(), pa.string(), size)


def test_stages_have_their_own_steps():
    mine = chain('urls.at={"parse" = "", "redirect" = "query, www"}', 'filters.at={"parse" = "depth"}')
    raw = pa.array(["http://a/?sid=1&&utm_x=2"])
    assert mine.normalize(raw, "inject").url.to_pylist() == ["http://a/"]
    assert mine.normalize(raw, "parse").url.to_pylist() == ["http://a/?sid=1&&utm_x=2"]
    assert mine.normalize(raw, "fetch").url.to_pylist() == ["http://a/?sid=1&utm_x=2"]
    assert mine.normalize(raw, "redirect") == mine.normalize(raw, "fetch")
    long = pa.array(["http://a/" + "b" * 3000])
    assert mine.filter(long, "parse").to_pylist() == [None]
    assert mine.filter(long, "update").to_pylist() == ["too long"]


def test_unknown_stages_and_steps():
    with pytest.raises(SettingsError, match=r"there is no stage index for URLs; choose from inject"):
        chain().normalize(pa.array(["x"]), "index")
    with pytest.raises(SettingsError, match=r"^urls.at: there is no stage nowhere"):
        chain('urls.at={"nowhere" = ""}')
    for sets, why in [
        ("urls.normalizers=wwww", "urls.normalizers: there is no wwww; choose from encoding"),
        ("filters.chain=regexp", "filters.chain: there is no regexp"),
    ]:
        with pytest.raises(SettingsError, match=why):
            make_chain(chain(sets).rules, load_plugins(PluginSettings()))


def test_a_chain_goes_to_workers(tmp_path: Any):
    path = tmp_path / "rules.txt"
    path.write_text("-\\.gif$\n+.")
    mine = chain(f"filters.regex_files={path}", "filters.scope=domain", "filters.scope_list=example.org")
    raw = pa.array(nasty.urls(500, seed=9))
    before = mine.check(raw, "parse")
    assert pickle.loads(pickle.dumps(mine)).check(raw, "parse") == before
    assert pickle.loads(pickle.dumps(mine)) == mine


def test_a_filter_that_fails_on_some_urls_filters_the_others():
    urls = pa.array([f"http://a/{'bad' if n in (123, 777) else ''}{n}" for n in range(1_000)])
    mine = with_filter(picky)
    found = mine.filter(urls, "parse").to_pylist()
    assert [n for n, reason in enumerate(found) if reason == "seven"] == [n for n in range(7, 1_000, 10) if n != 777]
    assert mine.failures == {"filter mine failed: ValueError: bad URL": 2}


@pytest.mark.parametrize(
    ("run", "told"),
    [(exiting, "SystemExit: 3"), (short, "PluginError: it must give"), (listing, "PluginError: it must give")],
)
def test_a_filter_that_always_fails_keeps_all_and_ends_soon(run: Any, told: str):
    mine = with_filter(run)
    found = mine.filter(pa.array([f"http://a/{n}" for n in range(2_000)]), "parse").to_pylist()
    assert found == [None] * 2_000
    assert sum(mine.failures.values()) == 2_000
    assert all(
        key.startswith("filter mine failed: ") and told.split(":", maxsplit=1)[0] in key for key in mine.failures
    )


def test_normalisers_of_plugins():
    raw = pa.array(["http://a/", "http://drop/", "x"])
    found = with_normalizers(https=https, dropping=dropping, spoiling=spoiling).normalize(raw, "parse")
    assert found.url.to_pylist() == ["https://a/b%20c", None, None]  # what they spoil is parsed again
    assert found.reason.to_pylist() == [None, "normalizer dropping", "not a URL"]


def test_a_normaliser_that_fails_changes_nothing():
    mine = with_normalizers(failing=failing, https=https)
    assert mine.normalize(pa.array(["http://a/", "http://b/"]), "parse").url.to_pylist() == ["https://a/", "https://b/"]
    assert mine.failures == {"normalizer failing failed: RuntimeError: no": 2}


def test_failures_do_not_pile_up():
    def each(batch: UrlBatch, _rules: RuleSet) -> pa.Array:
        raise ValueError(batch.urls[0].as_py())

    mine = with_filter(each)
    for number in range(40):
        mine.filter(pa.array([f"http://a/{number}"]), "parse")
    assert len(mine.failures) == 21
    assert mine.failures["filter mine failed: ValueError"] == 20
